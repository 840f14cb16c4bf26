"""Histograms as SVG: groups of values in common bins, laid over each other."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from labelsieve.report import canvas
from labelsieve.report.axes import LARGEST, Scale, Ticks, span, ticks_around, ticks_within
from labelsieve.report.markup import element, escape, number, pixels

PLOT = 220.0
# Where one group's tallest bar is so many times another's, the small one would be a flat line.
UNEVEN = 8


@dataclass(frozen=True, eq=False)
class Group:
    """A named set of values; those that are not finite are counted, not drawn."""

    name: str
    values: Sequence[float] | np.ndarray


def histogram(groups: Sequence[Group], *, title: str, x_label: str, bins: int = 40, width: float = canvas.WIDE) -> str:
    """An SVG of how often values fall into each of `bins` equal ranges, one outline a group."""
    values = [_finite(group) for group in groups]
    left_out = sum(np.size(group.values) for group in groups) - sum(map(len, values))
    if not any(map(len, values)):
        return canvas.nothing(title, width, f"No values to draw. {_left_out(left_out)}".strip())
    low, high = _range(values)
    edges = np.linspace(low, high, bins + 1)
    counts = [np.histogram(part, edges)[0] for part in values]
    names = [f"{group.name} ({len(part):,})" for group, part in zip(groups, values)]
    ticks, root = _count_ticks(counts)
    head, top = _head(names, title, root, width)
    across = Scale(low, high, start=canvas.tick_room(ticks), end=width - 12)
    up = Scale(0, ticks.values[-1], start=top + PLOT, end=top, root=root)
    x_ticks = ticks_within(low, high, wanted=max(2, int((across.end - across.start) / 55)))
    foot, below = canvas.foot(x_ticks, across, up.start, x_label)
    small, more = canvas.note(_left_out(left_out), up.start + below, width)
    return canvas.drawing(
        width,
        up.start + below + more,
        title,
        f"Histogram of {x_label}: {', '.join(names)}. {_left_out(left_out)}",
        head,
        canvas.grid(ticks, up, across.start, across.end),
        *(_outline(part, edges, series, across, up) for series, part in enumerate(counts)),
        *(_bins(part, edges, group.name, across, up) for group, part in zip(groups, counts)),
        foot,
        small,
    )


def _head(names: Sequence[str], title: str, root: bool, width: float) -> tuple[str, float]:
    scale = ", square-root scale" if root else ""
    words, y = canvas.heading(title, f"Number of values in each range{scale}", width)
    entries = [(name, series) for series, name in enumerate(names)]
    key, taken = canvas.legend(entries, canvas.area_swatch, y, width)
    return words + key, y + taken


def _finite(group: Group) -> np.ndarray:
    values = np.asarray(group.values, dtype=np.float64).ravel()
    return values[np.abs(values) <= LARGEST]


def _range(values: Sequence[np.ndarray]) -> tuple[float, float]:
    """From the smallest to the largest value; from 0, where the smallest is near it."""
    low, high = span([float(edge) for part in values if len(part) for edge in (part.min(), part.max())])
    return (0.0 if 0 < low < 0.1 * high else low), high


def _left_out(count: int) -> str:
    if not count:
        return ""
    return f"{count:,} {'value that is' if count == 1 else 'values that are'} not finite left out."


def _count_ticks(counts: Sequence[np.ndarray]) -> tuple[Ticks, bool]:
    """The vertical axis, and whether it is a square-root one: where a group else were a flat line."""
    peaks = [int(part.max()) for part in counts if part.any()]
    if max(peaks) > UNEVEN * min(peaks):
        return _root_ticks(max(peaks)), True
    return ticks_around(0, max(peaks), wanted=4, whole=True), False


def _root_ticks(tallest: int) -> Ticks:
    """0 and those of 1, 2, 5, ... that stand apart on a square-root axis, ending above the tallest bar."""
    last = ticks_around(0, tallest, wanted=8, whole=True).values[-1]
    chosen = [last]
    for power in range(int(math.log10(last)), -1, -1):
        for tick in (5 * 10**power, 2 * 10**power, 10**power):
            if tick < last and PLOT * (math.sqrt(chosen[0] / last) - math.sqrt(tick / last)) >= 30:
                chosen.insert(0, float(tick))
    if PLOT * math.sqrt(chosen[0] / last) < 18:
        chosen.pop(0)
    return Ticks((0.0, *chosen), 0)


def _bins(counts: np.ndarray, edges: np.ndarray, name: str, x: Scale, up: Scale) -> str:
    """One unseen rectangle a bin, which shows range and count to a resting pointer; none for empty bins."""
    decimals = max(0, 2 - math.floor(math.log10(edges[-1] - edges[0])))
    parts = []
    for count, start, end in zip(counts.tolist(), edges[:-1].tolist(), edges[1:].tolist()):
        if count:
            words = f"{name}: {count:,} from {number(start, decimals)} to {number(end, decimals)}"
            tip = element("title", escape(words))
            box = {"x": x(start), "y": up(count), "width": x(end) - x(start), "height": up.start - up(count)}
            parts.append(element("rect", tip, klass="bin", fill_opacity=0, **box))
    return "".join(parts)


def _outline(counts: np.ndarray, edges: np.ndarray, series: int, x: Scale, up: Scale) -> str:
    """The stairs over all bins, lightly filled: visible also where two groups cover each other."""
    if not counts.any():
        return ""
    filled = np.flatnonzero(counts)
    first, last = int(filled[0]), int(filled[-1])
    steps = "".join(f"V{pixels(up(counts[b]))}H{pixels(x(edges[b + 1]))}" for b in range(first, last + 1))
    path = f"M{pixels(x(edges[first]))},{pixels(up.start)}{steps}V{pixels(up.start)}"
    look = {"klass": f"stairs {canvas.look(series)}", "stroke_dasharray": canvas.dash(series)}
    return element("path", d=path, fill_opacity=0.24, **look)
