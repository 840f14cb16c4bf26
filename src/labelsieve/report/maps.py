"""Maps as SVG: given labels by suggested labels, for a few classes or for hundreds, and all samples as dots.

Of many classes most cells of a strength are one path, and the largest say their pair when pointed at; names are thinned. Dots
wear the colour of their given label, those that a person should look at on top; of many samples an even spread is drawn.
"""

import math
from collections.abc import Iterable, Sequence

import numpy as np

from labelsieve.errors import UsageError
from labelsieve.report import canvas
from labelsieve.report.canvas import LARGEST
from labelsieve.report.markup import element, escape, pixels, shortened, text_width

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


MOST_CLASSES = 200  # classes
SMALLEST = 5.0  # pixels: the drawing grows beyond its width rather than its cells shrink further
NAMED_CELLS = 400  # cells that say their pair
LEVELS = 10  # of strength
NAME_SIZE = 9.0  # of names
ROOM = 92.0  # for the longest name


def crowded_map(matrix: np.ndarray, names: Sequence[str], *, title: str, width: float = canvas.WIDE) -> str:
    """An SVG of the (K, K) counts, K classes by the same; as wide as `width`, or as its cells need."""
    counts, apart = counted(matrix, names, names, title)
    counts = counts * apart
    if not counts.any():
        return canvas.nothing(title, width, "No pair of different labels was counted.")
    left = min(ROOM, max(text_width(name, NAME_SIZE) for name in names)) + 8
    cell = max(SMALLEST, (width - left) / len(names))
    whole = left + cell * len(names)
    words = f"Rows: given label. Columns: suggested label. The strongest cell stands for {count(counts.max())}."
    top, y = canvas.heading(title, words, min(width, canvas.NARROW))  # to be read on a phone before scrolling
    y += left
    field = element(
        "g",
        element("rect", klass="cell none", width=len(names), height=len(names)),
        _squares(((k, k) for k in range(len(names))), "diagonal"),
        *_crowded_cells(counts, names),
        transform=f"translate({pixels(left)} {pixels(y)}) scale({cell:.4f})",  # a cell is 1 by 1: whole numbers are short
    )
    height = y + cell * len(names) + 4
    return canvas.drawing(whole, height, title, description(counts, names, names), top, _thinned(names, left, y, cell), field)


def _thinned(names: Sequence[str], left: float, top: float, cell: float) -> str:
    """Beside the rows and upright above the columns, with a line's height between two."""
    parts = []
    for k in range(0, len(names), math.ceil((NAME_SIZE + 1) / cell)):
        shown, middle = shortened(names[k], NAME_SIZE, left - 8), (k + 0.5) * cell + 0.36 * NAME_SIZE
        x = left + middle
        parts.append(canvas.text(left - 5, top + middle, shown, "label", "end", font_size=NAME_SIZE))
        turn = f"rotate(-90 {pixels(x)} {pixels(top - 5)})"
        parts.append(canvas.text(x, top - 5, shown, "label", font_size=NAME_SIZE, transform=turn))
    return "".join(parts)


def _crowded_cells(counts: np.ndarray, names: Sequence[str]) -> list[str]:
    """The largest by themselves, all others in a path for each strength."""
    levels = np.ceil(LEVELS * counts / counts.max()).astype(int)
    own = largest(counts, NAMED_CELLS)
    rest = counts > 0
    for pair in own:
        rest[pair] = False
    parts = []
    for level in range(1, LEVELS + 1):
        places = [(int(row), int(column)) for row, column in np.argwhere(rest & (levels == level))]
        if places:
            parts.append(_squares(places, "cell", f"{strength(level / LEVELS):.2f}"))
    for row, column in own:
        words = f"{names[row]} → {names[column]}: {count(counts[row, column])}"
        tone = f"{strength(levels[row, column] / LEVELS):.2f}"
        box = {"x": column, "y": row, "width": 1, "height": 1}
        parts.append(element("rect", element("title", escape(words)), klass="cell", fill_opacity=tone, **box))
    return parts


