"""Writes one file again with corrected labels: an .npz, Parquet files with pictures in them, or a table of samples."""

import csv
import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from labelsieve.corrected.corrections import DROPPED, Corrections, corrected_values, kept
from labelsieve.data.noisy_data import Collection
from labelsieve.data.npz import keys_by_role, plain_labels, read_npz, words
from labelsieve.data.pictures import tables as usual
from labelsieve.data.pictures.arrow import parquet_batches, parquet_columns, parquet_file, pyarrow_for
from labelsieve.data.pictures.listing import SPLIT_NAMES, TRAIN, Listing
from labelsieve.data.pictures.manifest import ids_of, picture_paths
from labelsieve.data.pictures.options import PictureOptions
from labelsieve.data.pictures.origins import ArrowRows
from labelsieve.data.pictures.paths import as_files_are_named
from labelsieve.data.pictures.stored import StoredSet, label_column, open_stored, stored_rows
from labelsieve.data.pictures.tables import (
    DELIMITED,
    columns_for,
    delimited,
    open_table,
    optional,
    read_cells,
    records_of,
    text_of,
)
from labelsieve.errors import ToolError
from labelsieve.texts import csv_line

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


BATCH = 100  # rows that are held and written together
ADDED = "id"  # the column of ids where there was none: row numbers would shift


@dataclass(frozen=True)
class Rewritten:
    """How many rows are left, and the ids of all that were there."""

    left: int
    ids: set[str]


def corrected_shards(path: Path, options: PictureOptions, corrections: Corrections, place: Callable[[Path], Path]) -> Rewritten:
    """Write each file of the data set at `path` anew to where `place` says. Splits that are not used are not written."""
    found = open_stored(path, options)
    listing, _ = stored_rows(found, options)
    origin = listing.origin
    assert isinstance(origin, ArrowRows)
    label = label_column(found, options)
    own = optional(list(found.features), options.id_column, usual.ID, "id_column", path)
    names = _class_names(found, label, corrections)
    left = 0
    for number, file in enumerate(origin.files):
        rows = np.flatnonzero(origin.shards == number)
        ids = [listing.ids[row] for row in rows.tolist()]
        values = _values(file, label, listing, rows, ids, names, corrections)
        target = place(file)
        target.parent.mkdir(parents=True, exist_ok=True)
        left += _rewrite(file, target, label, values, None if own or ADDED in found.features else ids, names)
    return Rewritten(left, set(listing.ids))


def _class_names(found: StoredSet, label: str, corrections: Corrections) -> list[str] | None:
    """The names that labels number, with classes that are new behind them; None where labels are no such numbers."""
    feature = found.features[label]
    names = feature.get("names") if isinstance(feature, dict) else None
    if not names:
        return None
    plain = [str(name) for name in names]
    return [*plain, *sorted({new for new in corrections.labels.values() if new is not None} - set(plain))]


def _values(
    file: Path, label: str, listing: Listing, rows: Any, ids: Sequence[str], names: list[str] | None, corrections: Corrections
) -> list[Any]:
    """The label column of one file: old values where nothing changed, and DROPPED where a row goes."""
    before = parquet_columns(file, [label]).column(label).to_pylist()
    if names is None:
        return corrected_values(ids, before, corrections, str(file))
    number = {name: code for code, name in enumerate(names)}
    after: list[Any] = []
    for name, value, code in zip(ids, before, listing.labels[rows].tolist()):
        old = listing.classes[code] if code >= 0 else ""
        new = corrections.of(name, old)
        after.append(DROPPED if new is None else value if new == old else number[new])
    return after


def _rewrite(file: Path, target: Path, label: str, values: list[Any], ids: Sequence[str] | None, names: list[str] | None) -> int:
    """One file with these labels and, where it had none, ids; the number of rows left."""
    arrow, opened = pyarrow_for(file), parquet_file(file)
    schema = _schema(arrow, opened.schema_arrow, label, names, ids is not None)
    at, kind = schema.get_field_index(label), schema.field(label).type
    plain = kind.value_type if arrow.types.is_dictionary(kind) else kind
    start = left = 0
    with arrow.parquet.ParquetWriter(target, schema) as writer:
        for batch in parquet_batches(file, BATCH):
            kept = [row for row in range(len(batch)) if values[start + row] is not DROPPED]
            some = batch.take(arrow.array(kept, arrow.int64()))
            columns = some.columns
            columns[at] = arrow.array([values[start + row] for row in kept], plain).cast(kind)
            if ids is not None:
                columns.append(arrow.array([ids[start + row] for row in kept], arrow.string()))
            writer.write_batch(arrow.record_batch(columns, schema=schema))
            start, left = start + len(batch), left + len(kept)
    return left


def _schema(arrow: Any, schema: Any, label: str, names: list[str] | None, add: bool) -> Any:
    """The schema with a column of ids where one is added, and with what `datasets` reads from it changed alike."""
    metadata = dict(schema.metadata or {})
    try:
        said = json.loads(metadata[b"huggingface"])
        features = said["info"]["features"]
        if names is not None:
            features[label]["names"] = names
        if add:
            features[ADDED] = {"dtype": "string", "_type": "Value"}
        metadata[b"huggingface"] = json.dumps(said).encode()
    except (KeyError, ValueError, TypeError, RecursionError):
        pass
    return (schema.append(arrow.field(ADDED, arrow.string())) if add else schema).with_metadata(metadata)


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
