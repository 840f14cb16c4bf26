"""Keeps many strings as one block of UTF-8, reads them one by one and searches all at once. A million fit easily."""

from collections.abc import Iterable
from functools import cached_property
from importlib import import_module
from itertools import pairwise
from typing import Any
from unicodedata import normalize

import numpy as np


def folded(text: str) -> str:
    """Without capitals, and accents in one form: some systems write them in names of files as letters of their own."""
    return normalize("NFC", text.casefold())


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
        places = self.starts.tolist()
        if self.block.isascii():  # letters are bytes then, and cutting one long text is the fastest way
            text = self.block.decode("ascii")
            return [text[first:last] for first, last in pairwise(places)]
        return [self.block[first:last].decode("utf-8", "surrogatepass") for first, last in pairwise(places)]

    @cached_property
    def _folded(self) -> "Texts":
        """The same as it is searched."""
        if self.block.isascii():
            return Texts(self.block.lower(), self.starts)
        return Texts.of(folded(text) for text in self.tolist())

    def containing(self, text: str) -> np.ndarray:
        """(N,) bool: which texts hold `text`, whatever the capitals."""
        needle = np.frombuffer(folded(text).encode("utf-8", "surrogatepass"), np.uint8)
        if not len(needle):
            return np.ones(len(self), bool)
        starts, found = self._folded.starts, np.zeros(len(self), bool)
        at = _places(np.frombuffer(self._folded.block, np.uint8), needle)
        rows = np.searchsorted(starts, at, side="right") - 1
        found[rows[at + len(needle) <= starts[rows + 1]]] = True  # a hit across two texts is none
        return found


def _places(block: np.ndarray, needle: np.ndarray) -> np.ndarray:
    """Where the needle begins in the block: from its rarest byte on, all places at once."""
    counts = {byte: np.count_nonzero(block == byte) for byte in set(needle.tolist())}
    anchor = min(range(len(needle)), key=lambda i: counts[int(needle[i])])
    at = np.flatnonzero(block == needle[anchor]) - anchor
    at = at[(at >= 0) & (at + len(needle) <= len(block))]
    for i, byte in enumerate(needle):
        at = at[block[at + i] == byte]
    return at