def _squares(places: Iterable[tuple[int, int]], klass: str, opacity: str | None = None) -> str:
    """One path of squares at (row, column)."""
    path = "".join(f"M{column},{row}h1v1h-1z" for row, column in places)
    return element("path", d=path, klass=klass, fill_opacity=opacity)


SIDE = 1000  # units of the drawing: dots lie on whole ones, which are short
MARGIN = 16
DOTS = 12_000  # dots
MARKED = 2_000  # of issues, and as many of odd samples: more would hide the rest
HUES = (210, 28, 150, 330, 52, 275, 185, 0)  # of a few classes; of many, each next one is far from the last
KEYS = 20  # classes in the legend


def dot_map(
    at: np.ndarray, given: np.ndarray, is_issue: np.ndarray, is_odd: np.ndarray, classes: Sequence[str], title: str
) -> str:
    """An SVG of places (N, 2) in the unit square, and its legend."""
    count = len(at)
    marked = [np.flatnonzero(where)[:MARKED] for where in (is_issue & ~is_odd, is_odd)]
    plain = np.flatnonzero(~is_issue & ~is_odd)
    plain = plain[np.linspace(0, len(plain) - 1, min(len(plain), DOTS)).astype(int)] if len(plain) else plain
    size = float(np.clip(0.42 * SIDE / max(len(plain), 1) ** 0.5, 3.0, 11.0))
    low = at.min(0, initial=1.0)
    cells = np.rint((at - low) * (SIDE - 2 * MARGIN) / max(float((at - low).max(initial=0)), 1e-6) + MARGIN).astype(int)
    parts = [_paths(cells, given, plain, size, len(classes))]
    for rows, cap in zip(marked, ("round", "square")):
        parts.append(_dots(cells[rows], size + 9, "edge", cap))
        parts.append(_paths(cells, given, rows, size + 5, len(classes), cap))
    rings, squares = int(is_issue.sum()), int(is_odd.sum())
    words = f"{count:,} samples, {rings:,} suspicious labels with a ring, {squares:,} odd samples as squares."
    drawn = canvas.drawing(SIDE, float(cells[:, 1].max(initial=0)) + MARGIN, title, words, *parts)
    return element("div", drawn, klass="dots") + _legend(given, classes)


def tone(k: int, classes: int) -> str:
    """A colour that can be told on light and dark ground."""
    if classes <= len(HUES):
        return f"hsl({HUES[k]} 60% 50%)"
    return f"hsl({k * 137.508 % 360:.0f} 55% {(50, 40, 60)[k % 3]}%)"


def _paths(cells: np.ndarray, given: np.ndarray, rows: np.ndarray, size: float, classes: int, cap: str = "round") -> str:
    labels = given[rows]
    return "".join(_dots(cells[rows[labels == k]], size, "dot", cap, tone(int(k), classes)) for k in np.unique(labels))


def _dots(places: np.ndarray, size: float, klass: str, cap: str, colour: str | None = None) -> str:
    """A line of no length for each place: its caps are the dot."""
    path = "".join(f"M{x},{y}h0" for x, y in dict.fromkeys(map(tuple, places.tolist())))
    if not path:
        return ""
    wide = pixels(size if cap == "round" else size * 0.9)
    return element("path", d=path, klass=klass, stroke=colour, stroke_width=wide, stroke_linecap=cap)


def _legend(given: np.ndarray, classes: Sequence[str]) -> str:
    counts = np.bincount(given, minlength=len(classes))
    order = [k for k in np.argsort(-counts, kind="stable").tolist() if counts[k]]
    items = [element("li", element("i", style=f"background:{tone(k, len(classes))}"), escape(classes[k])) for k in order[:KEYS]]
    left = len(order) - KEYS
    items += [element("li", f"and {left:,} more {'class' if left == 1 else 'classes'}")] if left > 0 else []
    return element("ul", *items, klass="key")
