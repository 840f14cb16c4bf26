"""Ticks, scales and the moving apart of labels."""

import itertools
import math

import numpy as np
import pytest

from labelsieve.report.canvas import Scale, drawable, span, spread, ticks_around, ticks_within


@pytest.mark.parametrize(
    ("low", "high", "wanted"),
    [
        (0, 100, (0, 20, 40, 60, 80, 100)),
        (55.3, 99.1, (50, 60, 70, 80, 90, 100)),
        (0.71, 0.99, (0.7, 0.8, 0.9, 1.0)),
        (-3, 4, (-4, -2, 0, 2, 4)),
    ],
)
def test_ticks_around_enclose_with_round_numbers(low: float, high: float, wanted: tuple[float, ...]) -> None:
    assert ticks_around(low, high, wanted=5).values == wanted


def test_ticks_within_stay_inside_and_whole() -> None:
    assert ticks_within(1, 40, wanted=8).values == (5, 10, 15, 20, 25, 30, 35, 40)
    assert ticks_within(0.5, 1.5, wanted=8, whole=True).values == (1,)


@pytest.mark.parametrize("low", [-1e299, -1e-7, 0.0, 1e-280, 5.0, 1e6, 1e38])
@pytest.mark.parametrize("width", [0.0, 1e-250, 1e-9, 1.0, 1e7, 1e299])
def test_ticks_of_any_range_are_few_distinct_and_named_apart(low: float, width: float) -> None:
    bottom, top = span([low, low + width])
    assert math.isfinite(top - bottom) and top > bottom
    ticks = ticks_around(bottom, top, wanted=5)
    assert 2 <= len(ticks.values) <= 8
    assert len(set(ticks.texts())) == len(ticks.values)
    assert ticks.values[0] <= bottom + 1e-6 * (top - bottom)
    assert ticks.values[-1] >= top - 1e-6 * (top - bottom)


def test_span_of_nothing_and_of_one_value() -> None:
    assert span([]) == (0.0, 1.0)
    assert span([3.0]) == (2.5, 3.5)
    assert span([0.0, 0.0]) == (-0.5, 0.5)
    assert span([2.0, 7.0]) == (2.0, 7.0)


def test_drawable() -> None:
    assert drawable(0.0) and drawable(-1e38) and drawable(np.float32(3))
    assert not any(drawable(value) for value in (None, math.nan, math.inf, -math.inf, np.float32("nan")))


def test_scale_is_straight_or_a_root() -> None:
    assert Scale(0, 10, 100, 0)(2.5) == 75
    assert Scale(0, 100, 200, 0, root=True)(25) == 100


def test_spread_leaves_apart_what_is_apart() -> None:
    assert spread([10, 50, 90], 15, 0, 100) == [10, 50, 90]


def test_spread_moves_two_alike_evenly_and_keeps_order() -> None:
    assert spread([50, 50.2, 90], 15, 0, 100) == pytest.approx([42.6, 57.6, 90])


def test_spread_at_the_border_stays_inside() -> None:
    assert spread([1, 0, 2], 10, 0, 100) == [10, 0, 20]
    assert spread([99, 100], 10, 0, 100) == [90, 100]


def test_spread_keeps_the_gap_for_any_input() -> None:
    random = np.random.default_rng(1)
    for _ in range(200):
        count = int(random.integers(1, 12))
        wanted = random.uniform(-20, 220, count).tolist()
        placed = spread(wanted, 15, 0, 200)
        assert min(placed) >= -1e-9 and max(placed) <= 200 + 1e-9
        ordered = [placed[i] for i in np.argsort(wanted, kind="stable")]
        assert all(b - a >= 15 - 1e-9 for a, b in itertools.pairwise(ordered))
