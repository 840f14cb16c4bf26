"""The issues of a run as arrays, most suspicious first, read from issues.parquet or issues.csv.

A million rows are held as numbers and blocks of text (`Texts`, which reads them one by one and searches all at once). Parquet is
read where pyarrow is installed and it is not older than the CSV, which may have been changed by hand.
"""

import csv
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import Any
from unicodedata import normalize

import numpy as np

from labelsieve import run_files
from labelsieve.decisions.decision import LABELLING
from labelsieve.doors import Damage, reading
from labelsieve.errors import ToolError, command
from labelsieve.issues.rules import ACTIONS, KINDS, SAMPLE_ISSUES
from labelsieve.run_files import is_there


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
        whole.validate(full=True)  # bytes that are no text are noticed here, not when a row is shown
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


TEXTS = ("id", "path", "reason")
CODED = ("given_label", "suggested_label", "kind", "action")
NUMBERS = ("suggested_confidence", "label_score")
FLAGS = ("is_label_issue",)
WANTED = (*TEXTS, *CODED, *NUMBERS, *FLAGS)
DECIDED, OWN, COPY = "decided", "sample_issue", "copy_of"
ADDED = (DECIDED, OWN, COPY)  # older files lack them
OWN_KINDS = ("", *SAMPLE_ISSUES)


@dataclass(frozen=True, eq=False)
class ReviewTable:
    """Row r is the r-th most suspicious sample. Codes are places in `classes`, `KINDS` and `ACTIONS`."""

    classes: tuple[str, ...]
    ids: Texts
    paths: Texts
    reasons: Texts
    given: np.ndarray  # (N,) int32
    suggested: np.ndarray  # (N,) int32
    kind: np.ndarray  # (N,) int8
    action: np.ndarray  # (N,) int8: what labelsieve would do
    confidence: np.ndarray  # (N,) float32, of the suggested class
    score: np.ndarray  # (N,) float32, of the given class
    is_issue: np.ndarray  # (N,) bool
    settled: np.ndarray  # (N,) bool: decided in an earlier round
    own: np.ndarray  # (N,) int8: what is wrong with the sample itself, a place in OWN_KINDS
    copies: Mapping[int, str]  # {row: id of the sample that it copies}
    at: np.ndarray | None = None  # (N, 2) places on the map

    def __len__(self) -> int:
        return len(self.given)

    @cached_property
    def row_of(self) -> dict[str, int]:
        return {name: row for row, name in enumerate(self.ids.tolist())}


def read_table(folder: Path, classes: Sequence[str] | None = None) -> ReviewTable:
    """The table of the run in `folder`; `classes` are all of them, where the run says so."""
    text, parquet = folder / "issues.csv", folder / "issues.parquet"
    if not is_there(text) and not is_there(parquet):
        raise ToolError(f"{text}: missing; the run has not divided its labels yet: {command('resume', folder)}")
    newer = is_there(parquet) and (not is_there(text) or parquet.lstat().st_mtime_ns >= text.lstat().st_mtime_ns)
    file = parquet if newer and find_spec("pyarrow") is not None else text
    raw = _from_parquet(file) if file is parquet else _from_csv(file)
    names = tuple(classes or sorted({*raw["given_label"][1], *raw["suggested_label"][1]}))
    table = ReviewTable(
        names,
        raw["id"],
        raw["path"],
        raw["reason"],
        _coded(raw["given_label"], names, f"{file}: given_label", "classes").astype(np.int32),
        _coded(raw["suggested_label"], names, f"{file}: suggested_label", "classes").astype(np.int32),
        _coded(raw["kind"], KINDS, f"{file}: kind", "kinds").astype(np.int8),
        _coded(raw["action"], ACTIONS, f"{file}: action", "actions").astype(np.int8),
        _in_range(raw["suggested_confidence"], f"{file}: suggested_confidence"),
        _in_range(raw["label_score"], f"{file}: label_score"),
        raw["is_label_issue"],
        np.array([word in LABELLING for word in raw[DECIDED][1]] or [False], bool)[raw[DECIDED][0]],
        _coded(raw[OWN], OWN_KINDS, f"{file}: sample_issue", "kinds").astype(np.int8),
        {row: raw[COPY][1][code] for row, code in enumerate(raw[COPY][0].tolist()) if raw[COPY][1][code]},
    )
    if len(table.row_of) != len(table):
        raise ToolError(f"{file}: an id occurs more than once; put the file back, or repeat the run")
    return table


