"""Reads files of vectors (.npz, .npy with its labels beside, Parquet): values, labels, ids and splits."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from labelsieve.data.npz import COLUMNS, Array, ids_by_key, misshapen, plain_labels, read_npy, read_npz, sample_keys
from labelsieve.data.pictures.arrow import is_vector, parquet_columns, parquet_file, pyarrow_for
from labelsieve.data.pictures.columns import columns_for, needed
from labelsieve.data.pictures.labels import Labels, name_labels, number_labels
from labelsieve.data.pictures.manifest import ids_of, splits_of
from labelsieve.data.pictures.options import PictureOptions, named
from labelsieve.data.pictures.tables import SUFFIXES, ParquetTable, open_table, read_cells, text_of
from labelsieve.errors import ToolError, UsageError

BESIDE = ("labels.npy", "y.npy", "labels.txt", "labels.csv", "labels.tsv")


@dataclass(frozen=True)
class Rows:
    """A file as it was read: values (N, D), and where it has them ids (N,) and splits (N,)."""

    path: Path
    values: Tensor
    labels: Labels
    ids: list[str] | None
    splits: NDArray[np.int8] | None


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
    given = [str(value) for value in arrays["ids"].tolist()] if "ids" in arrays else None
    return ids_by_key(keys, {key: len(some) for key, some in read.items()}, given, path), torch.cat(list(read.values()))


def vectors(values: Array, place: str) -> Tensor:
    """float32 (N, D), or a `ToolError` for another shape, for values that are not numbers, or not finite."""
    if values.ndim != 2 or values.shape[1] == 0:
        raise ToolError(f"{place}: the shape is {values.shape}; vectors must be (N, D), one row a sample")
    if values.dtype.kind not in "fui":
        raise ToolError(f"{place}: the values are {values.dtype}; vectors must be numbers")
    with np.errstate(over="ignore"):
        plain = np.array(values, dtype=np.float32, order="C")
    bad = np.flatnonzero(~np.isfinite(plain).all(axis=1))
    if len(bad):
        raise ToolError(
            f"{place}: row {bad[0]} has a value that is NaN, infinite or beyond float32 ({len(bad)} such rows); "
            f"remove or mend them"
        )
    return torch.from_numpy(plain)


def npy_rows(path: Path, beside: Path, options: PictureOptions) -> Rows:
    """A table of labels may hold ids and splits, too."""
    values, ids, splits = vectors(read_npy(path), str(path)), None, None
    if beside.suffix.lower() in SUFFIXES:
        table = open_table(beside, options.encoding)
        read = read_cells(table, columns_for(table.columns, options, beside, ["label"], ["id", "split"]))
        labels = name_labels(read["label"], str(beside), options.classes)
        ids, splits = _ids_and_splits(read, beside, options)
    else:
        labels = _label_list(beside, options)
    return agreeing(Rows(path, values, labels, ids, splits), beside)


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


def parquet_rows(path: Path, options: PictureOptions) -> Rows:
    file = parquet_file(path)
    column, others = _vector_column(file, path, options)
    chosen = columns_for(others, options, path, ["label"], ["id", "split"])
    values = vectors(matrix(parquet_columns(path, [column]).column(column), path, column), str(path))
    read = read_cells(ParquetTable(path), chosen)
    return agreeing(
        Rows(path, values, name_labels(read["label"], str(path), options.classes), *_ids_and_splits(read, path, options))
    )


def _ids_and_splits(
    read: Mapping[str, list[Any]], path: Path, options: PictureOptions
) -> tuple[list[str] | None, NDArray[np.int8] | None]:
    """What a table says beside labels."""
    ids = ids_of(read["id"], path) if "id" in read else None
    return ids, splits_of(read["split"], path, options.measuring) if "split" in read else None


def agreeing(rows: Rows, beside: Path | None = None) -> Rows:
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
