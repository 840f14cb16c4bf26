"""Writes rows of text as a CSV that every reader reads back, whatever the texts hold. Needs no torch."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain


def quoted(text: str, mark: str = ",") -> str:
    """A field as RFC 4180 wants it; the csv module leaves a lone carriage return bare, which no reader takes back."""
    if '"' in text or mark in text or "\r" in text or "\n" in text:  # one by one: perhaps twenty million of them
        return '"' + text.replace('"', '""') + '"'
    return text


def csv_lines(header: Sequence[str], rows: Iterable[Sequence[str]], mark: str = ",", end: str = "\n") -> Iterator[str]:
    """Line by line, for what would be large as one text."""
    return (mark.join([quoted(field, mark) for field in row]) + end for row in chain((header,), rows))


def as_csv(header: Sequence[str], rows: Iterable[Sequence[str]], mark: str = ",", end: str = "\n") -> str:
    return "".join(csv_lines(header, rows, mark, end))
