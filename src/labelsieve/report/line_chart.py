"""Line charts as SVG, each line named at its end."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from labelsieve.errors import UsageError
from labelsieve.report import canvas
from labelsieve.report.axes import Scale, Ticks, drawable, known, span, spread, ticks_around, ticks_within
from labelsieve.report.markup import element, number, pixels, shortened, text_width

PLOT = 250.0
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
    head, top = _head(drawn, names, title, y_label, width)
    top += canvas.LINE if bands else 0.0
    bottom = top + max(PLOT, LABEL_GAP * len(drawn))
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


def _head(drawn: Sequence[_Drawn], names: Sequence[str], title: str, subtitle: str, width: float) -> tuple[str, float]:
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
