"""Your files beside the data: ids of labels you trust, as a mask over the rows, and how common each class is, as shares."""

import math
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from labelsieve import doors
from labelsieve.data.pictures import tables as usual
from labelsieve.data.pictures.listing import name_of, spelt_as
from labelsieve.data.pictures.tables import SUFFIXES, Table, open_table, optional
from labelsieve.errors import ToolError, suggest

ACTION = "action"  # the column of issues.csv and of decisions
NEAR = 20_000  # ids that are compared for a suggestion; more would take seconds


def read_ids(path: Path) -> list[str]:
    """One id a line; or a table (CSV, TSV, JSON lines, Parquet) with a column named id, or else one of paths."""
    if not path.is_file():
        raise ToolError(f"{path}: no such file of trusted ids; check the path")
    if path.suffix.lower() not in SUFFIXES:
        with doors.reading(path, "write one id per line, in UTF-8"):
            return [line.strip() for line in doors.lines(path, follow=True) if line.strip()]
    table = open_table(path)
    _check_actions(path, table)
    for names in (usual.ID, usual.IMAGE):
        found = [name for name in table.columns if name.strip().lower() in names]
        if found:
            return [str(value) for value in table.read(found[:1])[0] if value not in (None, "")]
    if len(table.columns) == 1:  # ids without a header
        values = table.read(table.columns)[0]
        return [table.columns[0], *(str(value) for value in values if value not in (None, ""))]
    listed = ", ".join(table.columns)
    raise ToolError(f'{path}: it has no column "id"; the columns are {listed}. Rename one, or write one id per line')


def _check_actions(path: Path, table: Table) -> None:
    """A `ToolError` where a list of issues or of decisions is handed on whole: it names labels that are doubted or wrong, too."""
    named = [name for name in table.columns if name.strip().lower() == ACTION]
    said = [str(value or "").strip().lower() for value in table.read(named[:1])[0]] if named else []
    other = [value for value in said if value not in ("", "keep")]
    if other:
        raise ToolError(
            f'{path}: its column "{named[0]}" says "{other[0]}" ({len(other):,} rows say other things than keep), and --trusted '
            f"takes every id in it as correctly labelled; keep only those rows, or start from a reviewed run: --decisions RUN"
        )


def check_labels(path: Path, ids: Sequence[str], labels: Sequence[str]) -> None:
    """A `ToolError` where a table of trusted ids says another label than the data: it would pin one that is wrong."""
    table = open_table(path) if path.suffix.lower() in SUFFIXES else None
    columns = [] if table is None else [name for name in table.columns if usual.plainly(name) in usual.LABEL]
    named = [] if table is None else [name for name in table.columns if usual.plainly(name) in usual.ID]
    if table is None or len(columns) != 1 or not named:
        return
    given = dict(zip(ids, labels))
    rows = zip(*table.read([named[0], columns[0]]))
    stated = ((str(name).removeprefix("./"), name_of(label)) for name, label in rows)
    other = [
        (name, label) for name, label in stated if label and name in given and spelt_as(label, (given[name],)) != given[name]
    ]
    if other:
        name, label = other[0]
        more = f" ({len(other)} such ids)" if len(other) > 1 else ""
        raise ToolError(
            f'{path}: it says that "{name}" is "{label}", and the data say "{given[name]}"{more}; the label in the data is what '
            f"is trusted: correct it there, or remove the id here"
        )


def pinned_rows(
    path: Path, ids: Sequence[str], absent: Collection[str] = (), measured: Mapping[str, Sequence[str]] | None = None
) -> Tensor:
    """bool (N,): which of `ids` the file names. `absent` are ids that exist and are not trained on.

    Any other id is an error that names the first, with the split it is `measured` in, or the nearest one there is.
    """
    row = {name: number for number, name in enumerate(ids)}
    mask = torch.zeros(len(ids), dtype=torch.bool)
    unknown = []
    for name in read_ids(path):
        plain = name if name in row or name in absent else spelt_as(name.removeprefix("./"), row)
        if plain in row:
            mask[row[plain]] = True
        elif plain not in absent:
            unknown.append(name)
    if unknown:
        more = f" ({len(unknown)} such ids)" if len(unknown) > 1 else ""
        first = unknown[0].removeprefix("./")
        for split, names in (measured or {}).items():
            if unknown[0] in names or first in names:
                raise ToolError(
                    f'{path}: the id "{unknown[0]}" belongs to the {split} split, which is not trained on{more}; '
                    f"trust labels of training samples only, and remove it"
                )
        raise ToolError(
            f'{path}: the id "{unknown[0]}" is not in the data{suggest(unknown[0], ids[:NEAR])}{more}; '
            f'ids look like "{ids[0]}": write them as issues.csv does'
        )
    return mask


NUMBERS = ("frequency", "share", "prior", "count", "weight", "probability", "samples")


def read_frequencies(path: Path, classes: Sequence[str]) -> Tensor:
    """Shares that add up to 1, in the order of `classes`; every class must be there, with a number above 0."""
    table = open_table(path)
    name, number = class_and_number(table.columns, path)
    found: dict[str, float] = {}
    for row, (label, value) in enumerate(zip(*table.read([name, number])), 1):
        word = spelt_as(str(label).strip(), classes)
        if word not in classes:
            raise ToolError(
                f'{path}: row {row}: "{word}" is not one of {len(classes)} classes{suggest(word, classes)}; correct or remove it'
            )
        if word in found:
            raise ToolError(f'{path}: row {row}: the class "{word}" is there twice; keep one')
        found[word] = _positive(value, f'{path}: row {row}: the frequency of "{word}"')
    missing = [word for word in classes if word not in found]
    if missing:
        raise ToolError(f'{path}: no frequency for "{missing[0]}" ({len(missing)} of {len(classes)} classes missing); add a row')
    shares = torch.tensor([found[word] for word in classes], dtype=torch.float64)
    return (shares / shares.sum()).float()


def class_and_number(columns: Sequence[str], path: Path) -> tuple[str, str]:
    """Which column names classes, and which says how often each occurs."""
    name = optional(columns, None, usual.LABEL, "one name, class", path)
    number = optional(columns, None, NUMBERS, "one name, frequency", path)
    if name is None or number is None:
        listed = ", ".join(f'"{column}"' for column in columns)
        raise ToolError(
            f"{path}: how often classes occur is read from a column class and a column frequency, named in the first line; "
            f"the columns are {listed}"
        )
    return name, number


def _positive(value: Any, place: str) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = math.nan
    if not (math.isfinite(number) and number > 0):
        raise ToolError(f"{place} is {value!r}; it must be a number above 0 (a share or a count)")
    return number
