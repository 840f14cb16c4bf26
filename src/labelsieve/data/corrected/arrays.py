"""An .npz of pictures or vectors, or rows in memory, goes in; an .npz with corrected labels comes out."""

from pathlib import Path
from typing import Any

import numpy as np

from labelsieve.data.corrected.corrections import Corrections
from labelsieve.data.noisy_data import Collection
from labelsieve.data.npz import read_npz
from labelsieve.data.pictures.listing import SPLIT_NAMES, TRAIN

WHOLE = ("classes", "mirror")  # of all rows together, whatever their length
LABELS = ("labels", "y")


def corrected_npz(source: Path, target: Path, found: Collection, corrections: Corrections) -> int:
    """All keys of the file at `source`, with dropped rows left out of each that has one entry a row; the number of rows left.

    `found` is what the file holds as a collection. Arrays of other lengths stay as they are. Ids are written where there were
    none, for row numbers would shift.
    """
    arrays = read_npz(source)
    labels, rows = _final(found, corrections)
    for key, values in arrays.items():
        if _is_by_row(key, values, len(found.train)):
            arrays[key] = values[rows]
    key = next(name for name in LABELS if name in arrays)
    arrays[key] = _as_before(labels, arrays[key], found.train.classes, "classes" in arrays)
    arrays["ids"] = np.array([found.train.ids[row] for row in rows])
    _save(target, arrays)
    return len(rows)


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


def _as_before(labels: list[str], before: np.ndarray, classes: tuple[str, ...], named: bool) -> np.ndarray:
    """Text stays text; numbers stay numbers: places among the class names, or the numbers that are the names."""
    if before.dtype.kind in "US":
        words = np.array(labels)
        return np.char.encode(words, "utf-8") if before.dtype.kind == "S" else words
    if not named and all(name.lstrip("+-").isdigit() for name in classes):
        return np.array([int(label) for label in labels], before.dtype)
    numbers = {name: k for k, name in enumerate(classes)}
    if set(map(str, before.tolist())) <= set(classes):  # numbers that are the class names themselves, in any order
        return np.array([int(label) for label in labels], before.dtype)
    return np.array([numbers[label] for label in labels], before.dtype)


def _save(target: Path, arrays: dict[str, Any]) -> None:
    with target.open("wb") as stream:
        np.savez_compressed(stream, allow_pickle=False, **arrays)
