"""Charts as SVG: histograms (groups of values in common bins, laid over each other) and lines, each named at its end."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from labelsieve.errors import UsageError
from labelsieve.report import canvas
from labelsieve.report.canvas import LARGEST, Scale, Ticks, drawable, known, span, spread, ticks_around, ticks_within
from labelsieve.report.markup import element, escape, number, pixels, shortened, text_width

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


LINES_PLOT = 250.0
LABEL_GAP = 15.0

Values = Sequence[float | None] | np.ndarray


@dataclass(frozen=True, eq=False)
class Curve:
    """A named line through (x[i], y[i]); None, NaN and infinities make gaps.

    `series` fixes the look (colour, dash, marker), so that one thing looks alike in two charts; by default a
    curve's place in the chart decides. `between` is what y may lie between, (lower, upper), shaded around the line.
    """

    name: str
    x: Values
    y: Values
    series: int | None = None
    between: tuple[Values, Values] | None = None


@dataclass(frozen=True)
class Band:
    """A shaded range of x, such as the warm-up."""

    start: float
    end: float
    label: str


Point = tuple[float, float]


@dataclass(frozen=True)
class _Drawn:
    """A curve cut at its gaps: every run of points is drawn as one line."""

    name: str
    series: int
    runs: list[list[Point]]
    edges: tuple[list[Point], list[Point]]  # of the shaded area: below and above

    @property
    def last(self) -> Point:
        return self.runs[-1][-1]


def line_chart(
    curves: Sequence[Curve],
    *,
    title: str,
    x_label: str,
    y_label: str,
    bands: Sequence[Band] = (),
    width: float = canvas.WIDE,
) -> str:
    """An SVG of the curves; the axes are chosen from the values, the vertical one ends on round numbers."""
    cut = [_Drawn(c.name, i if c.series is None else c.series, _runs(c), _edges(c)) for i, c in enumerate(curves)]
    drawn = [curve for curve in cut if curve.runs]
    if not drawn:
        return canvas.nothing(title, width, "No values to draw.")
    names, label_room = _names(drawn, width)
    head, top = _line_head(drawn, names, title, y_label, width)
    top += canvas.LINE if bands else 0.0
    bottom = top + max(LINES_PLOT, LABEL_GAP * len(drawn))
    points = [point for curve in drawn for part in (*curve.runs, *curve.edges) for point in part]
    ticks = ticks_around(*span([y for _, y in points]), wanted=5)
    across = Scale(*span([x for x, _ in points]), start=canvas.tick_room(ticks), end=width - label_room)
    up = Scale(ticks.values[0], ticks.values[-1], start=bottom, end=top)
    foot, below = canvas.foot(_x_ticks(points, across), across, bottom, x_label)
    small, more = canvas.note(_without([c.name for c in cut if not c.runs]), bottom + below, width)
    return canvas.drawing(
        width,
        bottom + below + more,
        title,
        _description(cut, x_label, bands),
        head,
        _bands(bands, across, top, bottom),
        canvas.grid(ticks, up, across.start, across.end),
        foot,
        *(_area(curve, across, up) for curve in drawn),
        *(_line(curve, across, up) for curve in drawn),
        _labels(drawn, names, across, up),
        small,
    )


def _line_head(drawn: Sequence[_Drawn], names: Sequence[str], title: str, subtitle: str, width: float) -> tuple[str, float]:
    """The heading and, where a name was cut at its line's end, a legend with all names in full."""
    words, y = canvas.heading(title, subtitle, width)
    if list(names) == [curve.name for curve in drawn]:
        return words, y
    key, taken = canvas.legend([(c.name, c.series) for c in drawn], canvas.line_swatch, y, width)
    return words + key, y + taken


def _x_ticks(points: Sequence[Point], across: Scale) -> Ticks:
    """About one number every 55 pixels; whole ones where all x are, as epochs are."""
    whole = all(x.is_integer() for x, _ in points)
    wanted = max(2, int((across.end - across.start) / 55))
    return ticks_within(across.low, across.high, wanted=wanted, whole=whole)


def _without(names: Sequence[str]) -> str:
    return f"Without values: {', '.join(names)}" if names else ""


def _names(drawn: Sequence[_Drawn], width: float) -> tuple[list[str], float]:
    """The names as they fit beside the line ends, and the room they take there; they are set in bold."""
    bold = canvas.BOLD * canvas.SIZE
    cut = [shortened(name, bold, max(0.28 * width, 104.0)) for name in (curve.name for curve in drawn)]
    return cut, 18 + max(text_width(name, bold) for name in cut)


