"""Writes an .npz of pictures or vectors again, with corrected labels."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from labelsieve.corrected.corrections import Corrections
from labelsieve.data.noisy_data import Collection
from labelsieve.data.npz import keys_by_role, plain_labels, read_npz, words
from labelsieve.data.pictures.listing import SPLIT_NAMES, TRAIN
from labelsieve.errors import ToolError

WHOLE = ("classes", "mirror")  # of all rows together, whatever their length


def corrected_npz(source: Path, target: Path, found: Collection, corrections: Corrections) -> int:
    """All keys of the file at `source`, with dropped rows left out of each that has one entry per row; the number of rows left.

    `found` is what the file holds as a collection; rows that it lacks, for they have no label, are left out, too. Arrays of
    other lengths stay as they are. Ids are written where there were none, for row numbers would shift.
    """
    arrays = read_npz(source)
    labels, rows = _final(found, corrections)
    key = keys_by_role(arrays, source)["labels"]
    if "ids" not in arrays:
        _check_numbers(corrections, len(arrays[key]), source)
    count, places = len(arrays[key]), _places(arrays, found, len(arrays[key]))
    new = _as_before(labels, rows, plain_labels(arrays, key)[places], found).reshape(-1, *arrays[key].shape[1:])
    for name, values in arrays.items():
        if _is_by_row(name, values, count):
            arrays[name] = values[places[rows]]
    arrays[key] = new
    arrays["ids"] = np.array([found.train.ids[row] for row in rows])
    _save(target, arrays)
    return len(rows)


def _check_numbers(corrections: Corrections, count: int, source: Path) -> None:
    """A `ToolError` where rows that go by their numbers are fewer than were judged: those behind a deleted one have moved up."""
    beyond = [name for name in corrections.labels if name.isdecimal() and int(name) >= count]
    if beyond:
        raise ToolError(
            f"{source}: it has {count:,} rows, and the run had more, such as {beyond[0]}; without `ids` nobody can tell which "
            f"are gone, and corrections would meet others: put them back, or drop rows by a decision"
        )


def _places(arrays: Mapping[str, np.ndarray], found: Collection, count: int) -> np.ndarray:
    """(N,) where each row of the collection is in the file."""
    if len(found.train) == count:
        return np.arange(count)
    ids = words(arrays["ids"], '"ids"') if "ids" in arrays else (f"{row:05d}" for row in range(count))
    place = {name: row for row, name in enumerate(ids)}
    return np.array([place[name] for name in found.train.ids])


def _is_by_row(key: str, values: np.ndarray, count: int) -> bool:
    """Whether an array has an entry for each training row; a test set may happen to have as many."""
    held = any(SPLIT_NAMES.get(word, TRAIN) != TRAIN for word in key.lower().split("_"))
    return values.ndim > 0 and len(values) == count and key not in WHOLE and not held


def collection_npz(target: Path, found: Collection, corrections: Corrections) -> int:
    """A collection in memory (a built-in set) as an .npz that `arrays:` reads: labels by number, names in `classes`."""
    labels, rows = _final(found, corrections)
    number = {name: k for k, name in enumerate(found.train.classes)}
    arrays: dict[str, Any] = {
        "images": found.train.images.numpy()[rows],
        "labels": np.array([number[label] for label in labels], np.int64),
        "classes": np.array(found.train.classes),
        "ids": np.array([found.train.ids[row] for row in rows]),
        "mirror": np.array(found.mirror),
    }
    if found.test is not None:
        arrays |= {"test_images": found.test.images.numpy(), "test_labels": found.test.labels.numpy()}
    _save(target, arrays)
    return len(rows)


def _final(found: Collection, corrections: Corrections) -> tuple[list[str], list[int]]:
    """Labels of the rows that stay, as class names, and which rows these are."""
    data = found.train
    named = [corrections.of(name, data.classes[label]) for name, label in zip(data.ids, data.labels.tolist())]
    rows = [row for row, label in enumerate(named) if label is not None]
    return [label for label in named if label is not None], rows


def _as_before(labels: list[str], rows: list[int], before: np.ndarray, found: Collection) -> np.ndarray:
    """Labels as the file writes them: what stays is not touched, and each class has a row that shows how it is written."""
    own = [found.train.classes[code] for code in found.train.labels.tolist()]
    written = dict(zip(own, before))
    new = [before[row] if own[row] == label else written.get(label, label) for row, label in zip(rows, labels)]
    return np.array(new) if before.dtype.kind in "US" else np.array(new, before.dtype)


def _save(target: Path, arrays: dict[str, Any]) -> None:
    with target.open("wb") as stream:
        np.savez_compressed(stream, allow_pickle=False, **arrays)
