"""Reads issues.csv into typed columns, and writes them as Parquet where pyarrow is installed. Needs no torch."""

import csv
import math
import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import Any

from labelsieve import run_files
from labelsieve.doors import reading
from labelsieve.errors import ToolError
from labelsieve.issues.table import ADDED, COLUMNS, OWN_TEXTS

Columns = dict[str, list[Any]]
BLOCK = 10_000  # rows in one go: a million of them as texts would take gigabytes


def read_issues(path: Path) -> Columns:
    """Every column of COLUMNS, a list each, in the file's order; an empty number is NaN. Columns more are left alone."""
    csv.field_size_limit(min(sys.maxsize, 2**31 - 1))
    found: Columns = {name: [] for name in COLUMNS}
    words: dict[str, str] = {}
    with reading(path, run_files.REMEDY):
        reader = csv.reader(run_files.lines(path))
        places = {name: place for place, name in enumerate(next(reader, []))}
        missing = [name for name in COLUMNS if name not in (*places, *ADDED)]
        if missing:
            raise ToolError(
                f'{path}: the column "{missing[0]}" is missing; the file was made by an older labelsieve or changed by hand: '
                f"put it back, or repeat the run"
            )
        while rows := list(islice(reader, BLOCK)):
            _take([row for row in rows if row], places, found, words, path)
    return found


def _take(rows: Sequence[Sequence[str]], places: Mapping[str, int], found: Columns, words: dict[str, str], path: Path) -> None:
    """Put some rows below those that were found before."""
    before = len(found["id"])
    whole = len(set(map(len, rows))) == 1
    cells_of = list(zip(*rows)) if whole else []
    for name, kind in COLUMNS.items():
        place = places.get(name)
        if place is None:
            cells: Sequence[Any] = [ADDED[name]] * len(rows)
        elif place < len(cells_of):
            cells = cells_of[place]
        else:  # some rows end before it
            cells = [row[place] if place < len(row) else None for row in rows]
        try:
            found[name] += _typed(cells, kind, None if name in OWN_TEXTS else words)
        except ValueError:
            row, cell = next((row, cell) for row, cell in enumerate(cells, before + 1) if not _is_typed(cell, kind))
            raise ToolError(
                f'{path}: row {row}: "{name}" is {cell!r}; the file was changed by hand or damaged: put it back'
            ) from None


def _typed(cells: Sequence[Any], kind: type, words: dict[str, str] | None) -> Sequence[Any]:
    """The cells as values of that kind, with `words` equal texts as one; a `ValueError` where one is no such value."""
    if None in cells:
        raise ValueError
    if kind is float:
        return [float(text) if text else math.nan for text in cells]
    if words is None and kind is str:
        return cells
    known = {*cells}
    if kind is bool:
        if not {text.lower() for text in known} <= {"true", "false"}:
            raise ValueError
        flags = {text: text.lower() == "true" for text in known}
        return [flags[text] for text in cells]
    assert words is not None
    words |= {text: text for text in known - words.keys()}
    return [words[text] for text in cells]


def _is_typed(cell: Any, kind: type) -> bool:
    try:
        return bool(_typed([cell], kind, None))
    except ValueError:
        return False


def can_write_parquet() -> bool:
    return find_spec("pyarrow") is not None


def write_parquet(columns: Mapping[str, Sequence[Any]], path: Path) -> None:
    """The columns as Parquet: text, float64 and bool; a number that is not known is null."""
    arrow, parquet = import_module("pyarrow"), import_module("pyarrow.parquet")
    types = {str: arrow.string(), float: arrow.float64(), bool: arrow.bool_()}
    arrays = [arrow.array(columns[name], type=types[kind], from_pandas=True) for name, kind in COLUMNS.items()]
    parquet.write_table(arrow.table(arrays, names=list(COLUMNS)), path)