def _runs(curve: Curve) -> list[list[Point]]:
    """The curve cut at its gaps: every run is drawn as one line."""
    if len(curve.x) != len(curve.y):
        raise UsageError(f'curve "{curve.name}": {len(curve.x)} x values and {len(curve.y)} y values; give as many')
    runs: list[list[Point]] = [[]]
    for x, y in zip(curve.x, curve.y):
        if drawable(x) and drawable(y):
            runs[-1].append((float(x), float(y)))
        elif runs[-1]:
            runs.append([])
    return [run for run in runs if run]


def _edges(curve: Curve) -> tuple[list[Point], list[Point]]:
    """The lower and the upper edge of the shaded area, at those places where both are known."""
    if curve.between is None:
        return [], []
    rows = [row for row in zip(curve.x, *curve.between) if all(map(drawable, row))]
    return [(float(x), float(low)) for x, low, _ in rows], [(float(x), float(high)) for x, _, high in rows]


def _area(curve: _Drawn, x: Scale, y: Scale) -> str:
    below, above = curve.edges
    if len(below) < 2:
        return ""
    path = "M" + "L".join(f"{pixels(x(a))},{pixels(y(b))}" for a, b in (*below, *reversed(above))) + "z"
    return element("path", d=path, klass=f"area {canvas.look(curve.series)}", fill_opacity=0.18)


def _line(curve: _Drawn, x: Scale, y: Scale) -> str:
    """One path for the whole curve; a point between two gaps would have no length, so it gets a marker."""
    long = [run for run in curve.runs if len(run) > 1]
    path = "".join("M" + "L".join(f"{pixels(x(a))},{pixels(y(b))}" for a, b in run) for run in long)
    alone = [run[0] for run in curve.runs if len(run) == 1]
    marks = "".join(canvas.marker(curve.series, x(a), y(b), 2.6) for a, b in alone)
    look = {"klass": f"line {canvas.look(curve.series)}", "stroke_dasharray": canvas.dash(curve.series)}
    return (element("path", d=path, fill="none", **look) if path else "") + marks


def _labels(drawn: Sequence[_Drawn], names: Sequence[str], across: Scale, up: Scale) -> str:
    """Names beside the line ends, moved apart where they would overlap, with a thin line back to the end."""
    right = across.end
    places = spread([up(curve.last[1]) for curve in drawn], LABEL_GAP, up.end + 2, up.start)
    parts = []
    for curve, name, place in zip(drawn, names, places):
        x, y, look = across(curve.last[0]), up(curve.last[1]), canvas.look(curve.series)
        if abs(place - y) > 3 or x < right - 3:
            ends = {"x1": x, "y1": y, "x2": right + 11, "y2": place}
            parts.append(element("line", klass=f"leader {look}", **ends))
        parts.append(canvas.marker(curve.series, x, y))
        parts.append(canvas.text(right + 14, place + 4, name, f"label end {look}"))
    return "".join(parts)


def _bands(bands: Sequence[Band], x: Scale, top: float, bottom: float) -> str:
    """Shaded ranges, cut to what the axis shows; their names stand above the plot."""
    parts, seen = (
        [],
        [b for b in bands if b.end > x.low and b.start < x.high and len(known([b.start, b.end])) == 2],
    )
    for place, band in enumerate(sorted(seen, key=lambda band: band.start)):
        start, end = x(max(band.start, x.low)), x(min(band.end, x.high))
        later = [x(other.start) for other in seen if x(other.start) > start]
        room = min([x.end, *later]) - start - 4
        shape = {"x": start, "y": top, "width": end - start, "height": bottom - top}
        parts.append(element("rect", klass=f"band b{place % 2}", **shape))
        parts.append(canvas.text(start, top - 6, shortened(band.label, canvas.SIZE, room)))
    return "".join(parts)


def _description(curves: Sequence[_Drawn], x_label: str, bands: Sequence[Band]) -> str:
    said = []
    for curve in curves:
        if curve.runs:
            x, y = curve.last
            said.append(f"{curve.name}: ends at {number(y, 3)} ({x_label} {number(x, 0)}).")
        else:
            said.append(f"{curve.name}: no values.")
    said += [f"Shaded: {band.label}, from {number(band.start, 0)} to {number(band.end, 0)}." for band in bands]
    return " ".join(said)
