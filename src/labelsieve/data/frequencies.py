"""Reads how common each class is from a table, as shares (K,)."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from labelsieve.data.pictures import columns as usual
from labelsieve.data.pictures.columns import optional
from labelsieve.data.pictures.labels import spelt_as
from labelsieve.data.pictures.tables import open_table
from labelsieve.errors import ToolError, suggest

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
