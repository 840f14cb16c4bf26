"""The rows of a data set before any picture is opened: id, label, split and where the picture is.

Labels as people write them (text, whole numbers, both) become numbers 0..K-1, class names and notes.
"""

import math
import os
import re
import unicodedata
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labelsieve.data.pictures.origins import Index, Origin
from labelsieve.errors import ToolError, suggest

WHOLE = re.compile(r"[+-]?\d+(?:\.0*)?")  # 3.0, too: what tables make of whole numbers when some are missing
MISSING = -1


@dataclass(frozen=True)
class Labels:
    """`codes` (N,) int64 in 0..K-1, or -1 where the label is missing; `classes` as the user wrote them."""

    codes: NDArray[np.int64]
    classes: tuple[str, ...]
    notes: tuple[str, ...] = ()


def name_labels(values: Sequence[Any], place: str, classes: Sequence[str] | None = None) -> Labels:
    """Labels by their text. Classes in the given order, else by number where all are whole, else by text."""
    firsts: dict[tuple[type, Any], int] = {}
    try:
        # The type belongs to the key: 1, 1.0 and True are equal to Python.
        seen = [firsts.setdefault((type(value), value), row) for row, value in enumerate(values)]
    except TypeError:
        bad = next(row for row, value in enumerate(values) if isinstance(value, (list, dict, set)))
        raise ToolError(f"{place}: row {bad + 1}: the label is a {type(values[bad]).__name__}; give one label per row") from None
    words = {row: _word(value, f"{place}: row {row + 1}") for (_, value), row in firsts.items()}
    if classes is not None:
        words = {row: word and spelt_as(word, classes) for row, word in words.items()}
    names = _ordered(words, classes, place)
    number: dict[str | None, int] = {name: k for k, name in enumerate(names)}
    number[None] = MISSING
    code_of = {row: number[word] for row, word in words.items()}
    codes = np.fromiter((code_of[first] for first in seen), np.int64, len(seen))
    return Labels(codes, tuple(names), _notes([value for _, value in firsts]))


def number_labels(values: Sequence[Any], names: Sequence[str], place: str) -> Labels:
    """Whole numbers that index `names`; -1 and None are missing."""
    plain = [MISSING if value is None else value for value in values]
    codes = np.asarray(plain)
    if codes.dtype.kind not in "ui":
        raise ToolError(f"{place}: labels are {codes.dtype}, but names of classes go with whole numbers")
    outside = np.flatnonzero((codes < MISSING) | (codes >= len(names)))
    if len(outside):
        row = int(outside[0])
        raise ToolError(f"{place}: row {row + 1} has label {codes[row]}, outside 0..{len(names) - 1}")
    return Labels(codes.astype(np.int64), tuple(names))


def _word(value: Any, place: str) -> str | None:
    if isinstance(value, bytes):
        try:
            value = value.decode()
        except UnicodeDecodeError:
            raise ToolError(f"{place}: the label's bytes are not UTF-8; store labels as text") from None
    if isinstance(value, str):
        return value.strip() or None
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    if isinstance(value, (int, float)):
        return str(value)
    raise ToolError(f"{place}: the label is a {type(value).__name__}; give text or a whole number")


def name_of(value: Any) -> str | None:
    """One label as the name of its class; None for none."""
    return _word(value, "label")


def _ordered(words: dict[int, str | None], classes: Sequence[str] | None, place: str) -> list[str]:
    present = {word for word in words.values() if word is not None}
    if classes is None:
        if all(WHOLE.fullmatch(word) for word in present):
            return sorted(present, key=lambda word: (float(word), word))
        return sorted(present)
    strange = [(row, word) for row, word in words.items() if word is not None and word not in set(classes)]
    if strange:
        row, word = strange[0]
        more = f" ({len(strange)} such labels)" if len(strange) > 1 else ""
        raise ToolError(
            f'{place}: row {row + 1}: label "{word}" is not one of {len(classes)} classes'
            f"{suggest(word, classes)}{more}; correct it, or add it to the classes"
        )
    return list(classes)


def spelt_as(word: str, names: Container[str]) -> str:
    """The word as `names` has it, where they differ only in how Unicode stores letters with accents; else as it is."""
    if word in names or word.isascii():
        return word
    forms = (unicodedata.normalize(form, word) for form in ("NFC", "NFD"))
    return next((form for form in forms if form in names), word)


def _notes(values: list[Any]) -> tuple[str, ...]:
    notes = []
    kinds = {"text" if isinstance(value, (str, bytes)) else "numbers" for value in values if value is not None}
    if len(kinds) > 1:
        notes.append("some labels are numbers and some are text: all are taken as text")
    if any(isinstance(value, str) and value != value.strip() and value.strip() for value in values):
        notes.append("spaces around labels are left out")
    return tuple(notes)


