"""Ranking measures against values computed by hand."""

import numpy as np
import pytest

from labelsieve.benchmark.against_cleanlab import average_precision, recall_at_true_count
from studies.ranking import ranks

WRONG = np.array([True, False, True, False])


def test_a_perfect_ranking_has_all_of_both() -> None:
    score = np.array([0.1, 0.8, 0.2, 0.9])
    assert average_precision(score, WRONG) == 1 and recall_at_true_count(score, WRONG) == 1


def test_a_right_label_in_between_costs_as_much_as_computed_by_hand() -> None:
    score = np.array([0.1, 0.2, 0.3, 0.9])  # wrong, right, wrong, right: precision 1 and 2/3 where recall grows
    assert average_precision(score, WRONG) == pytest.approx((1 + 2 / 3) / 2)
    assert recall_at_true_count(score, WRONG) == 0.5


def test_equal_scores_are_one_step() -> None:
    assert average_precision(np.zeros(4), WRONG) == 0.5


def test_equal_scores_share_a_place() -> None:
    assert ranks(np.array([0.5, 0.1, 0.5, 0.9])).tolist() == pytest.approx([0.5, 0, 0.5, 1])


def test_equal_scores_count_as_an_order_by_chance_would() -> None:
    """Not as the rows happen to lie: all scores equal, two of four wrong, so one of the first two on average."""
    assert recall_at_true_count(np.zeros(4), np.array([True, True, False, False])) == 0.5
    assert recall_at_true_count(np.zeros(4), np.array([False, False, True, True])) == 0.5
    score = np.array([0.1, 0.5, 0.5, 0.5, 0.9])
    assert recall_at_true_count(score, np.array([True, False, True, False, False])) == pytest.approx((1 + 1 / 3) / 2)
