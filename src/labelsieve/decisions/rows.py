"""A CSV of decisions that a person may have written goes in, its rows by column name come out."""

import csv
from pathlib import Path

from labelsieve.errors import ToolError


def read_rows(path: Path) -> list[dict[str, str]]:
    """With the columns id and action at least; a cell that is missing at a row's end is empty.

    Fields are parted by whichever of comma, semicolon and tab the first line has most of, as in a manifest.
    """
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            first = file.readline()
            file.seek(0)
            reader = csv.DictReader(file, restval="", delimiter=max(",;\t", key=first.count))
            missing = [name for name in ("id", "action") if name not in (reader.fieldnames or ())]
            if missing:
                raise ToolError(f'{path}: the column "{missing[0]}" is missing; decisions have the columns id, action and label')
            return list(reader)
    except FileNotFoundError:
        raise ToolError(f"{path}: no such file; check the path") from None
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise ToolError(f"{path}: cannot be read ({error}); decisions are a CSV in UTF-8 with id, action and label") from None
