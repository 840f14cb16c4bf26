"""The paired bootstrap against SciPy's, which resamples picture by picture."""

import numpy as np
import pytest
from scipy.stats import bootstrap

from labelsieve.errors import UsageError
from labelsieve.reproduce.compare import paired_bootstrap


def answers(count: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Two runs that are right on 70 and 74 % and often on the same pictures."""
    draws = np.random.default_rng(seed)
    hard = draws.random(count)
    first = hard + 0.2 * draws.standard_normal(count) < 0.7
    second = hard + 0.2 * draws.standard_normal(count) < 0.74
    return first, second


@pytest.mark.parametrize("count", [200, 1500])
def test_the_interval_is_scipys(count: int) -> None:
    first, second = answers(count)
    ours = paired_bootstrap(first, second, resamples=50_000)

    def points(one: np.ndarray, two: np.ndarray, axis: int) -> np.ndarray:
        return 100 * (two.mean(axis=axis) - one.mean(axis=axis))

    theirs = bootstrap(
        (first.astype(float), second.astype(float)),
        points,
        paired=True,
        vectorized=True,
        n_resamples=4000,
        batch=500,
        method="percentile",
        rng=np.random.default_rng(1),
    )
    spread = theirs.standard_error
    assert ours.points == pytest.approx(100 * (second.mean() - first.mean()))
    # two ends of 4000 resamples scatter by some hundredths of a standard error
    assert abs(ours.low - theirs.confidence_interval.low) < 0.15 * spread
    assert abs(ours.high - theirs.confidence_interval.high) < 0.15 * spread


def test_pairing_makes_the_interval_narrower_than_two_apart() -> None:
    first, second = answers(1500)
    paired = paired_bootstrap(first, second)
    shuffled = paired_bootstrap(np.random.default_rng(3).permutation(first), second)
    assert paired.high - paired.low < 0.9 * (shuffled.high - shuffled.low)


def test_equal_answers_leave_room_for_a_difference_elsewhere_and_the_seed_decides() -> None:
    """On 300 pictures two runs may agree by chance where each alone is right on one in a hundred others."""
    first, second = answers(300)
    same = paired_bootstrap(first, first)
    assert same.points == 0 and not same.is_clear
    assert -1.3 < same.low < 0 < same.high < 1.3
    assert paired_bootstrap(first, second, seed=4) == paired_bootstrap(first, second, seed=4)
    counted = paired_bootstrap(first, second)
    assert counted.only_second - counted.only_first == round(counted.points * 3)


def test_answers_on_other_pictures_cannot_be_paired() -> None:
    with pytest.raises(UsageError, match="3 and 4 answers"):
        paired_bootstrap(np.ones(3, bool), np.ones(4, bool))


def test_the_interval_holds_small_differences_as_often_as_it_says() -> None:
    """Two in 449 are won and half a one is lost on average: a plain percentile interval held this in 86 % of cases."""
    draws, count, repeats = np.random.default_rng(0), 449, 300
    gained, lost = 2 / count, 0.5 / count
    held = 0
    for repeat in range(repeats):
        kind = draws.choice(3, count, p=[gained, lost, 1 - gained - lost])
        found = paired_bootstrap(kind == 1, kind == 0, seed=repeat, resamples=1000)
        held += found.low <= 100 * (gained - lost) <= found.high
    assert held / repeats > 0.92  # of 0.95, two and a half deviations of 300 draws


def test_four_pictures_are_no_clear_difference() -> None:
    """Of four that only one run gets right, all are the same run's once in eight times (McNemar's exact test)."""
    second = np.arange(500) < 4
    assert not paired_bootstrap(np.zeros(500, bool), second).is_clear
    assert paired_bootstrap(np.zeros(500, bool), np.arange(500) < 9).is_clear
