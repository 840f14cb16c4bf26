"""The paired bootstrap against SciPy's, which resamples picture by picture."""

import numpy as np
import pytest
from scipy.stats import bootstrap

from labelsieve.errors import UsageError
from labelsieve.reproduce.bootstrap import interval, paired_bootstrap


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


def test_one_runs_interval_is_the_binomials() -> None:
    right = np.arange(1000) < 800
    low, high = interval(right, resamples=50_000)
    half = 1.96 * 100 * np.sqrt(0.8 * 0.2 / 1000)
    assert low == pytest.approx(80 - half, abs=0.15) and high == pytest.approx(80 + half, abs=0.15)


def test_equal_answers_differ_by_nothing_and_the_seed_decides() -> None:
    first, second = answers(300)
    same = paired_bootstrap(first, first)
    assert (same.points, same.low, same.high, same.is_clear) == (0, 0, 0, False)
    assert paired_bootstrap(first, second, seed=4) == paired_bootstrap(first, second, seed=4)
    counted = paired_bootstrap(first, second)
    assert counted.only_second - counted.only_first == round(counted.points * 3)


def test_answers_on_other_pictures_cannot_be_paired() -> None:
    with pytest.raises(UsageError, match="3 and 4 answers"):
        paired_bootstrap(np.ones(3, bool), np.ones(4, bool))
