"""An issues.csv goes in, its columns come out, typed; and the same as Parquet, where pyarrow is installed. Needs no torch."""

import csv
import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from labelsieve.errors import ToolError
from labelsieve.issues.table import ADDED, COLUMNS

Columns = dict[str, list[Any]]


def read_issues(path: Path) -> Columns:
    """Every column of COLUMNS, a list each, in the file's order; an empty number is NaN. Columns more are left alone."""
    csv.field_size_limit(min(sys.maxsize, 2**31 - 1))
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.DictReader(file)
            missing = [name for name in COLUMNS if name not in (*(reader.fieldnames or ()), *ADDED)]
            if missing:
                raise ToolError(
                    f'{path}: the column "{missing[0]}" is missing; the file was made by an older labelsieve or changed by hand: '
                    f"put it back, or repeat the run"
                )
            rows = list(reader)
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise ToolError(f"{path}: cannot be read ({error}); put it back, or repeat the run") from None
    return {
        name: [_typed(row.get(name, ADDED.get(name)), kind, name, n, path) for n, row in enumerate(rows, 1)]
        for name, kind in COLUMNS.items()
    }


def _typed(text: str | None, kind: type, name: str, row: int, path: Path) -> Any:
    if text is not None:
        if kind is str:
            return text
        if kind is bool and text.lower() in ("true", "false"):
            return text.lower() == "true"
        if kind is float:
            try:
                return float(text) if text else float("nan")
            except ValueError:
                pass
    raise ToolError(f'{path}: row {row}: "{name}" is {text!r}; the file was changed by hand or damaged: put it back')


def can_write_parquet() -> bool:
    return find_spec("pyarrow") is not None


def write_parquet(columns: Mapping[str, Sequence[Any]], path: Path) -> None:
    """The columns as Parquet: text, float64 and bool; a number that is not known is null."""
    arrow, parquet = import_module("pyarrow"), import_module("pyarrow.parquet")
    types = {str: arrow.string(), float: arrow.float64(), bool: arrow.bool_()}
    arrays = [arrow.array(columns[name], type=types[kind], from_pandas=True) for name, kind in COLUMNS.items()]
    parquet.write_table(arrow.table(arrays, names=list(COLUMNS)), path)