def looks_alike(classes: Sequence[str]) -> list[tuple[str, str]]:
    """Pairs of class names that differ only in case, spaces, hyphens, underscores or Unicode form, or write the same number."""
    plain: dict[str, str] = {}
    pairs = []
    for name in classes:
        number = re.fullmatch(r"([+-]?\d+)(?:\.0*)?", name)
        key = str(int(number[1])) if number else re.sub(r"[\s_-]+", "", unicodedata.normalize("NFKC", name)).casefold()
        first = plain.setdefault(key, name)
        if first != name:
            pairs.append((first, name))
    return pairs


TRAIN, VAL, TEST = 0, 1, 2
SPLITS = ("train", "val", "test")
SPLIT_NAMES = {
    "train": TRAIN,
    "training": TRAIN,
    "val": VAL,
    "valid": VAL,
    "validation": VAL,
    "dev": VAL,
    "test": TEST,
    "testing": TEST,
}


@dataclass(frozen=True)
class LeftOut:
    """A picture that was listed and is not used, and why."""

    id: str
    path: str
    reason: str


@dataclass(frozen=True)
class Listing:
    """Rows in the order train, val, test. `labels` (N,) int64 in 0..K-1, `splits` (N,) int8.

    `ignored` counts what was passed over without a row (hidden files, files that are no pictures). `refuse_leaving`
    says that a path which leaves the root is an error rather than one picture less. `gone` are paths of files that are no longer
    there and were when the run began: the cache may hold them.
    """

    place: Path
    origin: Origin
    ids: Sequence[str]
    labels: NDArray[np.int64]
    classes: tuple[str, ...]
    splits: NDArray[np.int8]
    notes: tuple[str, ...] = ()
    ignored: Mapping[str, int] = field(default_factory=dict)
    empty_classes: tuple[str, ...] = ()
    left_out: tuple[LeftOut, ...] = ()
    refuse_leaving: bool = False
    gone: frozenset[str] = frozenset()

    def __len__(self) -> int:
        return len(self.labels)

    def gone_rows(self) -> list[int]:
        return [row for row in range(len(self)) if self.origin.path(row) in self.gone] if self.gone else []

    def take(self, index: Index) -> "Listing":
        """The rows at `index`; the classes stay."""
        return replace(
            self,
            origin=self.origin.take(index),
            ids=[self.ids[row] for row in index.tolist()],
            labels=self.labels[index],
            splits=self.splits[index],
        )

    def without(self, reasons: Mapping[int, str]) -> "Listing":
        """The listing less the rows in `reasons`, which are told in `left_out`."""
        if not reasons:
            return self
        told = tuple(
            LeftOut(readable_name(self.ids[row]), readable_name(self.origin.path(row)), why) for row, why in reasons.items()
        )
        keep = np.ones(len(self), bool)
        keep[list(reasons)] = False
        return replace(self.take(np.flatnonzero(keep)), left_out=(*self.left_out, *told))


def arranged(listing: Listing) -> Listing:
    """Rows in the order train, val, test, so that each split is one stretch of the cache."""
    if np.all(np.diff(listing.splits) >= 0):
        return listing
    return listing.take(np.argsort(listing.splits, kind="stable").astype(np.int64))


def trained_classes(
    labels: NDArray[np.int64], splits: NDArray[np.int8], classes: Sequence[str], place: Path
) -> tuple[NDArray[np.int64], tuple[str, ...], tuple[str, ...]]:
    """Labels anew for the classes that the training split has, -1 for others; these classes; and what is left out, in words."""
    counts = np.bincount(labels[splits == TRAIN], minlength=len(classes))
    if len(classes) - int((counts == 0).sum()) < 2:
        raise ToolError(f"{place}: training pictures of fewer than two classes; a classifier needs two")
    notes = []
    number = {name: k for k, name in enumerate(name for name, count in zip(classes, counts) if count)}
    # What one system wrote as test and another as train may store the same name in two ways.
    anew = np.array([number.get(spelt_as(name, number), -1) for name in classes], np.int64)
    gone = [f'"{name}"' for name, code in zip(classes, anew) if code < 0]
    if gone:
        notes.append(f"no training picture for {', '.join(gone)}: left out of the classes")
    codes = anew[labels]
    for split in (VAL, TEST):
        notes += untrained(int((codes[splits == split] < 0).sum()), split)
    return codes, tuple(number), tuple(notes)


def untrained(count: int, split: int) -> list[str]:
    """What is said of so many pictures to measure on whose classes are not trained on."""
    are = "picture is of a class" if count == 1 else "pictures are of classes"
    return [f"{count:,} {SPLITS[split]} {are} without training pictures"] if count else []


def readable_name(name: str) -> str:
    """A file name as text that every file can hold: bytes that are not UTF-8 become \\x escapes."""
    if name.isascii():
        return name
    try:
        return os.fsencode(name).decode("utf-8", "backslashreplace")
    except UnicodeEncodeError:  # half of a surrogate pair, which JSON can hold and no file name can
        return name.encode("utf-8", "backslashreplace").decode()
