"""Leaves out the rows of an .npz that have no label, with a sentence on what was left out.

No label is: empty text, a float that is no number, or -1.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from labelsieve.data.npz import Array
from labelsieve.data.npz_keys import held_keys, plain_labels
from labelsieve.data.pictures.labels import MISSING
from labelsieve.errors import ToolError


def without_label(labels: Array) -> NDArray[np.bool_]:
    """(N,) where labels (N,) say nothing."""
    if labels.dtype.kind in "US":
        return np.char.str_len(np.char.strip(labels)) == 0
    if labels.dtype.kind == "f":
        return np.isnan(labels)
    return labels == MISSING if labels.dtype.kind == "i" else np.zeros(len(labels), bool)


def labelled_rows(arrays: Mapping[str, Array], found: Mapping[str, str], path: Path) -> tuple[dict[str, Array], tuple[str, ...]]:
    """Rows keep the names that they have by their place in the file. A test set without any label is no test set."""
    left, notes = dict(arrays), []
    left.setdefault("ids", np.array([f"{row:05d}" for row in range(len(arrays[found["labels"]]))]))
    bare = _leave_out(left, found["labels"], (found["values"], "ids", "true_labels"))
    if bare and not len(left[found["labels"]]):
        raise ToolError(f"{path}: no row has a label; are these the right labels?")
    notes += [f"{bare:,} rows have no label: left out"] if bare else []
    for split in ("test", "val"):
        pair = held_keys(found, split, arrays, path)
        bare = 0 if pair is None else _leave_out(left, pair[1], (pair[0],))
        notes += [f"{bare:,} {split} rows have no label: left out"] if bare else []
        if pair is not None and bare and not len(left[pair[1]]):
            del left[pair[0]], left[pair[1]]
    return left, tuple(notes)


def _leave_out(arrays: dict[str, Array], labels: str, others: Sequence[str]) -> int:
    """Take the rows without a label out of the labels and of what goes with them; how many these are."""
    column = plain_labels(arrays, labels)
    bare = without_label(column) if column.ndim == 1 else np.zeros(0, bool)
    for key in (*others, labels):  # arrays of other lengths are refused by who reads them
        if bare.any() and key in arrays and arrays[key].ndim and len(arrays[key]) == len(bare):
            arrays[key] = arrays[key][~bare]
    return int(bare.sum())
