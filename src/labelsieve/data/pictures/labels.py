"""Turns labels as people write them (text, whole numbers, both) into numbers 0..K-1, class names and notes."""

import math
import re
import unicodedata
from collections.abc import Container, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labelsieve.errors import ToolError, suggest

WHOLE = re.compile(r"[+-]?\d+(?:\.0*)?")  # 3.0, too: what tables make of whole numbers when some are missing
MISSING = -1


@dataclass(frozen=True)
class Labels:
    """`codes` (N,) int64 in 0..K-1, or -1 where the label is missing; `classes` as the user wrote them."""

    codes: NDArray[np.int64]
    classes: tuple[str, ...]
    notes: tuple[str, ...] = ()


def name_labels(values: Sequence[Any], place: str, classes: Sequence[str] | None = None) -> Labels:
    """Labels by their text. Classes in the given order, else by number where all are whole, else by text."""
    firsts: dict[tuple[type, Any], int] = {}
    try:
        # The type belongs to the key: 1, 1.0 and True are equal to Python.
        seen = [firsts.setdefault((type(value), value), row) for row, value in enumerate(values)]
    except TypeError:
        bad = next(row for row, value in enumerate(values) if isinstance(value, (list, dict, set)))
        raise ToolError(f"{place}: row {bad + 1}: the label is a {type(values[bad]).__name__}; give one label per row") from None
    words = {row: _word(value, f"{place}: row {row + 1}") for (_, value), row in firsts.items()}
    if classes is not None:
        words = {row: word and spelt_as(word, classes) for row, word in words.items()}
    names = _ordered(words, classes, place)
    number: dict[str | None, int] = {name: k for k, name in enumerate(names)}
    number[None] = MISSING
    code_of = {row: number[word] for row, word in words.items()}
    codes = np.fromiter((code_of[first] for first in seen), np.int64, len(seen))
    return Labels(codes, tuple(names), _notes([value for _, value in firsts]))


def number_labels(values: Sequence[Any], names: Sequence[str], place: str) -> Labels:
    """Whole numbers that index `names`; -1 and None are missing."""
    plain = [MISSING if value is None else value for value in values]
    codes = np.asarray(plain)
    if codes.dtype.kind not in "ui":
        raise ToolError(f"{place}: labels are {codes.dtype}, but names of classes go with whole numbers")
    outside = np.flatnonzero((codes < MISSING) | (codes >= len(names)))
    if len(outside):
        row = int(outside[0])
        raise ToolError(f"{place}: row {row + 1} has label {codes[row]}, outside 0..{len(names) - 1}")
    return Labels(codes.astype(np.int64), tuple(names))


def _word(value: Any, place: str) -> str | None:
    if isinstance(value, bytes):
        try:
            value = value.decode()
        except UnicodeDecodeError:
            raise ToolError(f"{place}: the label's bytes are not UTF-8; store labels as text") from None
    if isinstance(value, str):
        return value.strip() or None
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    if isinstance(value, (int, float)):
        return str(value)
    raise ToolError(f"{place}: the label is a {type(value).__name__}; give text or a whole number")


def name_of(value: Any) -> str | None:
    """One label as the name of its class; None for none."""
    return _word(value, "label")


def _ordered(words: dict[int, str | None], classes: Sequence[str] | None, place: str) -> list[str]:
    present = {word for word in words.values() if word is not None}
    if classes is None:
        if all(WHOLE.fullmatch(word) for word in present):
            return sorted(present, key=lambda word: (float(word), word))
        return sorted(present)
    strange = [(row, word) for row, word in words.items() if word is not None and word not in set(classes)]
    if strange:
        row, word = strange[0]
        more = f" ({len(strange)} such labels)" if len(strange) > 1 else ""
        raise ToolError(
            f'{place}: row {row + 1}: label "{word}" is not one of {len(classes)} classes'
            f"{suggest(word, classes)}{more}; correct it, or add it to the classes"
        )
    return list(classes)


def spelt_as(word: str, names: Container[str]) -> str:
    """The word as `names` has it, where they differ only in how Unicode stores letters with accents; else as it is."""
    if word in names or word.isascii():
        return word
    forms = (unicodedata.normalize(form, word) for form in ("NFC", "NFD"))
    return next((form for form in forms if form in names), word)


def _notes(values: list[Any]) -> tuple[str, ...]:
    notes = []
    kinds = {"text" if isinstance(value, (str, bytes)) else "numbers" for value in values if value is not None}
    if len(kinds) > 1:
        notes.append("some labels are numbers and some are text: all are taken as text")
    if any(isinstance(value, str) and value != value.strip() and value.strip() for value in values):
        notes.append("spaces around labels are left out")
    return tuple(notes)


def looks_alike(classes: Sequence[str]) -> list[tuple[str, str]]:
    """Pairs of class names that differ only in case, spaces, hyphens, underscores or Unicode form, or write the same number."""
    plain: dict[str, str] = {}
    pairs = []
    for name in classes:
        number = re.fullmatch(r"([+-]?\d+)(?:\.0*)?", name)
        key = str(int(number[1])) if number else re.sub(r"[\s_-]+", "", unicodedata.normalize("NFKC", name)).casefold()
        first = plain.setdefault(key, name)
        if first != name:
            pairs.append((first, name))
    return pairs
