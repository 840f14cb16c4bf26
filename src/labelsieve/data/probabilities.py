"""Reads predicted probabilities and given labels from an .npz or a table, and checks every row."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labelsieve.data.embeddings import labels_of, matrix
from labelsieve.data.npz import LABELS, Array, first_of, plain_labels, read_npz, words
from labelsieve.data.pictures.arrow import is_vector, parquet_columns, parquet_file
from labelsieve.data.pictures.listing import MISSING, Labels, name_labels, number_labels
from labelsieve.data.pictures.manifest import check_unique, ids_of
from labelsieve.data.pictures.options import PictureOptions
from labelsieve.data.pictures.tables import SUFFIXES, columns_for, open_table, read_cells
from labelsieve.doors import short
from labelsieve.errors import ToolError

KEYS = (("pred_probs", "probs", "probabilities", "predicted_probabilities"),)
OFF = 1e-2  # a sum of rounded shares is off by no more


@dataclass(frozen=True, eq=False)
class Probabilities:
    """`values` (N, K), every row adding up to 1; the columns are `labels.classes`."""

    ids: list[str]
    labels: Labels
    values: Array
    paths: list[str] | None = None


def read_probabilities(path: Path, options: PictureOptions) -> Probabilities:
    """An .npz has pred_probs (N, K) and labels (N,), perhaps ids and classes. A table has a column for each class."""
    suffix = path.suffix.lower()
    if not path.is_file():
        raise ToolError(f"{path}: no such file; write it with numpy.savez(file, pred_probs=..., labels=...)")
    if suffix not in (".npz", *SUFFIXES):
        raise ToolError(f"{path}: probabilities are read from .npz, {', '.join(SUFFIXES)}; write one of these")
    found = _in_npz(path, options) if suffix == ".npz" else _in_table(path, options)
    missing = np.flatnonzero(found.labels.codes == MISSING)
    if len(missing):
        raise ToolError(f"{path}: row {missing[0] + 1} has no label ({len(missing)} such rows); fill it in or leave the row out")
    check_unique(found.ids, path, "id")
    return found


def shares(values: Any, rows: int, classes: int, place: str, first: int = 0) -> Array:
    """`values` as floats (N, K) that add up to 1 in every row, or a `ToolError` that names the first bad row.

    `first` is the number of the first row: 0 in arrays, 1 in tables.
    """
    found = np.asarray(values)
    if found.dtype.kind not in "fiub":
        raise ToolError(f"{place}: the values are {found.dtype}; probabilities must be numbers")
    if found.shape != (rows, classes):
        raise ToolError(f"{place}: the shape is {found.shape}; {rows} labels of {classes} classes need ({rows}, {classes})")
    found = found.astype(found.dtype if found.dtype in (np.float32, np.float64) else np.float32)
    sums = found.sum(1, dtype=np.float64)
    with np.errstate(invalid="ignore"):
        bad = np.flatnonzero(~np.isfinite(sums) | (found < 0).any(1) | ~(np.abs(sums - 1) <= OFF))
    if len(bad):
        row = int(bad[0])
        raise ToolError(f"{place}: row {row + first} {_why(found[row])} ({len(bad)} such rows); {_remedy(found[bad])}")
    found /= sums[:, None].astype(found.dtype)
    return found


def _why(row: Array) -> str:
    if not np.isfinite(row).all():
        return f"has {row[~np.isfinite(row)][0]}"
    if (row < 0).any():
        return f"has {row.min():g}, and no share is negative"
    return f"adds up to {row.sum(dtype=np.float64):.4g}, not to 1"


def _remedy(bad: Array) -> str:
    if not np.isfinite(bad).all():
        return "leave such rows out, or predict them again"
    return "each row must be the shares of all classes: a softmax's output, no logits, and no class left out"


def _in_npz(path: Path, options: PictureOptions) -> Probabilities:
    arrays = read_npz(path)
    key, label = first_of(arrays, KEYS, path), first_of(arrays, LABELS, path)
    if key is None or label is None:
        wanted = "pred_probs (N, K)" if key is None else "labels (N,)"
        raise ToolError(f"{path}: it has no {wanted}; the keys are {', '.join(arrays) or 'none'}")
    values, given, place = arrays[key], plain_labels(arrays, label), f'{path}: "{label}"'
    if values.ndim != 2:
        raise ToolError(f'{path}: "{key}": the shape is {values.shape}; probabilities must be (N, K), a column per class')
    names = words(arrays["classes"], f'{path}: "classes"') if "classes" in arrays else options.classes
    if names is None and given.dtype.kind in "iu" and given.ndim == 1:
        labels = number_labels(given.tolist(), [str(k) for k in range(values.shape[1])], place)
    else:
        labels = labels_of(given, names, options, place)
    ids = list(words(arrays["ids"], f'{path}: "ids"')) if "ids" in arrays else _numbers(len(given))
    return _agreeing(ids, labels, values, f'{path}: "{key}"')


def _in_table(path: Path, options: PictureOptions) -> Probabilities:
    table = open_table(path, options.encoding)
    chosen = columns_for(table.columns, options, path, ["label"], ["id", "image"])
    read = read_cells(table, chosen)
    given = read["label"]
    paths = ids_of(read["image"], path) if "image" in read else None
    ids = ids_of(read["id"], path) if "id" in read else paths or _numbers(len(given))
    vector = _vector_column(path)
    if vector is not None:
        values = matrix(parquet_columns(path, [vector]).column(vector), path, vector)
        classes = options.classes
        if classes is None and all(isinstance(one, int) for one in given):
            classes = tuple(str(k) for k in range(values.shape[1]))
    else:
        classes = options.classes or tuple(one for one in table.columns if one not in chosen.values())
        values = _columns(table.read(_there(classes, table.columns, path)), classes, path)
    return _agreeing(ids, _labels(given, classes, f'{path}: "{chosen["label"]}"'), values, str(path), paths, 1)


def _agreeing(
    ids: list[str], labels: Labels, values: Array, place: str, paths: list[str] | None = None, first: int = 0
) -> Probabilities:
    count = len(labels.codes)
    if len(ids) != count:
        raise ToolError(f"{place}: {len(ids)} ids for {count} labels; write one for each")
    if len(labels.classes) < 2:
        raise ToolError(f"{place}: there is {len(labels.classes)} class; at least two are needed to tell a wrong label")
    return Probabilities(ids, labels, shares(values, count, len(labels.classes), place, first), paths)


def _labels(given: Sequence[Any], classes: Sequence[str] | None, place: str) -> Labels:
    """By name; where no class is called so and all are whole numbers, by place."""
    words = {str(one).strip() for one in given if one is not None}
    if classes is not None and words.isdisjoint(classes) and words and all(word.isascii() and word.isdigit() for word in words):
        return number_labels([None if one is None else int(one) for one in given], classes, place)
    return name_labels(given, place, classes)


def _there(classes: Sequence[str], columns: Sequence[str], path: Path) -> Sequence[str]:
    lost = next((name for name in classes if name not in columns), None)
    if lost is not None:
        raise ToolError(f'{path}: the class "{lost}" has no column; the columns are {", ".join(columns)}')
    twice = next((name for name in classes if list(columns).count(name) > 1), None)
    if twice is not None:
        raise ToolError(f'{path}: two columns are named "{twice}"; rename one')
    if not classes:
        raise ToolError(f"{path}: it has no columns of probabilities; add one for each class, named as the class")
    return classes


def _columns(found: Sequence[Sequence[Any]], classes: Sequence[str], path: Path) -> NDArray[np.float64]:
    """(N, K) of a column per class."""
    values = np.empty((len(found[0]), len(found)))
    for k, (name, column) in enumerate(zip(classes, found)):
        try:
            values[:, k] = np.array(column, dtype=np.float64)
        except (TypeError, ValueError, OverflowError):
            row = next(row for row, value in enumerate(column) if not _is_number(value))
            raise ToolError(
                f'{path}: row {row + 1}: "{name}" is {short(repr(column[row]))}, and no number; correct it, or name the columns '
                "that are classes with classes (--classes)"
            ) from None
    return values


def _is_number(value: Any) -> bool:
    try:
        float(value)
    except (TypeError, ValueError, OverflowError):
        return False
    return True


def _vector_column(path: Path) -> str | None:
    """The column of lists of a Parquet file, where there is one."""
    if path.suffix.lower() != ".parquet":
        return None
    lists = [field.name for field in parquet_file(path).schema_arrow if is_vector(field.type, path)]
    if len(lists) > 1:
        lists = [name for name in lists if name in KEYS[0]] or lists
    if len(lists) > 1:
        raise ToolError(f"{path}: the columns {' and '.join(lists)} are lists; call that of the probabilities pred_probs")
    return lists[0] if lists else None


def _numbers(count: int) -> list[str]:
    return [f"{row:05d}" for row in range(count)]
