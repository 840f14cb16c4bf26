"""Texts as people see them: names in quotes, sizes in bytes, percentages, and CSV whose cells no spreadsheet misreads."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

BEGINS = ("=", "+", "-", "@", "\t", "\r")  # as OWASP lists them


def quoted(name: str) -> str:
    """A name on one line, whatever it holds: line breaks and other control characters are escaped."""
    return '"' + "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in name) + '"'


def byte_count(count: int) -> str:
    for power, unit in ((3, "GiB"), (2, "MiB"), (1, "KiB")):
        if count >= 1024**power:
            return f"{count / 1024**power:.1f} {unit}"
    return f"{count} bytes"


def computed(text: str) -> bool:
    """Does a spreadsheet take the text for a formula?"""
    return text[:1] in BEGINS and len(text) > 1 and not _is_number(text)


def inert(text: str) -> str:
    """The text as a cell that is shown and never computed: for what nobody joins by, names must stay as they are."""
    return f"'{text}" if computed(text) else text


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def rounded(share: float, decimals: int = 1) -> str:
    """`12.3`, without the sign; `under 0.1` and `over 99.9` where the plain number would say none or all."""
    text, least = f"{100 * share:.{decimals}f}", 10**-decimals
    if 0 < share < 1 and float(text) in (0, 100):
        return f"under {least:.{decimals}f}" if share < 0.5 else f"over {100 - least:.{decimals}f}"
    return f"{abs(float(text)):.{decimals}f}" if float(text) == 0 else text


def ends(low: float, high: float, decimals: int = 1) -> tuple[str, str]:
    """An interval's, rounded outwards where the plain numbers would leave no room: from `99.9`, up to `0.1`."""
    least = 10**-decimals
    lowest = 100 * low if low >= 1 else min(100 * low, 100 - least)
    highest = 100 * high if high <= 0 else max(100 * high, least)
    return f"{max(lowest, 0.0):.{decimals}f}", f"{highest:.{decimals}f}"


def csv_field(text: str, mark: str = ",") -> str:
    """A field as RFC 4180 wants it; the csv module leaves a lone carriage return bare, which no reader takes back."""
    if '"' in text or mark in text or "\r" in text or "\n" in text:  # one by one: perhaps twenty million of them
        return '"' + text.replace('"', '""') + '"'
    return text


def csv_lines(header: Sequence[str], rows: Iterable[Sequence[str]], mark: str = ",", end: str = "\n") -> Iterator[str]:
    """Line by line, for what would be large as one text."""
    return (csv_line(row, mark, end) for row in chain((header,), rows))


def csv_line(fields: Sequence[str], mark: str = ",", end: str = "\n") -> str:
    return mark.join([csv_field(field, mark) for field in fields]) + end


def as_csv(header: Sequence[str], rows: Iterable[Sequence[str]], mark: str = ",", end: str = "\n") -> str:
    return "".join(csv_lines(header, rows, mark, end))
