"""A heat map of given labels by suggested labels as SVG: cells, or the largest pairs."""

from collections.abc import Sequence

import numpy as np

from labelsieve.errors import UsageError
from labelsieve.report import canvas
from labelsieve.report.axes import LARGEST
from labelsieve.report.markup import element, escape, shortened, text_width

SMALLEST_CELL = 11.0
LARGEST_CELL = 44.0
PAIRS = 20


def heat_map(
    matrix: np.ndarray | Sequence[Sequence[float]],
    row_names: Sequence[str],
    column_names: Sequence[str],
    *,
    title: str,
    width: float = canvas.WIDE,
) -> str:
    """An SVG of the (R, C) counts; of the largest pairs only, as bars, where cells would get too small.

    Where rows and columns are the same classes, the diagonal (label kept) does not count for the colours: it
    would drown all the rest.
    """
    counts, apart = counted(matrix, row_names, column_names, title)
    if not (counts * apart).any():
        return canvas.nothing(title, width, "No pair of different labels was counted.")
    left, cell = _layout(row_names, len(column_names), width)
    if not fits(row_names, column_names, width):
        return largest_pairs(counts * apart, row_names, column_names, title=title, width=width)
    return _cells(counts, apart, row_names, column_names, title, width, left, cell)


def counted(
    matrix: np.ndarray | Sequence[Sequence[float]], row_names: Sequence[str], column_names: Sequence[str], title: str
) -> tuple[np.ndarray, np.ndarray]:
    """The counts, none of them below 0 or endless, and where labels differ: (R, C) each."""
    wanted = (len(row_names), len(column_names))
    if np.shape(matrix) != wanted and not np.size(matrix) == 0 == wanted[0] * wanted[1]:
        raise UsageError(
            f'heat map "{title}": the counts have shape {np.shape(matrix)}, the names ask for {wanted}; '
            f"give a name for each row and each column"
        )
    counts = np.asarray(matrix, dtype=np.float64).reshape(wanted)
    counts = np.where(np.abs(counts) <= LARGEST, counts, 0.0).clip(min=0)
    apart = ~np.eye(*counts.shape, dtype=bool) if list(row_names) == list(column_names) else np.ones(counts.shape, bool)
    return counts, apart


def fits(row_names: Sequence[str], column_names: Sequence[str], width: float) -> bool:
    """Are cells large enough for a drawing of this width?"""
    _, cell = _layout(row_names, len(column_names), width)
    return cell >= SMALLEST_CELL and len(row_names) * cell <= 1.5 * canvas.WIDE


def _layout(row_names: Sequence[str], columns: int, width: float) -> tuple[float, float]:
    """Room for the row names, and the side of a cell."""
    left = min(0.3 * width, max(text_width(name, canvas.SIZE) for name in row_names)) + 10
    return left, min(LARGEST_CELL, (width - left) / columns)


def _cells(
    counts: np.ndarray,
    apart: np.ndarray,
    row_names: Sequence[str],
    column_names: Sequence[str],
    title: str,
    width: float,
    left: float,
    cell: float,
) -> str:
    top, y = canvas.heading(title, "Rows: given label. Columns: suggested label.", width)
    names, taken = _column_names(column_names, left, y, cell)
    y += taken
    tallest = (counts * apart).max()
    longest = count(tallest)
    size = next((size for size in (canvas.SIZE, 10.0) if text_width(longest, size) <= cell - 1), None)
    parts = []
    for row, name in enumerate(row_names):
        middle = y + (row + 0.5) * cell
        parts.append(canvas.text(left - 8, middle + 4, shortened(name, canvas.SIZE, left - 9), "label", "end"))
        for column, other in enumerate(column_names):
            share = counts[row, column] / tallest if apart[row, column] else None
            place = (left + column * cell, y + row * cell)
            parts.append(_cell(place, cell, share, f"{name} → {other}: {count(counts[row, column])}"))
            if size and counts[row, column]:
                parts.append(_inside(place, cell, share, count(counts[row, column]), size))
    height = y + cell * len(row_names) + 4
    return canvas.drawing(width, height, title, description(counts * apart, row_names, column_names), top, names, *parts)


