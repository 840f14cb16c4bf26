"""Lists data sets whose pictures are stored in Arrow or Parquet files."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labelsieve.data.pictures import columns as usual
from labelsieve.data.pictures.arrow import stored_columns
from labelsieve.data.pictures.columns import needed, optional
from labelsieve.data.pictures.labels import Labels, name_labels, number_labels
from labelsieve.data.pictures.listing import Listing, arranged
from labelsieve.data.pictures.manifest import check_unique, ids_of, labelled, splits_of
from labelsieve.data.pictures.options import PictureOptions
from labelsieve.data.pictures.origins import ArrowRows
from labelsieve.errors import ToolError, UsageError, suggest

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
    label = label_column(features, options, path)
    rows = stored_cells(path, parts, features, options, [name for name in (label, column) if name])
    check_unique(rows.ids, path, "id")
    labels = _labels(rows.cells[label], features[label], options, path)
    splits = splits_of(rows.cells[column], path, options.measuring) if column else rows.splits
    return Listing(path, rows.origin, rows.ids, labels.codes, labels.classes, splits, (*labels.notes, *notes)), labels


@dataclass(frozen=True)
class StoredRows:
    """Where each picture lies, ids (N,), splits (N,) by the files' parts, and other columns' values: {column: (N,)}."""

    origin: ArrowRows
    ids: list[str]
    splits: NDArray[np.int8]
    cells: dict[str, list[Any]]


def stored_cells(
    path: Path, parts: Sequence[Part], features: Features, options: PictureOptions, columns: Sequence[str] = ()
) -> StoredRows:
    """The same before labels are looked at; `columns` are read, too."""
    image = image_column(features, options, path)
    wanted = optional(list(features), options.id_column, usual.ID, "id_column", path)
    ids: list[str] = []
    cells: dict[str, list[Any]] = {name: [] for name in columns}
    counts: list[int] = []
    for part in parts:
        first = len(counts)
        for file in part.files:
            table = stored_columns(file, [*columns, *([wanted] if wanted else [])], image)
            for name, values in cells.items():
                values += table.column(name).to_pylist()
            ids += ids_of(table.column(wanted).to_pylist(), file) if wanted else []
            counts.append(table.num_rows)
        if wanted is None:
            prefix = f"{part.name}/" if part.name else ""
            ids += [f"{prefix}{row:06d}" for row in range(sum(counts[first:]))]
    if not ids:
        raise ToolError(f"{path}: it has no rows; write the data set again")
    origin = ArrowRows(
        tuple(file for part in parts for file in part.files),
        np.repeat(np.arange(len(counts)), counts),
        np.concatenate([np.arange(count, dtype=np.int64) for count in counts]),
        image,
        options.outside,
    )
    splits = [part.split for part in parts for _ in part.files]
    return StoredRows(origin, ids, np.repeat(np.array(splits, np.int8), counts), cells)


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
