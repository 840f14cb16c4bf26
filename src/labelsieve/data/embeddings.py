"""Opens vectors with labels (.npz, .npy with its labels beside it, or Parquet) as a `Collection`.

The vectors stand where pictures stand: `NoisyData.images` is float32 (N, D), so `images.ndim == 2` tells them from
pictures. `mean` and `std` are per dimension (D,), of the vectors as they are; nothing is mirrored.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from labelsieve.data.arrays import Numbered, without_empty
from labelsieve.data.noisy_data import (
    Collection,
    Held,
    Loaded,
    NoisyData,
    Truth,
    checked,
    checked_held,
    checked_truth,
    vector_statistics,
)
from labelsieve.data.npz import (
    COLUMNS,
    Array,
    held_keys,
    ids_by_key,
    keys_by_role,
    misshapen,
    nothing_found,
    plain_labels,
    read_npy,
    read_npz,
    sample_keys,
    words,
)
from labelsieve.data.pictures.arrow import is_vector, parquet_columns, parquet_file, pyarrow_for
from labelsieve.data.pictures.listing import (
    MISSING,
    SPLITS,
    TEST,
    TRAIN,
    VAL,
    Labels,
    name_labels,
    number_labels,
    trained_classes,
)
from labelsieve.data.pictures.manifest import check_unique, ids_of, splits_of
from labelsieve.data.pictures.options import PictureOptions, named
from labelsieve.data.pictures.tables import SUFFIXES, ParquetTable, columns_for, needed, open_table, read_cells, text_of
from labelsieve.errors import ToolError, UsageError

BESIDE = ("labels.npy", "y.npy", "labels.txt", "labels.csv", "labels.tsv")


@dataclass(frozen=True)
class VectorRows:
    """A file as it was read: values (N, D), and where it has them ids (N,) and splits (N,)."""

    path: Path
    values: Tensor
    labels: Labels
    ids: list[str] | None
    splits: NDArray[np.int8] | None


@dataclass(frozen=True)
class Measured:
    """Vectors to measure on, the classes that their labels number, and the split they are of, or "all"."""

    held: Held
    classes: tuple[str, ...]
    split: str


def load_embeddings(path: Path | None, options: PictureOptions | None = None) -> Collection:
    """`read_embeddings`, without what is only said."""
    return read_embeddings(path, options).collection


def read_embeddings(path: Path | None, options: PictureOptions | None = None) -> Loaded:
    """The vectors at `path` with their labels.

    .npz: the keys features, embeddings or X, and labels or y; optional ids, classes, true_labels, and for a test set
    test_features (X_test) and test_labels (y_test); more names are in `npz`. .npy: (N, D), its labels in
    `options.labels_file`, or beside it as labels.npy, y.npy, labels.txt (one per line), labels.csv, or <name>_labels.npy.
    Parquet: a column of lists, and as in tables of pictures columns of labels, ids and splits.
    """
    if path is None:
        raise UsageError('embeddings needs a file: write "embeddings:FILE", an .npz, .npy or .parquet')
    if not path.is_file():
        raise ToolError(f"{path}: no such file; write it with numpy.savez(file, features=..., labels=...)")
    options = options or PictureOptions()
    suffix = path.suffix.lower()
    if suffix == ".npz":
        return _from_npz(path, options)
    if suffix == ".npy":
        return _by_split(_npy_rows(path, labels_beside(path, options), options), options.skip_unlabelled)
    if suffix == ".parquet":
        return _by_split(_parquet_rows(path, options), options.skip_unlabelled)
    raise ToolError(f"{path}: vectors are read from .npz, .npy and .parquet; write one of these")


def measured_vectors(path: Path, options: PictureOptions) -> Measured:
    """What of the file at `path` is measured on: its test split, else its val split, else all of it."""
    options, suffix = replace(options, measuring=True), path.suffix.lower()
    if path.is_file() and suffix == ".npy":
        return _measured(_npy_rows(path, labels_beside(path, options), options), options.skip_unlabelled)
    if path.is_file() and suffix == ".parquet":
        return _measured(_parquet_rows(path, options), options.skip_unlabelled)
    found = load_embeddings(path, options)
    held = found.test or Held(found.train.images, found.train.labels)
    return Measured(held, found.train.classes, "all" if found.test is None else SPLITS[TEST])


def _from_npz(path: Path, options: PictureOptions) -> Loaded:
    arrays = read_npz(path)
    found = keys_by_role(arrays, path)
    if "values" not in found or "labels" not in found:
        raise nothing_found(arrays, path)
    key, label = found["values"], found["labels"]
    names = words(arrays["classes"], f'{path}: "classes"') if "classes" in arrays else None
    labels = labels_of(plain_labels(arrays, label), names, options, f'{path}: "{label}"')
    ids = list(words(arrays["ids"], f'{path}: "ids"')) if "ids" in arrays else None
    held = _held(arrays, found, labels, options, path)
    true: Tensor | None = None
    if "true_labels" in arrays:
        true = torch.from_numpy(labels_of(arrays["true_labels"], labels.classes, options, f'{path}: "true_labels"').codes)
    rows = _agreeing(VectorRows(path, vectors(arrays[key], f'{path}: "{key}"'), labels, ids, None))
    rows, places, notes = _labelled(rows, options.skip_unlabelled)
    if true is not None and notes and len(true) == len(labels.codes):
        true = true[torch.from_numpy(places)]
    whole_rows = without_empty(Numbered(torch.from_numpy(rows.labels.codes), true, held, rows.labels.classes), path)
    own_labels = Labels(whole_rows.labels.numpy(), whole_rows.classes)
    truth = None if whole_rows.truth is None else Truth(whole_rows.truth)
    test, val = whole_rows.held.get("test") or whole_rows.held.get("val"), whole_rows.held.get("val")
    return Loaded(_collection(path, rows.values, own_labels, rows.ids, truth, test), val, (*notes, *whole_rows.notes))


def _held(
    arrays: Mapping[str, Array], found: Mapping[str, str], labels: Labels, options: PictureOptions, path: Path
) -> dict[str, Held]:
    """The rows to measure on, by split; of these only the ones that have a label."""
    held = {}
    whole = {"val values", "val labels"} <= found.keys()  # other arrays may be there for other purposes
    for split in ("test", "val") if whole else ("test",):
        if (pair := held_keys(found, split, arrays, path)) is None:
            continue
        codes = labels_of(plain_labels(arrays, pair[1]), labels.classes, options, f'{path}: "{pair[1]}"').codes
        values = vectors(arrays[pair[0]], f'{path}: "{pair[0]}"')
        there = torch.from_numpy(codes != MISSING)
        if len(values) == len(codes) and not there.all():
            values, codes = values[there], codes[codes != MISSING]
        if len(codes) or not len(there):
            held[split] = Held(values, torch.from_numpy(codes))
    return held


def _labelled(rows: VectorRows, skip: bool) -> tuple[VectorRows, NDArray[np.int64], tuple[str, ...]]:
    """The rows that have a label, their places in the file, and what is left out in words.

    Training rows without one are refused, unless `skip`. The others keep the names that they have by their place.
    """
    missing = rows.labels.codes == MISSING
    keep = np.flatnonzero(~missing)
    if not missing.any():
        return rows, keep, ()
    needed_here = missing if rows.splits is None else missing & (rows.splits == TRAIN)
    if needed_here.any() and not skip:
        raise ToolError(
            f"{rows.path}: {needed_here.sum()} rows have no label, the first is row {np.flatnonzero(needed_here)[0] + 1}; "
            f"fill them in, or leave such rows out with {named('skip_unlabelled')}"
        )
    if not len(keep):
        raise ToolError(f"{rows.path}: no row has a label; is it the right label column?")
    names = [f"{row:05d}" for row in keep.tolist()] if rows.ids is None else [rows.ids[row] for row in keep.tolist()]
    labels = Labels(rows.labels.codes[keep], rows.labels.classes, rows.labels.notes)
    splits = None if rows.splits is None else rows.splits[keep]
    left = VectorRows(rows.path, rows.values[torch.from_numpy(keep)], labels, names, splits)
    return left, keep, (f"{missing.sum():,} rows have no label: left out",)


def _by_split(rows: VectorRows, skip: bool) -> Loaded:
    """The training rows, and the others to measure on. VectorRows without ids are named by their place in the whole file."""
    rows, _, bare = _labelled(rows, skip)
    path, values, labels, splits = rows.path, rows.values, rows.labels, rows.splits
    if splits is None:
        return Loaded(_collection(path, values, labels, rows.ids), notes=bare)
    names = [f"{row:05d}" for row in range(len(values))] if rows.ids is None else rows.ids
    check_unique(names, path, "id")
    codes, classes, notes = trained_classes(labels.codes, splits, labels.classes, path)
    held = {}
    for split in (VAL, TEST):
        chosen = torch.from_numpy(np.flatnonzero((splits == split) & (codes >= 0)))
        held[split] = Held(values[chosen], torch.from_numpy(codes)[chosen]) if len(chosen) else None
    train = np.flatnonzero(splits == TRAIN)
    own = _collection(
        path,
        values[torch.from_numpy(train)],
        Labels(codes[train], classes),
        [names[row] for row in train.tolist()],
        test=held[TEST] or held[VAL],
    )
    return Loaded(own, held[VAL], (*bare, *labels.notes, *notes))


def _measured(rows: VectorRows, skip: bool) -> Measured:
    """Where some rows are trained on, only their classes are known, as in a run on the same file."""
    apart = rows.splits is not None and bool((rows.splits != TRAIN).any())
    rows, _, _ = _labelled(rows, skip or apart)
    labels, splits = rows.labels, np.zeros(len(rows.values), np.int8) if rows.splits is None else rows.splits
    train = splits == TRAIN
    known = np.isin(labels.codes, labels.codes[train]) if train.any() else np.ones(len(splits), bool)
    for split in (TEST, VAL, TRAIN):
        chosen = np.flatnonzero((splits == split) & known)
        if len(chosen):
            index = torch.from_numpy(chosen)
            held = Held(rows.values[index], torch.from_numpy(labels.codes[chosen]))
            return Measured(held, labels.classes, "all" if split == TRAIN else SPLITS[split])
    raise ToolError(f"{rows.path}: it has no rows to measure on; add some with labels")


def _collection(
    path: Path,
    values: Tensor,
    labels: Labels,
    ids: list[str] | None,
    truth: Truth | None = None,
    test: Held | None = None,
) -> Collection:
    names = tuple(f"{row:05d}" for row in range(len(values))) if ids is None else tuple(ids)
    train = checked(NoisyData(values, torch.from_numpy(labels.codes), names, labels.classes), str(path))
    if test is not None:
        checked_held(test, train, str(path))
    if truth is not None:
        checked_truth(truth, train, str(path))
    mean, std = vector_statistics(values)
    return Collection("embeddings", train, truth, test, mean, std, mirror=False)


def new_vectors(path: Path, options: PictureOptions | None = None) -> tuple[list[str], Tensor]:
    """Ids (N,) and vectors (N, D) of a file that needs no labels; without ids, the rows are numbered as in `load_embeddings`."""
    options, suffix = options or PictureOptions(), path.suffix.lower()
    if suffix == ".npz":
        return _new_in_npz(path)
    ids: list[Any] | None = None
    if suffix == ".npy":
        found = read_npy(path)
    elif suffix == ".parquet":
        file = parquet_file(path)
        column, others = _vector_column(file, path, options)
        found = matrix(parquet_columns(path, [column]).column(column), path, column)
        ids = read_cells(ParquetTable(path), columns_for(others, options, path, (), ["id"])).get("id")
    else:
        raise ToolError(f"{path}: vectors are read from .npz, .npy and .parquet; give one of these")
    read = vectors(found, str(path))
    return [f"{row:05d}" for row in range(len(read))] if ids is None else [str(value) for value in ids], read


def _new_in_npz(path: Path) -> tuple[list[str], Tensor]:
    """Of every split; the rows of those that are not trained on are "val/00000" and "test/00000"."""
    arrays = read_npz(path)
    keys = sample_keys(arrays, path)
    read = {key: vectors(arrays[key], f'{path}: "{key}"') for key in keys.values()}
    lengths = {key: some.shape[1] for key, some in read.items()}
    if len(set(lengths.values())) > 1:
        listed = ", ".join(f'{length} in "{key}"' for key, length in lengths.items())
        raise ToolError(f"{path}: vectors of several lengths, {listed}; make them alike")
    given = words(arrays["ids"], f'{path}: "ids"') if "ids" in arrays else None
    return ids_by_key(keys, {key: len(some) for key, some in read.items()}, given, path), torch.cat(list(read.values()))


def vectors(values: Array, place: str) -> Tensor:
    """float32 (N, D), or a `ToolError` for another shape, for values that are not numbers, or not finite."""
    if values.ndim != 2 or values.shape[1] == 0:
        raise ToolError(f"{place}: the shape is {values.shape}; vectors must be (N, D), one row per sample")
    if values.dtype.kind not in "fui":
        raise ToolError(f"{place}: the values are {values.dtype}; vectors must be numbers")
    with np.errstate(over="ignore"):
        plain = np.array(values, dtype=np.float32, order="C")
    bad = np.flatnonzero(~np.isfinite(plain).all(axis=1))
    if len(bad):
        raise ToolError(
            f"{place}: row {bad[0]} has a value that is NaN, infinite or beyond float32 ({len(bad)} such rows); "
            f"remove or fix them"
        )
    return torch.from_numpy(plain)


def _npy_rows(path: Path, beside: Path, options: PictureOptions) -> VectorRows:
    """A table of labels may hold ids and splits, too."""
    values, ids, splits = vectors(read_npy(path), str(path)), None, None
    if beside.suffix.lower() in SUFFIXES:
        table = open_table(beside, options.encoding)
        read = read_cells(table, columns_for(table.columns, options, beside, ["label"], ["id", "split"]))
        labels = name_labels(read["label"], str(beside), options.classes)
        ids, splits = _ids_and_splits(read, beside, options)
    else:
        labels = _label_list(beside, options)
    return _agreeing(VectorRows(path, values, labels, ids, splits), beside)


def labels_beside(path: Path, options: PictureOptions) -> Path:
    """The file of labels that belongs to an .npy file."""
    if options.labels_file is not None:
        return options.labels_file
    for name in (f"{path.stem}_labels.npy", *BESIDE):
        if (path.parent / name).is_file() and path.parent / name != path:
            return path.parent / name
    names = ", ".join((f"{path.stem}_labels.npy", *BESIDE))
    raise UsageError(f"{path}: no labels beside it ({names}); name the file with {named('labels_file')}")


def _label_list(path: Path, options: PictureOptions) -> Labels:
    if path.suffix.lower() == ".npy":
        return labels_of(plain_labels({"": read_npy(path)}, ""), None, options, str(path))
    if not path.is_file():
        raise ToolError(f"{path}: no such file; check the path of the labels")
    with text_of(path, options.encoding) as stream:
        found = [line.rstrip("\r\n") for line in stream]
    while found and not found[-1]:
        del found[-1]
    return name_labels(found, str(path), options.classes)


def _parquet_rows(path: Path, options: PictureOptions) -> VectorRows:
    file = parquet_file(path)
    column, others = _vector_column(file, path, options)
    chosen = columns_for(others, options, path, ["label"], ["id", "split"])
    values = vectors(matrix(parquet_columns(path, [column]).column(column), path, column), str(path))
    read = read_cells(ParquetTable(path), chosen)
    return _agreeing(
        VectorRows(path, values, name_labels(read["label"], str(path), options.classes), *_ids_and_splits(read, path, options))
    )


def _ids_and_splits(
    read: Mapping[str, list[Any]], path: Path, options: PictureOptions
) -> tuple[list[str] | None, NDArray[np.int8] | None]:
    """What a table says beside labels."""
    ids = ids_of(read["id"], path) if "id" in read else None
    return ids, splits_of(read["split"], path, options.measuring) if "split" in read else None


def _agreeing(rows: VectorRows, beside: Path | None = None) -> VectorRows:
    """The rows, or a `ToolError` where there is not one label, and where there are ids one id, for each."""
    count, labels = len(rows.values), len(rows.labels.codes)
    ids = count if rows.ids is None else len(rows.ids)
    if labels != count or ids != count:
        named_too = "" if rows.ids is None else f", {ids} ids"
        where = "" if beside is None else f" in {beside.name}"
        raise ToolError(f"{rows.path}: {count} vectors, {labels} labels{where}{named_too}; the counts must agree")
    return rows


def labels_of(values: Array, names: Any, options: PictureOptions, place: str) -> Labels:
    """By number where names go with whole numbers that are their places; else by their text."""
    if values.ndim != 1:
        raise misshapen(values, place)
    names = None if names is None else [str(name) for name in names]
    if names is not None and values.dtype.kind in "ui" and not {str(value) for value in values} <= set(names):
        return number_labels(values.tolist(), names, place)
    return name_labels(values.tolist(), place, options.classes or names)


def _vector_column(file: Any, path: Path, options: PictureOptions) -> tuple[str, list[str]]:
    """The column of a Parquet file that holds vectors, and those that hold none."""
    lists = [field.name for field in file.schema_arrow if is_vector(field.type, path)]
    usual_names = COLUMNS if len(lists) != 1 else (lists[0].lower(),)
    column = needed(lists, options.image_column, usual_names, "image_column", path)
    return column, [name for name in file.schema_arrow.names if name not in lists]


def matrix(column: Any, path: Path, name: str) -> NDArray[Any]:
    """(N, D) of a column of lists, or a `ToolError` where they differ in length."""
    lengths = pyarrow_for(path).compute.list_value_length(column).to_pylist()
    odd = next((row for row, length in enumerate(lengths) if length != lengths[0] or length is None), None)
    if odd is not None:
        raise ToolError(
            f'{path}: "{name}": row {odd + 1} has {lengths[odd] or 0} numbers, row 1 has {lengths[0] or 0}; '
            f"vectors must have one length"
        )
    flat = column.combine_chunks().flatten()
    return np.asarray(flat.to_numpy(zero_copy_only=False)).reshape(len(lengths), -1 if lengths else 0)
