"""Estimates worked out by hand, and held against labels made wrong."""

import numpy as np
import pytest

from labelsieve.issues.estimate import UNKNOWN_WORDS, Chances, Share, expected_yield, in_words, sentence, spread


def sure(wrong: list[float]) -> Chances:
    return Chances(np.array(wrong, float), np.array([wrong], float))


def test_the_yield_adds_up_along_the_list() -> None:
    found = expected_yield(sure([0, 1, 0, 1, 0.5]), np.array([1, 3, 4, 0, 2]))
    assert found.checked.tolist() == [0, 1, 2, 3, 4, 5]
    assert found.expected.tolist() == [0, 1, 2, 2.5, 2.5, 2.5]
    assert found.at(2) == (2, 2, 2) and found.at(3)[1] < 2.5 < found.at(3)[2] <= 3


def test_a_long_list_keeps_few_points_and_its_end() -> None:
    draws = np.random.default_rng(0).random(10_000)
    found = expected_yield(sure(draws.tolist()), np.argsort(-draws), points=50)
    assert len(found.checked) <= 51 and found.checked[-1] == 10_000
    assert found.expected[-1] == pytest.approx(draws.sum())
    assert (found.low <= found.expected).all() and (found.expected <= found.high).all()


def test_a_wide_interval_leads() -> None:
    assert in_words(Share(0.34, 0.18, 0.35)) == ("between 18.0 and 35.0 %", "point estimate 34.0 %")
    assert in_words(Share(0.17, 0.123, 0.192), 0) == ("about 17 %", "12 to 19 %")
    assert sentence(Share(0.17, 0.123, 0.192)) == "About 17.0 % of the labels seem to be wrong (12.3 to 19.2 %)."


def test_what_cannot_be_known_is_said_without_a_number() -> None:
    found = Share(0.3, 0.1, 0.61)
    assert not found.known and sentence(found) == UNKNOWN_WORDS
    assert "%" not in sentence(found) + "".join(in_words(found))
    assert Share(0.3, 0.1, 0.6).known


def test_estimates_are_spread_over_what_is_contradicted_and_the_most_over_the_top() -> None:
    score, differs = np.array([0.9, 0.2, 0.4, 0.0]), np.array([False, True, True, True])
    found = spread(score, differs, np.argsort(score), Share(0.5, 0.25, 0.75))
    doubt = np.array([0.0, 0.8, 0.6, 1.0]) ** 3 / (0.8**3 + 0.6**3 + 1)
    assert found.wrong.tolist() == pytest.approx(np.minimum(2 * doubt, 1).tolist())
    assert found.opinions.tolist() == [pytest.approx(doubt.tolist()), [0, 1, 1, 1]]
    nothing = spread(np.ones(4), np.zeros(4, bool), np.arange(4), Share(0.0, 0.0, 0.5))
    assert not nothing.wrong.any() and nothing.opinions.sum() == 2
