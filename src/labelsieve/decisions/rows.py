"""Reads a CSV of decisions that a person may have written, by column name."""

import csv
from itertools import chain
from pathlib import Path

from labelsieve.doors import Damage, lines, reading


def read_rows(path: Path) -> list[dict[str, str]]:
    """With the columns id and action at least; a cell that is missing at a row's end is empty.

    Fields are parted by whichever of comma, semicolon and tab the first line has most of, as in a manifest.
    """
    with reading(path, "name a CSV of decisions in UTF-8, with the columns id, action and label"):
        found = lines(path, follow=True)
        first = next(found, "")
        reader = csv.DictReader(chain((first,), found), restval="", delimiter=max(",;\t", key=first.count))
        missing = [name for name in ("id", "action") if name not in (reader.fieldnames or ())]
        if missing:
            raise Damage(f'the column "{missing[0]}" is missing')
        return list(reader)
