"""Writes Parquet files with pictures in them again, with corrected labels, a hundred rows at a time."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from labelsieve.corrected.corrections import DROPPED, Corrections, corrected_values
from labelsieve.data.pictures import tables as usual
from labelsieve.data.pictures.arrow import parquet_batches, parquet_columns, parquet_file, pyarrow_for
from labelsieve.data.pictures.listing import Listing
from labelsieve.data.pictures.options import PictureOptions
from labelsieve.data.pictures.origins import ArrowRows
from labelsieve.data.pictures.stored import StoredSet, label_column, open_stored, stored_rows
from labelsieve.data.pictures.tables import optional

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
