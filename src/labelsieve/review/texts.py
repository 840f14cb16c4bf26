"""Many strings go in; they are kept as one block of UTF-8, read one by one and searched all at once. A million fit easily."""

import re
from collections.abc import Iterable
from functools import cached_property
from importlib import import_module
from typing import Any

import numpy as np


class Texts:
    """Text i is `block[starts[i]:starts[i + 1]]`; `starts` is int64 (N + 1,)."""

    def __init__(self, block: bytes, starts: np.ndarray) -> None:
        self.block, self.starts = block, starts

    @classmethod
    def of(cls, texts: Iterable[str]) -> "Texts":
        parts = [text.encode("utf-8", "surrogatepass") for text in texts]
        starts = np.zeros(len(parts) + 1, np.int64)
        np.cumsum([len(part) for part in parts], out=starts[1:])
        return cls(b"".join(parts), starts)

    @classmethod
    def of_arrow(cls, column: Any) -> "Texts":
        """An Arrow column of strings, without making a Python object of each."""
        arrow = import_module("pyarrow")
        whole = column.cast(arrow.large_string()).fill_null("").combine_chunks()
        if not len(whole):
            return cls.of(())
        _, starts, block = whole.buffers()
        found = np.frombuffer(starts, np.int64)[whole.offset : whole.offset + len(whole) + 1]
        return cls(block.to_pybytes() if block is not None else b"", found.copy())

    def __len__(self) -> int:
        return len(self.starts) - 1

    def __getitem__(self, row: int) -> str:
        return self.block[self.starts[row] : self.starts[row + 1]].decode("utf-8", "surrogatepass")

    def tolist(self) -> list[str]:
        return [self[row] for row in range(len(self))]

    @cached_property
    def _folded(self) -> "Texts":
        """The same without capitals, for searching."""
        if self.block.isascii():
            return Texts(self.block.lower(), self.starts)
        return Texts.of(text.casefold() for text in self.tolist())

    def containing(self, text: str) -> np.ndarray:
        """(N,) bool: which texts hold `text`, whatever the capitals."""
        folded, needle = self._folded, text.casefold().encode("utf-8", "surrogatepass")
        found = np.ones(len(self), bool)
        if not needle:
            return found
        at = np.fromiter((hit.start() for hit in re.finditer(re.escape(needle), folded.block)), np.int64)
        rows = np.searchsorted(folded.starts, at, side="right") - 1
        found[:] = False
        found[rows[at + len(needle) <= folded.starts[rows + 1]]] = True  # a hit across two texts is none
        # Finding goes on after a hit: one across two texts may hide one that begins inside it.
        for row in np.unique(rows[at + len(needle) > folded.starts[rows + 1]] + 1).tolist():
            if row < len(found) and not found[row]:
                found[row] = needle in folded.block[folded.starts[row] : folded.starts[row + 1]]
        return found
