"""Estimates worked out by hand, and held against labels made wrong."""

import numpy as np
import pytest

from labelsieve.issues.estimate import Chances, by_class, chances, doubted, expected_yield, in_words, limited, wrong_share


def sure(wrong: list[float]) -> Chances:
    return Chances(np.array(wrong, float), np.array([wrong], float))


def test_only_contradicted_labels_count_as_wrong() -> None:
    score = np.array([0.1, 0.2, 0.9])
    given, suggested = np.array([0, 0, 1]), np.array([1, 0, 1])
    predicted = np.stack([suggested, suggested])
    found = chances(score, np.stack([np.stack([score, score])]), given, predicted, suggested, np.array([0.9, 0.9, 0.9]))
    assert found.wrong.tolist() == pytest.approx([0.9, 0, 0])
    assert np.allclose(found.opinions, found.wrong) and found.opinions.shape == (3, 3)


def test_the_low_end_counts_only_what_both_networks_are_sure_of() -> None:
    count = 4
    score, given, suggested = np.zeros(count), np.zeros(count, int), np.ones(count, int)
    predicted = np.array([[1, 1, 1, 1], [1, 1, 1, 0]])
    judges = np.zeros((1, 2, count))
    found = chances(score, judges, given, predicted, suggested, np.array([0.9, 0.4, 0.9, 0.9]))
    share = wrong_share(found)
    assert (share.share, share.low, share.high, share.count) == (1.0, 0.5, 1.0, count)  # rows 0 and 2


def test_sure_chances_give_a_narrow_interval_and_unsure_ones_a_wide_one() -> None:
    narrow = wrong_share(sure([1.0] * 30 + [0.0] * 70))
    assert (narrow.share, narrow.low, narrow.high) == pytest.approx((0.3, 0.3, 0.3))
    wide = wrong_share(sure([0.3] * 100))
    assert wide.share == pytest.approx(0.3)
    assert wide.high - wide.low == pytest.approx(2 * 1.96 * np.sqrt(0.3 * 0.7 / 100))


def test_the_interval_holds_every_opinion_and_stays_a_share() -> None:
    share = wrong_share(Chances(np.array([0.0, 0.0]), np.array([[1.0, 1.0], [0.5, 0.0]])))
    assert (share.share, share.low, share.high) == (0.0, 0.0, 1.0)
    empty = wrong_share(Chances(np.zeros(0), np.zeros((2, 0))))
    assert (empty.low, empty.high, empty.count) == (0.0, 1.0, 0)


def test_by_class() -> None:
    shares = by_class(sure([1, 1, 0, 0, 0]), np.array([0, 0, 0, 2, 2]), 3)
    assert [share.count for share in shares] == [3, 0, 2]
    assert shares[0].share == pytest.approx(2 / 3) and shares[2].share == 0


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


def test_labels_drawn_by_the_chances_stay_within_the_interval() -> None:
    draws = np.random.default_rng(1)
    wrong = draws.random(2000) ** 2
    share = wrong_share(sure(wrong.tolist()))
    inside = [share.low <= (draws.random(2000) < wrong).mean() <= share.high for _ in range(200)]
    assert 0.9 <= np.mean(inside) <= 0.99


def test_where_networks_err_no_more_count_than_are_flagged_and_the_limit_gives_the_interval() -> None:
    flagged = np.arange(100) < 10
    found = limited(sure([1.0] * 10 + [0.5] * 40 + [0.0] * 50), flagged, 0.04, 0.2)
    # ten in all: the ten flagged ones, or a third of the thirty that ten of chance 1 and forty of 0.5 amount to
    assert found.wrong.tolist() == pytest.approx([(1 + 1 / 3) / 2] * 10 + [0.5 / 6] * 40 + [0.0] * 50)
    assert found.opinions.mean(1).tolist() == pytest.approx([0.04, 0.04, 0.1, 0.2])
    share = wrong_share(found)
    assert share.share == pytest.approx(0.1) and share.low < 0.04 and 0.2 < share.high < 0.27
    expected, low, high = expected_yield(found, np.arange(100)).at(10)
    assert expected == pytest.approx(20 / 3) and 0 <= low < 4 / 3 and high == 10
    nothing = limited(sure([0.5] * 4), np.zeros(4, bool), 0.0, 0.1)
    assert wrong_share(nothing).share == 0 and wrong_share(nothing).high == pytest.approx(0.1)
    none_left = limited(sure([0.5, 0.0]), np.array([True, False]), 0.1, 0.9)
    assert wrong_share(none_left).share == 0.25


def test_a_low_score_is_no_certainty_where_networks_err_more_often_than_labels_do() -> None:
    """As in a run on 4,000 vectors (RESULTS.md): 258 flagged of 835 contradicted, all scores near 0; 144 were wrong."""
    wrong = np.concatenate([np.full(258, 0.987), np.full(577, 0.9), np.zeros(3165)])
    found = limited(Chances(wrong, wrong[None]), np.arange(4000) < 258, 0.047, 0.114)
    expected, low, high = expected_yield(found, np.arange(4000)).at(258)
    assert low < 144 < high and expected < 0.75 * 258


def test_neighbours_that_find_fewer_wrong_draw_the_low_end_down_and_nothing_else() -> None:
    before = sure([1.0] * 20 + [0.0] * 80)
    found = doubted(before, 0.05)
    share = wrong_share(found)
    assert (share.share, share.low, share.high) == pytest.approx((0.2, 0.05, 0.2))
    assert expected_yield(found, np.arange(100)).at(20) == pytest.approx((20, 5, 20))
    assert wrong_share(doubted(before, 0.5)) == wrong_share(before), "more than the networks say is no doubt"
    assert wrong_share(doubted(sure([0.0] * 4), 0.1)).high == 0


def test_a_wide_interval_leads() -> None:
    assert in_words(0.34, 0.18, 0.35) == ("between 18.0 and 35.0 %", "point estimate 34.0 %")
    assert in_words(0.17, 0.123, 0.192, 0) == ("about 17 %", "12 to 19 %")
