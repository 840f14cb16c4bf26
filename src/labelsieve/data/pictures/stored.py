"""Data sets whose pictures lie in Arrow or Parquet files go in, as parts and features; a `Listing` comes out."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from labelsieve.data.pictures import columns as usual
from labelsieve.data.pictures.arrow import stored_columns
from labelsieve.data.pictures.columns import needed, optional
from labelsieve.data.pictures.labels import Labels, name_labels, number_labels
from labelsieve.data.pictures.listing import Listing, arranged
from labelsieve.data.pictures.manifest import check_unique, ids_of, labelled, splits_of
from labelsieve.data.pictures.options import PictureOptions
from labelsieve.data.pictures.origins import ArrowRows
from labelsieve.errors import UsageError, suggest

Features = Mapping[str, Any]  # {column: what `datasets` says of it}


@dataclass(frozen=True)
class Part:
    """The files of one split, in order. Its name stands before ids that are numbers of rows; "" where there is only one."""

    name: str
    split: int
    files: Sequence[Path]


def stored_listing(
    path: Path, parts: Sequence[Part], features: Features, options: PictureOptions, notes: Sequence[str] = (), column: str = ""
) -> Listing:
    """The rows that have a label, in the order train, val, test. `column` may name the splits."""
    listing, labels = stored_rows(path, parts, features, options, notes, column)
    return arranged(labelled(listing, labels, options.skip_unlabelled))


def stored_rows(
    path: Path, parts: Sequence[Part], features: Features, options: PictureOptions, notes: Sequence[str] = (), column: str = ""
) -> tuple[Listing, Labels]:
    """One row for each row of the files, as they come; its id is an id column's value, else "part/row"."""
    image, label = image_column(features, options, path), label_column(features, options, path)
    wanted = optional(list(features), options.id_column, usual.ID, "id_column", path)
    names = [name for name in (label, wanted, column) if name]
    values: list[Any] = []
    ids: list[str] = []
    words: list[Any] = []
    spans: list[tuple[int, int]] = []  # rows, split
    for part in parts:
        start = len(values)
        for file in part.files:
            table = stored_columns(file, names, image)
            values += table.column(label).to_pylist()
            ids += ids_of(table.column(wanted).to_pylist(), file) if wanted else []
            words += table.column(column).to_pylist() if column else []
            spans.append((table.num_rows, part.split))
        if wanted is None:
            prefix = f"{part.name}/" if part.name else ""
            ids += [f"{prefix}{row:06d}" for row in range(len(values) - start)]
    check_unique(ids, path, "id")
    labels = _labels(values, features[label], options, path)
    counts = [count for count, _ in spans]
    splits = np.repeat(np.array([split for _, split in spans], np.int8), counts)
    origin = ArrowRows(
        tuple(file for part in parts for file in part.files),
        np.repeat(np.arange(len(spans)), counts),
        np.concatenate([np.arange(count, dtype=np.int64) for count in counts]),
        image,
        options.outside,
    )
    if column:
        splits = splits_of(words, path, options.measuring)
    return Listing(path, origin, ids, labels.codes, labels.classes, splits, (*labels.notes, *notes)), labels


def image_column(features: Features, options: PictureOptions, path: Path) -> str:
    return needed(list(features), options.image_column, _usual(features, "Image", usual.IMAGE), "image_column", path)


def label_column(features: Features, options: PictureOptions, path: Path) -> str:
    return needed(list(features), options.label_column, _usual(features, "ClassLabel", usual.LABEL), "label_column", path)


def _usual(features: Features, kind: str, names: tuple[str, ...]) -> tuple[str, ...]:
    """The names to look for: a feature's type says more than its name."""
    typed = tuple(name.lower() for name, what in features.items() if isinstance(what, dict) and what.get("_type") == kind)
    return typed or names


def _labels(values: list[Any], feature: Any, options: PictureOptions, path: Path) -> Labels:
    names = feature.get("names") if isinstance(feature, dict) else None
    if not names:
        return name_labels(values, str(path), options.classes)
    numbered = number_labels(values, [str(name) for name in names], str(path))
    if options.classes is None:
        return numbered
    if set(options.classes) != set(numbered.classes):
        strange = sorted(set(options.classes) ^ set(numbered.classes))[0]
        hint = suggest(strange, set(numbered.classes) - {strange})
        raise UsageError(f'{path}: its classes and the classes given differ in "{strange}"{hint}')
    order = np.array([*(options.classes.index(name) for name in numbered.classes), -1])
    return Labels(order[numbered.codes], options.classes)
