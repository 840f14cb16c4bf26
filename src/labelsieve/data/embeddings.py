"""Opens vectors with labels and no pictures (.npz, .npy or Parquet) as a `Collection`.

The vectors stand where pictures stand: `NoisyData.images` is float32 (N, D), so `images.ndim == 2` tells them from
pictures. `mean` and `std` are per dimension (D,), of the vectors as they are; nothing is mirrored.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

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
from labelsieve.data.npz import Array, held_keys, keys_by_role, nothing_found, plain_labels, read_npz
from labelsieve.data.npz_classes import Numbered, without_empty
from labelsieve.data.pictures.labels import MISSING, Labels
from labelsieve.data.pictures.listing import SPLITS, TEST, TRAIN, VAL, trained_classes
from labelsieve.data.pictures.manifest import check_unique
from labelsieve.data.pictures.options import PictureOptions, named
from labelsieve.data.vector_files import Rows, agreeing, labels_beside, labels_of, npy_rows, parquet_rows, vectors
from labelsieve.errors import ToolError, UsageError


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
    test_features (X_test) and test_labels (y_test); more names are in `npz_keys`. .npy: (N, D), its labels in
    `options.labels_file`, or beside it as labels.npy, y.npy, labels.txt (one a line), labels.csv, or <name>_labels.npy.
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
        return _by_split(npy_rows(path, labels_beside(path, options), options), options.skip_unlabelled)
    if suffix == ".parquet":
        return _by_split(parquet_rows(path, options), options.skip_unlabelled)
    raise ToolError(f"{path}: vectors are read from .npz, .npy and .parquet; write one of these")


def measured_vectors(path: Path, options: PictureOptions) -> Measured:
    """What of the file at `path` is measured on: its test split, else its val split, else all of it."""
    options, suffix = replace(options, measuring=True), path.suffix.lower()
    if path.is_file() and suffix == ".npy":
        return _measured(npy_rows(path, labels_beside(path, options), options), options.skip_unlabelled)
    if path.is_file() and suffix == ".parquet":
        return _measured(parquet_rows(path, options), options.skip_unlabelled)
    found = load_embeddings(path, options)
    held = found.test or Held(found.train.images, found.train.labels)
    return Measured(held, found.train.classes, "all" if found.test is None else SPLITS[TEST])


def _from_npz(path: Path, options: PictureOptions) -> Loaded:
    arrays = read_npz(path)
    found = keys_by_role(arrays, path)
    if "values" not in found or "labels" not in found:
        raise nothing_found(arrays, path)
    key, label = found["values"], found["labels"]
    names = arrays["classes"].tolist() if "classes" in arrays else None
    labels = labels_of(plain_labels(arrays, label), names, options, f'{path}: "{label}"')
    ids = [str(value) for value in arrays["ids"].tolist()] if "ids" in arrays else None
    held = _held(arrays, found, labels, options, path)
    true: Tensor | None = None
    if "true_labels" in arrays:
        true = torch.from_numpy(labels_of(arrays["true_labels"], labels.classes, options, f'{path}: "true_labels"').codes)
    rows = agreeing(Rows(path, vectors(arrays[key], f'{path}: "{key}"'), labels, ids, None))
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


def _labelled(rows: Rows, skip: bool) -> tuple[Rows, NDArray[np.int64], tuple[str, ...]]:
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
    left = Rows(rows.path, rows.values[torch.from_numpy(keep)], labels, names, splits)
    return left, keep, (f"{missing.sum():,} rows have no label: left out",)


def _by_split(rows: Rows, skip: bool) -> Loaded:
    """The training rows, and the others to measure on. Rows without ids are named by their place in the whole file."""
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


def _measured(rows: Rows, skip: bool) -> Measured:
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
