"""What every chart shares: the drawing and its accessible name, heading, notes, axes with round ticks, the looks of a series.

Colours live in the page's style sheet (classes `s0` to `s5`): one drawing serves light, dark and paper.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from labelsieve.report.markup import element, escape, number, pixels, shortened, text_width, wrapped

# Beyond this a difference of two values overflows; such a value is treated like a missing one.
LARGEST = 1e300


@dataclass(frozen=True)
class Scale:
    """A straight (or square-root) map from [low, high] to [start, end] in pixels."""

    low: float
    high: float
    start: float
    end: float
    root: bool = False

    def __call__(self, value: float) -> float:
        share = (value - self.low) / (self.high - self.low)
        return self.start + (self.end - self.start) * (math.sqrt(share) if self.root else share)


@dataclass(frozen=True)
class Ticks:
    """Round values in rising order, and how many decimals tell them apart."""

    values: tuple[float, ...]
    decimals: int

    def texts(self) -> list[str]:
        # Ticks are round, so twelve digits never show more than they need to differ.
        return [number(value, self.decimals, digits=12) for value in self.values]


def known(values: Iterable[float | None]) -> list[float]:
    """The values one can draw: neither None nor NaN nor infinite."""
    return [float(value) for value in values if value is not None and drawable(value)]


def drawable(value: float | None) -> bool:
    return value is not None and abs(float(value)) <= LARGEST


def span(values: Sequence[float]) -> tuple[float, float]:
    """The smallest and the largest value, pulled apart where they (nearly) coincide; (0, 1) for no values."""
    if not values:
        return 0.0, 1.0
    low, high = min(values), max(values)
    size = max(abs(low), abs(high))
    if high - low > max(size * 1e-9, 1e-290):
        return low, high
    apart = 0.5 if size < 1e-280 or (float(low).is_integer() and size < 1e6) else size * 0.1
    return low - apart, high + apart


def round_step(low: float, high: float, wanted: int, whole: bool = False) -> float:
    """The 1, 2 or 5 times a power of ten that cuts [low, high] into about `wanted` pieces, and not more."""
    rough = (high - low) / max(1, wanted)
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough * (1 - 1e-9))
    return max(step, 1.0) if whole else step


def ticks_within(low: float, high: float, wanted: int, whole: bool = False) -> Ticks:
    """Round ticks that lie inside [low, high]."""
    step = round_step(low, high, wanted, whole)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return _multiples(first, last, step)


def ticks_around(low: float, high: float, wanted: int, whole: bool = False) -> Ticks:
    """Round ticks whose first and last enclose [low, high], for an axis that ends on its ticks."""
    step = round_step(low, high, wanted, whole)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return _multiples(first, max(last, first + 1), step)


def _multiples(first: int, last: int, step: float) -> Ticks:
    values = tuple(float(f"{count * step:.12g}") for count in range(first, last + 1))
    return Ticks(values, max(0, -math.floor(math.log10(step) + 1e-9)))


def spread(wanted: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """Positions as near as possible to the wanted ones, at least `gap` apart, inside [low, high].

    Neighbours that collide form a block centred on the mean of what its members want; blocks merge until
    none touch. Needs `(len(wanted) - 1) * gap <= high - low`; the caller makes the picture tall enough.
    """
    order = sorted(range(len(wanted)), key=lambda index: wanted[index])
    blocks: list[list[int]] = []
    for index in order:
        blocks.append([index])
        while len(blocks) > 1 and _top(blocks[-1], wanted, gap, low, high) < (
            _top(blocks[-2], wanted, gap, low, high) + gap * len(blocks[-2])
        ):
            joined = blocks.pop()
            blocks[-1].extend(joined)
    placed = [0.0] * len(wanted)
    for block in blocks:
        top = _top(block, wanted, gap, low, high)
        for rank, index in enumerate(block):
            placed[index] = top + rank * gap
    return placed


def _top(block: Sequence[int], wanted: Sequence[float], gap: float, low: float, high: float) -> float:
    height = (len(block) - 1) * gap
    centre = sum(wanted[index] for index in block) / len(block)
    return max(low, min(centre - height / 2, high - height))


SIZE = 12.0  # of all small text
HEAD = 15.0
BOLD = 1.1  # how much wider bold letters are
LINE = 17.0
WIDE = 720.0
NARROW = 340.0
COLOURS = 6
# No two of the first six series share colour, dash or marker: each of the three alone tells them apart.
DASHES = (None, "7 4", "2 3", "10 3 2 3", "14 4", "5 2 1 2 1 2")


def drawing(width: float, height: float, title: str, description: str, *parts: str) -> str:
    """The `<svg>`; a screen reader says title and description, and nothing of what is inside."""
    return element(
        "svg",
        element("title", escape(title)),
        element("desc", escape(description)),
        *parts,
        klass="chart",
        role="img",
        viewBox=f"0 0 {pixels(width)} {pixels(height)}",
        width=width,
        height=height,
        font_size=SIZE,
    )


def text(x: float, y: float, content: str, klass: str = "small", anchor: str | None = None, **more: object) -> str:
    return element("text", escape(content), x=x, y=y, klass=klass, text_anchor=anchor, **more)


def heading(title: str, subtitle: str, width: float) -> tuple[str, float]:
    """Title and what the numbers mean, in as many lines as they need; and where the drawing goes on."""
    parts, y = [], 0.0
    for line in wrapped(title, BOLD * HEAD, width):
        y += LINE + 1
        parts.append(text(0, y - 4, line, "head", font_size=HEAD))
    for line in wrapped(subtitle, SIZE, width):
        y += LINE
        parts.append(text(0, y - 2, line))
    return "".join(parts), y + 14


def note(content: str, y: float, width: float) -> tuple[str, float]:
    """Small print below a chart; and its height."""
    lines = wrapped(content, SIZE, width)
    return "".join(text(0, y + LINE * (row + 1) - 4, line) for row, line in enumerate(lines)), LINE * len(lines)


def look(series: int) -> str:
    return f"s{series % COLOURS}"


def dash(series: int) -> str | None:
    """From the seventh series on colours repeat, with another dash."""
    return DASHES[(series + series // COLOURS) % len(DASHES)]


def marker(series: int, x: float, y: float, radius: float = 3.8) -> str:
    """A small filled shape, another one for each of the first six series."""
    sides, turn = ((0, 0.0), (4, 45.0), (3, -90.0), (4, 0.0), (3, 90.0), (6, 0.0))[series % COLOURS]
    if not sides:
        return element("circle", klass=f"mark {look(series)}", cx=x, cy=y, r=radius)
    angles = [math.radians(turn + 360 * corner / sides) for corner in range(sides)]
    size = radius * (1.2 if sides < 6 else 1.0)
    corners = " ".join(f"{pixels(x + size * math.cos(a))},{pixels(y + size * math.sin(a))}" for a in angles)
    return element("polygon", klass=f"mark {look(series)}", points=corners)


def grid(ticks: Ticks, y: Scale, left: float, right: float) -> str:
    """Horizontal lines and their numbers, which stand to the left of `left`."""
    parts = []
    for value, label in zip(ticks.values, ticks.texts()):
        parts.append(element("line", klass="grid", x1=left, x2=right, y1=y(value), y2=y(value)))
        parts.append(text(left - 8, y(value) + 4, label, "tick", "end"))
    return "".join(parts)


def tick_room(ticks: Ticks) -> float:
    """How much the numbers beside the vertical axis need."""
    return max((text_width(label, SIZE) for label in ticks.texts()), default=0.0) + 12


def foot(ticks: Ticks, x: Scale, bottom: float, name: str) -> tuple[str, float]:
    """The horizontal axis and its name; and its height. Numbers that would touch are left out."""
    parts = [element("line", klass="axis", x1=x.start, x2=x.end, y1=bottom, y2=bottom)]
    free = -math.inf
    for value, label in zip(ticks.values, ticks.texts()):
        half = text_width(label, SIZE) / 2
        parts.append(element("line", klass="axis", x1=x(value), x2=x(value), y1=bottom, y2=bottom + 4))
        if x(value) - half > free:
            parts.append(text(x(value), bottom + 18, label, "tick", "middle"))
            free = x(value) + half + 4
    shown = shortened(name, SIZE, x.end - x.start)
    parts.append(text((x.start + x.end) / 2, bottom + 36, shown, anchor="middle"))
    return "".join(parts), 42.0


def legend(
    entries: Sequence[tuple[str, int]], swatch: Callable[[int, float, float], str], top: float, width: float
) -> tuple[str, float]:
    """A swatch and a name for each (name, series), flowing into as many rows as needed; and the height."""
    parts, x, y = [], 0.0, top + 10
    for name, series in entries:
        shown = shortened(name, SIZE, width - 26)
        need = 26 + text_width(shown, SIZE) + 14
        if x and x + need - 14 > width:
            x, y = 0.0, y + LINE
        parts.append(swatch(series, x, y - 4))
        parts.append(text(x + 26, y, shown, "label"))
        x += need
    return "".join(parts), y + 16 - top


def area_swatch(series: int, x: float, y: float) -> str:
    path = f"M{pixels(x)},{pixels(y + 5)}v-10h20v10z"
    return element("path", d=path, klass=f"stairs {look(series)}", stroke_dasharray=dash(series))


def line_swatch(series: int, x: float, y: float) -> str:
    ends = {"x1": x, "x2": x + 20, "y1": y, "y2": y}
    stroke = element("line", klass=f"line {look(series)}", stroke_dasharray=dash(series), **ends)
    return stroke + marker(series, x + 10, y)


def nothing(title: str, width: float, reason: str) -> str:
    """The chart of no data: it says so instead of drawing empty axes."""
    top, y = heading(title, "", width)
    words, height = note(reason, y, width)
    return drawing(width, y + height + 6, title, reason, top, words)