def _coded(found: tuple[np.ndarray, list[str]], names: Sequence[str], place: str, what: str) -> np.ndarray:
    """Codes of the file's own words as places in `names`."""
    codes, words = found
    number = {name: k for k, name in enumerate(names)}
    unknown = [word for word in words if word not in number]
    if unknown:
        raise ToolError(f'{place} "{unknown[0]}" is not one of {len(names)} {what}; put the file back, or repeat the run')
    return np.array([number[word] for word in words] or [0], np.int64)[codes]


def _in_range(values: np.ndarray, place: str) -> np.ndarray:
    """A number that is not known counts as 0: of no confidence, or as suspicious as can be."""
    plain = np.nan_to_num(values, nan=0.0, posinf=0.0, neginf=0.0)
    if len(plain) and (plain.min() < 0 or plain.max() > 1):
        raise ToolError(f"{place} has a value outside of 0..1; put the file back, or repeat the run")
    return plain.astype(np.float32)


def _from_parquet(file: Path) -> dict[str, Any]:
    arrow, parquet = import_module("pyarrow"), import_module("pyarrow.parquet")
    with reading(file, "delete it: issues.csv says the same"), run_files.open_file(file) as opened:
        source = parquet.ParquetFile(opened)
        known = source.schema_arrow.names
        table = source.read(columns=[name for name in (*WANTED, *ADDED) if name in known])
        missing = [name for name in WANTED if name not in table.column_names]
        if missing:
            raise Damage(f'the column "{missing[0]}" is missing')
        raw: dict[str, Any] = {name: Texts.of_arrow(table[name]) for name in TEXTS}
        raw |= {name: (np.zeros(len(table), np.int64), [""]) for name in ADDED}
        for name in (*CODED, *(name for name in ADDED if name in known)):
            coded = table[name].cast(arrow.string()).fill_null("").combine_chunks().dictionary_encode()
            raw[name] = (np.asarray(coded.indices), coded.dictionary.to_pylist())
        raw |= {name: table[name].cast(arrow.float64()).to_numpy() for name in NUMBERS}
        return raw | {name: table[name].fill_null(False).to_numpy().astype(bool) for name in FLAGS}


def _from_csv(file: Path) -> dict[str, Any]:
    csv.field_size_limit(min(sys.maxsize, 2**31 - 1))
    with reading(file, run_files.REMEDY):
        reader = csv.reader(run_files.lines(file))
        header = next(reader, [])
        missing = [name for name in WANTED if name not in header]
        if missing:
            raise Damage(f'the column "{missing[0]}" is missing')
        return _columns(reader, {name: header.index(name) for name in (*WANTED, *ADDED) if name in header}, file)


def _columns(lines: Iterable[list[str]], places: dict[str, int], file: Path) -> dict[str, Any]:
    """Column by column out of the lines; words are numbered as they come."""
    kept: dict[str, list[Any]] = {name: [] for name in places}
    words: dict[str, dict[str, int]] = {name: {} for name in (*CODED, *ADDED) if name in places}
    takes: list[tuple[int, Callable[[str], Any], list[Any]]] = []
    for name, place in places.items():
        if name in words:
            known = words[name]
            takes.append((place, lambda word, known=known: known.setdefault(word, len(known)), kept[name]))  # type: ignore[misc]
        else:
            takes.append((place, _number if name in NUMBERS else _flag if name in FLAGS else str, kept[name]))
    for number, line in enumerate(lines, 1):
        try:
            for place, take, column in takes:
                column.append(take(line[place]))
        except (IndexError, ValueError) as error:
            raise ToolError(f"{file}: row {number}: {error}; the file was changed by hand or damaged: put it back") from None
    raw: dict[str, Any] = {name: Texts.of(kept[name]) for name in TEXTS}
    raw |= {name: (np.zeros(len(kept["id"]), np.int64), [""]) for name in ADDED}
    raw |= {name: (np.array(kept[name], np.int64), list(words[name])) for name in words}
    raw |= {name: np.array(kept[name], np.float64) for name in NUMBERS}
    return raw | {name: np.array(kept[name], bool) for name in FLAGS}


def _number(text: str) -> float:
    return float(text) if text else float("nan")


def _flag(text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise ValueError(f"{text!r} is neither True nor False")
    return text.lower() == "true"
