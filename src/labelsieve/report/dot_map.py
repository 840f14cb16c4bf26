"""The map of samples as one SVG: a dot each, in the colour of its given label, those that a person should look at on top.

Dots of a class are one path of a few bytes each; of many samples an even spread is drawn.
"""

from collections.abc import Sequence

import numpy as np

from labelsieve.report import canvas
from labelsieve.report.markup import element, escape, pixels

SIDE = 1000  # units of the drawing: dots lie on whole ones, which are short
MARGIN = 16
MOST = 12_000  # dots
MARKED = 2_000  # of issues, and as many of odd samples: more would hide the rest
HUES = (210, 28, 150, 330, 52, 275, 185, 0)  # of a few classes; of many, each next one is far from the last
NAMED = 20  # classes in the legend


def dot_map(
    at: np.ndarray, given: np.ndarray, is_issue: np.ndarray, is_odd: np.ndarray, classes: Sequence[str], title: str
) -> str:
    """An SVG of places (N, 2) in the unit square, and its legend."""
    count = len(at)
    marked = [np.flatnonzero(where)[:MARKED] for where in (is_issue & ~is_odd, is_odd)]
    plain = np.flatnonzero(~is_issue & ~is_odd)
    plain = plain[np.linspace(0, len(plain) - 1, min(len(plain), MOST)).astype(int)] if len(plain) else plain
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
    items = [element("li", element("i", style=f"background:{tone(k, len(classes))}"), escape(classes[k])) for k in order[:NAMED]]
    left = len(order) - NAMED
    items += [element("li", f"and {left:,} more {'class' if left == 1 else 'classes'}")] if left > 0 else []
    return element("ul", *items, klass="key")
