"""CIFAR-10N and CIFAR-100N: the labels that people gave, from the official label file and CIFAR's own labels.

The file holds `clean_label` beside them. It must say what the data set says: else it is of another set or in another order.
"""

from pathlib import Path
from typing import Any

import numpy as np

from labelsieve.data.draws import IntArray
from labelsieve.data.torch_file import read_saved
from labelsieve.errors import ToolError, UsageError, suggest

CLEAN = "clean_label"
COLUMNS = {
    "aggre": "aggre_label",
    "worse": "worse_label",
    "random1": "random_label1",
    "random2": "random_label2",
    "random3": "random_label3",
    "noisy": "noisy_label",
    "fine": "noisy_label",
}
FORM = "cifar-n:FILE:KIND"


def human_labels(argument: str, true: IntArray, classes: int) -> IntArray:
    """Labels (N,) of one kind; `argument` is FILE:KIND, `true` (N,) are the data set's own."""
    file, _, kind = argument.rpartition(":")
    if not file or kind not in COLUMNS:
        raise UsageError(
            f'cifar-n needs a file and a kind of labels, not "{argument}"{suggest(kind, COLUMNS)}; write {FORM} with one of '
            f"{', '.join(COLUMNS)}"
        )
    path = Path(file).expanduser()
    content = read_saved(path)
    key = COLUMNS[kind]
    if CLEAN not in content or key not in content:
        missing = key if CLEAN in content else CLEAN
        raise ToolError(
            f'{path}: it has no "{missing}", only {", ".join(sorted(content)) or "nothing"}; CIFAR-10N has aggre, worse and '
            f"random1 to random3, CIFAR-100N has noisy"
        )
    clean, noisy = (_column(content[name], name, len(true), classes, path) for name in (CLEAN, key))
    other = np.flatnonzero(clean != true)
    if len(other):
        raise ToolError(
            f"{path}: its clean labels differ from the data set's in {len(other):,} of {len(true):,} rows, "
            f"first in row {other[0]} ({clean[other[0]]}, here {true[other[0]]}); "
            f"the file is of another data set, or of another order of it"
        )
    return noisy


def _column(values: Any, name: str, rows: int, classes: int, path: Path) -> IntArray:
    if not isinstance(values, np.ndarray) and not (isinstance(values, list) and all(type(value) is int for value in values)):
        raise ToolError(f'{path}: "{name}" is no list of whole numbers; fetch the file again')
    found = np.asarray(values)
    if found.ndim != 1 or found.dtype.kind not in "ui":
        raise ToolError(f'{path}: "{name}" is {found.dtype} {found.shape}; it must be whole numbers (N,); fetch the file again')
    if len(found) != rows:
        raise ToolError(
            f'{path}: "{name}" has {len(found):,} labels for {rows:,} samples; use the file made for this data set, '
            f"and the whole data set (no --limit)"
        )
    labels = found.astype(np.int64)
    outside = np.flatnonzero((labels < 0) | (labels >= classes))
    if len(outside):
        row = outside[0]
        raise ToolError(f'{path}: row {row} of "{name}" is {labels[row]}, outside 0..{classes - 1}; is it for this data set?')
    return labels
