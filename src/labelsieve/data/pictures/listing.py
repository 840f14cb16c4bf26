"""The rows of a data set before any picture is opened: id, label, split and where the picture is."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from labelsieve.data.pictures.labels import spelt_as
from labelsieve.data.pictures.origins import Index, Origin
from labelsieve.errors import ToolError

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
