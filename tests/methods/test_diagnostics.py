"""Measuring: AUC against scikit-learn, divergence and consistency by hand, and where a collapse begins."""

import math

import numpy as np
import pytest
import torch
from scipy import stats
from torch import Tensor

from labelsieve.methods.parts.diagnostics import accuracy, accuracy_interval, auc, consistency, divergence, precision_recall
from labelsieve.methods.parts.evidence import collapse


def test_auc_with_ties_equals_the_rank_statistic() -> None:
    """AUC is the share of (clean, wrong) pairs in the right order, ties counting half: Mann-Whitney's U."""
    g = torch.Generator().manual_seed(0)
    chance = torch.randint(0, 6, (300,), generator=g) / 5
    clean = torch.rand(300, generator=g) < 0.3 + 0.4 * chance
    u = stats.mannwhitneyu(chance[clean].numpy(), chance[~clean].numpy()).statistic
    expected = u / (int(clean.sum()) * int((~clean).sum()))
    assert auc(chance, clean) == pytest.approx(expected, abs=1e-12)


def test_auc_by_hand() -> None:
    clean = torch.tensor([True, True, False, False])
    assert auc(torch.tensor([0.9, 0.8, 0.2, 0.1]), clean) == 1
    assert auc(torch.tensor([0.1, 0.2, 0.8, 0.9]), clean) == 0
    assert auc(torch.tensor([0.5, 0.5, 0.5, 0.5]), clean) == 0.5
    assert auc(torch.tensor([0.9, 0.3, 0.3, 0.1]), clean) == 0.875
    assert auc(torch.tensor([0.9, 0.8]), torch.tensor([True, True])) is None
    assert auc(torch.tensor([0.9, 0.8]), torch.tensor([False, False])) is None
    assert auc(torch.tensor([0.9, float("nan")]), torch.tensor([True, False])) == 1


def test_precision_and_recall_by_hand() -> None:
    taken, right = torch.tensor([1, 1, 1, 0, 0]).bool(), torch.tensor([1, 0, 0, 1, 1]).bool()
    assert precision_recall(taken, right) == (pytest.approx(1 / 3), pytest.approx(1 / 3))
    nothing = torch.zeros(5, dtype=torch.bool)
    assert precision_recall(nothing, right) == (None, 0)
    assert precision_recall(taken, nothing) == (0, None)


def test_divergence_by_hand() -> None:
    """Of Bernoulli(0.5) from Bernoulli(0.25): 0.5 log 2 + 0.5 log(2/3); of equals 0."""
    p, q = torch.tensor([0.5, 0.3]), torch.tensor([0.25, 0.3])
    assert divergence(p, q) == pytest.approx((0.5 * math.log(2) + 0.5 * math.log(2 / 3)) / 2, abs=1e-6)
    assert divergence(q, p) != pytest.approx(divergence(p, q))
    assert math.isfinite(divergence(torch.tensor([1.0, 0.0]), torch.tensor([0.0, 1.0])))


def test_consistency_uses_each_ones_own_threshold_strictly() -> None:
    teacher, judge = torch.tensor([0.7, 0.6, 0.2, 0.9]), torch.tensor([0.6, 0.6, 0.1, 0.5])
    # above 0.6: yes no no yes; above 0.5: yes yes no no
    assert consistency(teacher, judge, 0.6, 0.5) == 0.5


def test_accuracy_is_in_percent() -> None:
    scores = torch.tensor([[2.0, 1.0], [0.0, 3.0], [1.0, 0.0], [5.0, 4.0]])
    assert accuracy(scores, torch.tensor([0, 1, 1, 0])) == 75
    assert math.isnan(accuracy(scores[:0], torch.tensor([], dtype=torch.long)))


def shares(*counts: int) -> Tensor:
    return torch.from_numpy(np.repeat(np.arange(len(counts)), counts))


@pytest.mark.parametrize(("clean", "word"), [(9, "nothing"), (10, None), (995, None), (996, "everything"), (0, "nothing")])
def test_collapse_by_the_share_of_clean_labels(clean: int, word: str | None) -> None:
    said = collapse(torch.arange(1000) < clean, shares(250, 250, 250, 250), 4)
    assert (said is None) if word is None else (word in (said or ""))


def test_that_all_labels_are_clean_is_no_collapse_where_little_noise_was_found() -> None:
    clean, predicted = torch.ones(1000, dtype=torch.bool), shares(250, 250, 250, 250)
    assert collapse(clean, predicted, 4, least_clean=0.97) is None
    assert "almost everything" in (collapse(clean, predicted, 4, least_clean=0.3) or "")


@pytest.mark.parametrize(
    ("counts", "swallows"),
    [((500, 100, 100, 100, 100, 100), False), ((510, 98, 98, 98, 98, 98), True),
     ((900, 50, 50), False), ((70, 10, 10, 10), False), ((80, 10, 5, 5), True), ((95, 5), False)],
)  # fmt: skip
def test_collapse_by_one_class_that_swallows_the_rest(counts: tuple[int, ...], swallows: bool) -> None:
    """Over half of all predictions and over three times its even share, with more than two classes."""
    predicted = shares(*counts)
    clean = torch.arange(len(predicted)) % 2 == 0
    said = collapse(clean, predicted, len(counts))
    assert (said is not None and "class 0" in said) == swallows


def test_a_class_that_swallows_the_rest_is_called_by_its_name() -> None:
    predicted = shares(80, 10, 5, 5)
    said = collapse(torch.arange(100) % 2 == 0, predicted, 4, names=['"cat"', '"dog"', '"cow"', '"ant"'])
    assert said == 'class "cat" swallows the rest (80 % of all predictions)'


def test_a_class_that_is_common_among_the_given_labels_does_not_swallow_the_rest() -> None:
    """Of 100 predictions 69 are for a class that 69 (or 30) of the labels name."""
    predicted, clean = shares(69, 21, 10, 0, 0), torch.arange(100) < 80
    assert collapse(clean, predicted, 5, given=predicted) is None
    assert "class 0 swallows" in (collapse(clean, predicted, 5, given=shares(30, 30, 20, 10, 10)) or "")


@pytest.mark.parametrize(("right", "count"), [(0, 1), (1, 1), (20, 20), (0, 7), (443, 449), (800, 1000), (9_999, 10_000)])
def test_the_interval_of_an_accuracy_is_wilsons(right: int, count: int) -> None:
    want = stats.binomtest(right, count).proportion_ci(method="wilson")
    assert accuracy_interval(right, count) == pytest.approx((100 * want.low, 100 * want.high), abs=1e-3)


def test_all_right_of_a_few_is_not_surely_all() -> None:
    low, high = accuracy_interval(20, 20)
    assert low < 85 and high == pytest.approx(100)
    assert all(math.isnan(end) for end in accuracy_interval(0, 0))
