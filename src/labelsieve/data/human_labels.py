"""CIFAR-10N and CIFAR-100N: the labels that people gave, from the official label file and CIFAR's own labels.

The file holds `clean_label` beside them. It must say what the data set says: else it is of another set or in another order.
"""

import io
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from labelsieve import doors
from labelsieve.data.draws import IntArray
from labelsieve.data.safe_pickle import read_plain
from labelsieve.errors import ToolError, UsageError, suggest

LARGEST = 2**28  # bytes of pickle: a label file has a few million
LEGACY = 3  # pickles before the content in the older form: a magic number, a version, facts of the machine


def read_saved(path: Path) -> dict[str, Any]:
    """The dict that was saved, its keys as text; a `ToolError` for anything else."""
    with doors.reading(path, "fetch it again"):
        content = doors.read_bytes(path, LARGEST, follow=True)
        if zipfile.is_zipfile(io.BytesIO(content)):
            return read_plain(_pickle_inside(content), str(path))
        return read_plain(content, str(path), skip=LEGACY)


def _pickle_inside(content: bytes) -> bytes:
    """The one data.pkl of the archive. Tensors would lie in other members: label files have none."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        found = [entry for entry in archive.infolist() if entry.filename.rpartition("/")[2] == "data.pkl"]
        if len(found) != 1:
            raise doors.Damage("a zip archive without the data.pkl of torch.save; is it the right file?")
        if found[0].file_size > LARGEST:
            raise doors.Damage(f"it unpacks to {found[0].file_size:,} bytes, which no label file does")
        return archive.read(found[0])


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
