"""Writes a table of samples (CSV, TSV, JSON lines, Parquet) again, with corrected labels."""

import csv
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from labelsieve.corrected.corrections import Corrections, corrected_values, kept
from labelsieve.data.pictures.arrow import parquet_file, pyarrow_for
from labelsieve.data.pictures.manifest import ids_of, picture_paths
from labelsieve.data.pictures.options import PictureOptions
from labelsieve.data.pictures.paths import as_files_are_named
from labelsieve.data.pictures.tables import DELIMITED, columns_for, delimited, open_table, read_cells, records_of, text_of
from labelsieve.texts import csv_line


@dataclass(frozen=True)
class TableChange:
    """Which rows stay, in order, and what their label column and (where it changes) their path column hold."""

    label: str
    rows: list[int]
    labels: list[Any]
    image: str | None
    paths: list[str] | None
    left: int  # rows that were not dropped


def corrected_table(
    source: Path,
    target: Path,
    options: PictureOptions,
    corrections: Corrections,
    *,
    prefix: str = "",
    moved: bool = False,
    pictured: bool = True,
    emptied: bool = False,
) -> int:
    """Write the table at `source` anew to `target`; the number of rows left. `prefix` stands before ids that are paths.

    With `moved`, relative picture paths are made absolute, for they start from the old table's folder. A table of vectors is
    not `pictured`: whatever its columns are called, rows without an id column go by their numbers. With `emptied`, dropped
    rows stay and lose their label, for a table that goes with rows elsewhere.
    """
    change = _change(source, options, corrections, prefix, moved, pictured)
    if emptied:
        change = _with_dropped(source, options, change)
    suffix = source.suffix.lower()
    if suffix == ".parquet":
        _write_parquet(source, target, change)
    elif suffix in DELIMITED:
        _write_delimited(source, target, options.encoding, change)
    else:
        _write_lines(source, target, options.encoding, change)
    return change.left


def _change(
    source: Path, options: PictureOptions, corrections: Corrections, prefix: str, moved: bool, pictured: bool
) -> TableChange:
    table = open_table(source, options.encoding)
    chosen = columns_for(table.columns, options, source, ["label"], ["image", "id"] if pictured else ["id"])
    read = read_cells(table, chosen)
    root = options.root or source.parent
    images = as_files_are_named(read["image"], root)[0] if "image" in read else []
    ids: Sequence[str]
    if "id" in read:
        ids = ids_of(read["id"], source)
    elif "image" in read:
        ids = [f"{prefix}{path}" for path in picture_paths(images, root, options.outside, source)]
    else:
        ids = [f"{row:05d}" for row in range(len(read["label"]))]
    labels = corrected_values(ids, read["label"], corrections, str(source))
    rows = kept(labels)
    paths = None
    if moved and "image" in read:
        paths = [os.path.abspath(os.path.join(root, images[row])) for row in rows]  # noqa: PTH100, PTH118
    return TableChange(chosen["label"], rows, [labels[row] for row in rows], chosen.get("image"), paths, len(rows))


def _with_dropped(source: Path, options: PictureOptions, change: TableChange) -> TableChange:
    """Every row of the table, those that were dropped without a label; paths are not among what changes."""
    labels: list[Any] = [None] * len(open_table(source, options.encoding).read([change.label])[0])
    for row, label in zip(change.rows, change.labels):
        labels[row] = label
    return TableChange(change.label, list(range(len(labels))), labels, None, None, change.left)


def _write_delimited(source: Path, target: Path, encoding: str | None, change: TableChange) -> None:
    """Same columns, same mark, same line ends, same encoding; fields are quoted where they must be."""
    table = delimited(source, encoding)
    start = source.read_bytes()[:3]
    coding = encoding or ("utf-8-sig" if start == b"\xef\xbb\xbf" else "utf-8")
    at = table.columns.index(change.label)
    path_at = None if change.paths is None or change.image is None else table.columns.index(change.image)
    with text_of(source, encoding) as stream:
        rows = [row for row in csv.reader(stream, delimiter=table.mark) if row]
    end = "\r\n" if b"\r\n" in source.read_bytes()[:4096] else "\n"
    with target.open("w", encoding=coding, newline="") as out:
        out.write(csv_line(rows[0], table.mark, end))
        for place, (row, label) in enumerate(zip(change.rows, change.labels)):
            fields = [*rows[row + 1], *[""] * (len(table.columns) - len(rows[row + 1]))]
            fields[at] = "" if label is None else str(label)
            if path_at is not None and change.paths is not None:
                fields[path_at] = change.paths[place]
            out.write(csv_line(fields, table.mark, end))


def _write_lines(source: Path, target: Path, encoding: str | None, change: TableChange) -> None:
    with text_of(source, encoding) as stream:
        records = list(records_of(stream, source))
    with target.open("w", encoding=encoding or "utf-8", newline="") as out:
        for place, (row, label) in enumerate(zip(change.rows, change.labels)):
            new = {change.label: label}
            if change.paths is not None and change.image is not None:
                new[change.image] = change.paths[place]
            out.write(json.dumps(records[row] | new, ensure_ascii=False) + "\n")


def _write_parquet(source: Path, target: Path, change: TableChange) -> None:
    """Same schema; only the label column (and moved paths) are new."""
    arrow = pyarrow_for(source)
    table = parquet_file(source).read().take(arrow.array(change.rows, arrow.int64()))
    columns = {change.label: change.labels}
    if change.paths is not None and change.image is not None:
        columns[change.image] = change.paths
    for name, values in columns.items():
        at = table.schema.get_field_index(name)
        field = table.schema.field(at)
        plain = field.type.value_type if arrow.types.is_dictionary(field.type) else field.type
        table = table.set_column(at, field, arrow.array(values, plain).cast(field.type))
    arrow.parquet.write_table(table, target)
