"""Rows of texts go in, a CSV comes out that every reader takes back, whatever the texts hold. Needs no torch."""

from collections.abc import Iterable, Sequence


def quoted(text: str, mark: str = ",") -> str:
    """A field as RFC 4180 wants it; the csv module leaves a lone carriage return bare, which no reader takes back."""
    return '"' + text.replace('"', '""') + '"' if any(sign in text for sign in (mark, '"', "\r", "\n")) else text


def as_csv(header: Sequence[str], rows: Iterable[Sequence[str]], mark: str = ",", end: str = "\n") -> str:
    return "".join(mark.join(quoted(field, mark) for field in row) + end for row in (header, *rows))