def _column_names(names: Sequence[str], left: float, top: float, cell: float) -> tuple[str, float]:
    """Level where all fit above their cells, else upright; and the height they take."""
    need = max(text_width(name, canvas.SIZE) for name in names)
    if need <= cell - 4:
        level = [canvas.text(left + (i + 0.5) * cell, top + 12, n, "label", "middle") for i, n in enumerate(names)]
        return "".join(level), 20.0
    tall = min(need, 110.0)
    parts = []
    for index, name in enumerate(names):
        x, y = left + (index + 0.5) * cell + 4, top + tall
        turn = f"rotate(-90 {x:.1f} {y:.1f})"
        parts.append(canvas.text(x, y, shortened(name, canvas.SIZE, tall), "label", transform=turn))
    return "".join(parts), tall + 8


def _cell(place: tuple[float, float], side: float, share: float | None, words: str) -> str:
    """A square as strong as its share of the largest count; a diagonal one (share None) stays neutral."""
    x, y = place
    box = {"x": x + 0.5, "y": y + 0.5, "width": side - 1, "height": side - 1, "rx": 2}
    kind = "cell same" if share is None else "cell" if share > 0 else "cell none"
    tone = f"{strength(share):.3f}" if share else None
    return element("rect", element("title", escape(words)), klass=kind, fill_opacity=tone, **box)


def strength(share: float) -> float:
    """Even one count among thousands differs from none; tints on which no text reads well are skipped."""
    return 0.1 + 0.8 * share if share <= 0.5 else 0.85 + 0.3 * (share - 0.5)


def _inside(place: tuple[float, float], side: float, share: float | None, shown: str, size: float) -> str:
    """The number in a cell, nothing where it would stick out (as a kept label's large one may)."""
    if text_width(shown, size) > side - 1:
        return ""
    tone = "muted" if share is None else "strong" if share > 0.5 else "label"
    x, y = place[0] + side / 2, place[1] + side / 2 + 0.36 * size
    return canvas.text(x, y, shown, f"count {tone}", "middle", font_size=size)


def largest_pairs(
    counts: np.ndarray, row_names: Sequence[str], column_names: Sequence[str], *, title: str, width: float = canvas.WIDE
) -> str:
    """The largest pairs as bars, and what all the others hold together."""
    order = largest(counts)
    rest, others = (
        counts.sum() - sum(counts[pair] for pair in order),
        int(np.count_nonzero(counts)) - len(order),
    )
    top, y = canvas.heading(title, f"The {len(order)} most frequent pairs: given label → suggested label", width)
    names = [f"{row_names[row]} → {column_names[column]}" for row, column in order]
    left = min(0.55 * width, max(text_width(name, canvas.SIZE) for name in names)) + 10
    room = width - left - text_width(count(counts.max()), canvas.SIZE) - 10
    parts = []
    for name, pair in zip(names, order):
        length = room * counts[pair] / counts.max()
        parts.append(canvas.text(left - 8, y + 13, shortened(name, canvas.SIZE, left - 9), "label", "end"))
        parts.append(element("rect", klass="bar s0", x=left, y=y + 3, width=length, height=13, rx=2))
        parts.append(canvas.text(left + length + 6, y + 13, count(counts[pair]), "tick"))
        y += 20
    said = f"{count(rest)} more in {others:,} other pairs." if others else ""
    small, more = canvas.note(said, y + 2, width)
    whole = f"{description(counts, row_names, column_names)} {said}".strip()
    return canvas.drawing(width, y + more + 4, title, whole, top, *parts, small)


def largest(counts: np.ndarray, at_most: int = PAIRS) -> list[tuple[int, int]]:
    """Places of the largest counts, largest first; equal ones in reading order."""
    flat = counts.ravel()
    order = np.argsort(-flat, kind="stable")[:at_most]
    return [(int(i) // counts.shape[1], int(i) % counts.shape[1]) for i in order if flat[i] > 0]


def description(counts: np.ndarray, row_names: Sequence[str], column_names: Sequence[str]) -> str:
    pairs = [f"{row_names[r]} to {column_names[c]}: {count(counts[r, c])}" for r, c in largest(counts, 5)]
    total = count(counts.sum())
    return f"{total} labels given one class and suggested another. Most frequent: {'; '.join(pairs)}."


def count(value: float) -> str:
    return f"{value:,.0f}" if abs(value) < 1e7 else f"{value:.2g}"
