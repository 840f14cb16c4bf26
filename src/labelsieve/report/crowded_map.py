"""A heat map of given labels by suggested labels for many classes: one SVG, a few bytes per cell.

Most cells of a strength are one path; the largest are squares of their own that say their pair when pointed at. Names are
thinned: every second or third class has room for its own.
"""

import math
from collections.abc import Iterable, Sequence

import numpy as np

from labelsieve.report import canvas
from labelsieve.report.heat_map import count, counted, description, largest, strength
from labelsieve.report.markup import element, escape, pixels, shortened, text_width

MOST = 200  # classes
SMALLEST = 5.0  # pixels: the drawing grows beyond its width rather than its cells shrink further
NAMED = 400  # cells that say their pair
LEVELS = 10  # of strength
SIZE = 9.0  # of names
ROOM = 92.0  # for the longest name


def crowded_map(matrix: np.ndarray, names: Sequence[str], *, title: str, width: float = canvas.WIDE) -> str:
    """An SVG of the (K, K) counts, K classes by the same; as wide as `width`, or as its cells need."""
    counts, apart = counted(matrix, names, names, title)
    counts = counts * apart
    if not counts.any():
        return canvas.nothing(title, width, "No pair of different labels was counted.")
    left = min(ROOM, max(text_width(name, SIZE) for name in names)) + 8
    cell = max(SMALLEST, (width - left) / len(names))
    whole = left + cell * len(names)
    words = f"Rows: given label. Columns: suggested label. The strongest cell stands for {count(counts.max())}."
    top, y = canvas.heading(title, words, min(width, canvas.NARROW))  # to be read on a phone before scrolling
    y += left
    field = element(
        "g",
        element("rect", klass="cell none", width=len(names), height=len(names)),
        _squares(((k, k) for k in range(len(names))), "diagonal"),
        *_cells(counts, names),
        transform=f"translate({pixels(left)} {pixels(y)}) scale({cell:.4f})",  # a cell is 1 by 1: whole numbers are short
    )
    height = y + cell * len(names) + 4
    return canvas.drawing(whole, height, title, description(counts, names, names), top, _names(names, left, y, cell), field)


def _names(names: Sequence[str], left: float, top: float, cell: float) -> str:
    """Beside the rows and upright above the columns, with a line's height between two."""
    parts = []
    for k in range(0, len(names), math.ceil((SIZE + 1) / cell)):
        shown, middle = shortened(names[k], SIZE, left - 8), (k + 0.5) * cell + 0.36 * SIZE
        x = left + middle
        parts.append(canvas.text(left - 5, top + middle, shown, "label", "end", font_size=SIZE))
        turn = f"rotate(-90 {pixels(x)} {pixels(top - 5)})"
        parts.append(canvas.text(x, top - 5, shown, "label", font_size=SIZE, transform=turn))
    return "".join(parts)


def _cells(counts: np.ndarray, names: Sequence[str]) -> list[str]:
    """The largest by themselves, all others in a path for each strength."""
    levels = np.ceil(LEVELS * counts / counts.max()).astype(int)
    own = largest(counts, NAMED)
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
