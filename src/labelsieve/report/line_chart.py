"""Curves go in, one SVG line chart comes out, each line named at its end."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from labelsieve.errors import UsageError
from labelsieve.report import canvas
from labelsieve.report.axes import Scale, drawable, known, span, spread, ticks_around, ticks_within
from labelsieve.report.markup import element, number, pixels, shortened, text_width

PLOT = 250.0
LABEL_GAP = 15.0

Values = Sequence[float | None] | np.ndarray


@dataclass(frozen=True, eq=False)
class Curve:
    """A named line through (x[i], y[i]); None, NaN and infinities make gaps.

    `series` fixes the look (colour, dash, marker), so that one thing looks alike in two charts; by default a
    curve's place in the chart decides.
    """

    name: str
    x: Values
    y: Values
    series: int | None = None


@dataclass(frozen=True)
class Band:
    """A shaded range of x, such as the warm-up."""

    start: float
    end: float
    label: str


Point = tuple[float, float]


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
    runs = [_runs(curve) for curve in curves]
    drawn = [index for index, parts in enumerate(runs) if parts]
    if not drawn:
        return canvas.nothing(title, width, "No values to draw.")
    points = [point for parts in runs for part in parts for point in part]
    looks = [_series(curves[i], i) for i in drawn]
    top, y = canvas.heading(title, y_label, width)
    names, label_room = _names([curves[i].name for i in drawn], width)
    if names != [curves[i].name for i in drawn]:
        # A name that was cut at the line's end is to be read in full somewhere.
        entries = [(curves[i].name, look) for i, look in zip(drawn, looks)]
        key, taken = canvas.legend(entries, canvas.line_swatch, y, width)
        top, y = top + key, y + taken
    y += canvas.LINE if bands else 0.0
    bottom = y + max(PLOT, LABEL_GAP * len(drawn))
    ticks = ticks_around(*span([p[1] for p in points]), wanted=5)
    right = width - label_room
    across = [p[0] for p in points]
    whole = all(value.is_integer() for value in across)
    x_scale = Scale(*span(across), start=canvas.tick_room(ticks), end=right)
    y_scale = Scale(ticks.values[0], ticks.values[-1], start=bottom, end=y)
    x_ticks = ticks_within(
        x_scale.low, x_scale.high, wanted=max(2, int((right - x_scale.start) / 55)), whole=whole
    )
    foot, below = canvas.foot(x_ticks, x_scale, bottom, x_label)
    lines = [_line(runs[i], look, x_scale, y_scale) for i, look in zip(drawn, looks)]
    ends = [(x_scale(runs[i][-1][-1][0]), y_scale(runs[i][-1][-1][1])) for i in drawn]
    labels = _labels(names, looks, ends, (y, bottom), right)
    empty = [curve.name for curve, parts in zip(curves, runs) if not parts]
    small, more = canvas.note(f"Without values: {', '.join(empty)}" if empty else "", bottom + below, width)
    return canvas.drawing(
        width,
        bottom + below + more,
        title,
        _description(curves, runs, x_label, bands),
        top,
        _bands(bands, x_scale, y, bottom),
        canvas.grid(ticks, y_scale, x_scale.start, right),
        foot,
        *lines,
        labels,
        small,
    )


def _series(curve: Curve, index: int) -> int:
    return index if curve.series is None else curve.series


def _names(names: Sequence[str], width: float) -> tuple[list[str], float]:
    """The names as they fit beside the line ends, and the room they take there; they are set in bold."""
    bold = canvas.BOLD * canvas.SIZE
    cut = [shortened(name, bold, max(0.28 * width, 104.0)) for name in names]
    return cut, 18 + max(text_width(name, bold) for name in cut)


def _runs(curve: Curve) -> list[list[Point]]:
    """The curve cut at its gaps: every run is drawn as one line."""
    if len(curve.x) != len(curve.y):
        raise UsageError(
            f'curve "{curve.name}": {len(curve.x)} x values and {len(curve.y)} y values; give as many'
        )
    runs: list[list[Point]] = [[]]
    for x, y in zip(curve.x, curve.y):
        if drawable(x) and drawable(y):
            runs[-1].append((float(x), float(y)))
        elif runs[-1]:
            runs.append([])
    return [run for run in runs if run]


def _line(runs: list[list[Point]], series: int, x: Scale, y: Scale) -> str:
    """One path for the whole curve; a point between two gaps would have no length, so it gets a marker."""
    path = "".join(
        "M" + "L".join(f"{pixels(x(a))},{pixels(y(b))}" for a, b in run) for run in runs if len(run) > 1
    )
    alone = [canvas.marker(series, x(run[0][0]), y(run[0][1]), 2.6) for run in runs if len(run) == 1]
    look = canvas.look(series)
    line = element("path", klass=f"line {look}", d=path, fill="none", stroke_dasharray=canvas.dash(series))
    return (line if path else "") + "".join(alone)


def _labels(
    names: Sequence[str], series: Sequence[int], ends: Sequence[Point], room: Point, right: float
) -> str:
    """Names beside the line ends, moved apart where they would overlap, with a thin line back to the end."""
    places = spread([y for _, y in ends], LABEL_GAP, room[0] + 2, room[1])
    parts = []
    for name, kind, (x, y), place in zip(names, series, ends, places):
        if abs(place - y) > 3 or x < right - 3:
            parts.append(
                element("line", klass=f"leader {canvas.look(kind)}", x1=x, y1=y, x2=right + 11, y2=place)
            )
        parts.append(canvas.marker(kind, x, y))
        parts.append(canvas.text(right + 14, place + 4, name, f"label end {canvas.look(kind)}"))
    return "".join(parts)


def _bands(bands: Sequence[Band], x: Scale, top: float, bottom: float) -> str:
    """Shaded ranges, cut to what the axis shows; their names stand above the plot."""
    parts, seen = [], [b for b in bands if b.end > x.low and b.start < x.high and known([b.start, b.end])]
    for place, band in enumerate(sorted(seen, key=lambda band: band.start)):
        start, end = x(max(band.start, x.low)), x(min(band.end, x.high))
        later = [x(other.start) for other in seen if x(other.start) > start]
        room = min([x.end, *later]) - start - 4
        shape = {"x": start, "y": top, "width": end - start, "height": bottom - top}
        parts.append(element("rect", klass=f"band b{place % 2}", **shape))
        parts.append(canvas.text(start, top - 6, shortened(band.label, canvas.SIZE, room)))
    return "".join(parts)


def _description(
    curves: Sequence[Curve], runs: Sequence[list[list[Point]]], x_label: str, bands: Sequence[Band]
) -> str:
    said = []
    for curve, parts in zip(curves, runs):
        last = (
            f"ends at {number(parts[-1][-1][1], 3)} ({x_label} {number(parts[-1][-1][0], 0)})"
            if parts
            else "no values"
        )
        said.append(f"{curve.name}: {last}.")
    said += [
        f"Shaded: {band.label}, from {number(band.start, 0)} to {number(band.end, 0)}." for band in bands
    ]
    return " ".join(said)
