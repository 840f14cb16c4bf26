"""Loss distributions: the test against one computed by hand, and densities that are densities."""

import numpy as np
import pytest

from labelsieve.reproduce.curves import class_tests, densities, share_that_differs
from labelsieve.results.kept import EarlyLosses


def made(classes: int = 10, each: int = 200, shift: float = 0.0, seed: int = 0) -> EarlyLosses:
    """Gamma losses, wrong labels higher; the first half of the classes is moved by `shift`."""
    draws = np.random.default_rng(seed)
    given = np.repeat(np.arange(classes), each)
    wrong = np.tile(np.arange(each) % 2 == 1, classes)
    loss = draws.gamma(4.0, 0.2, len(given)) + 1.5 * wrong + shift * (given < classes // 2)
    names = tuple(f"class {k}" for k in range(classes))
    return EarlyLosses(np.stack((loss, loss)).astype(np.float32), np.stack((given, given)), names, np.stack((wrong, wrong)))


def largest_gap(one: np.ndarray, other: np.ndarray) -> float:
    """The Kolmogorov-Smirnov statistic by its definition: the largest distance of two cumulated shares."""
    places = np.concatenate((one, other))
    return max(abs((one <= place).mean() - (other <= place).mean()) for place in places)


def test_the_statistic_is_the_largest_gap_of_cumulated_shares() -> None:
    early = made(each=40, shift=0.3)
    found = class_tests(early)
    assert len(found) == 2 * 2 * 10
    for one in found[:20]:
        assert early.wrong is not None
        kind = early.wrong[one.network] == (one.kind == "noisy")
        losses, given = early.loss[one.network][kind].astype(float), early.given[one.network][kind]
        own = losses[given == early.classes.index(one.name)]
        assert one.samples == len(own) == 20
        assert one.statistic == pytest.approx(largest_gap(own, losses))


def test_alike_classes_seldom_differ_and_moved_ones_do() -> None:
    alike, moved = class_tests(made(seed=3)), class_tests(made(shift=0.5))
    for kind in ("clean", "noisy"):
        small, large = share_that_differs(alike, kind), share_that_differs(moved, kind)
        assert small is not None and large is not None
        assert small <= 0.1 and large == 1


def test_few_samples_are_not_tested() -> None:
    assert class_tests(made(classes=3, each=8)) == []
    assert share_that_differs([], "clean") is None


def test_densities_are_densities_and_the_band_holds_the_classes() -> None:
    clean, noisy = densities(made(shift=0.4))
    for one in (clean, noisy):
        assert one.classes == 10
        assert np.trapezoid(one.mean, one.loss) == pytest.approx(1, abs=0.03)
        assert (one.low <= one.mean + 1e-9).all() and (one.mean <= one.high + 1e-9).all()
    assert clean.loss[clean.mean.argmax()] < noisy.loss[noisy.mean.argmax()]
    narrow = densities(made(seed=1))[0]
    assert (narrow.high - narrow.low).max() < (clean.high - clean.low).max()
