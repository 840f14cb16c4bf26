"""Turns values into pixel positions and round tick marks. Nothing here writes markup."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from labelsieve.report.markup import number

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
