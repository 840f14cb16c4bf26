"""Ranking by probabilities alone: beside cleanlab's on the same numbers, and how many it calls wrong."""

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict

from labelsieve.benchmark.against_cleanlab import average_precision
from labelsieve.issues.table import LabelIssues
from labelsieve.results.by_probabilities import estimate_by_probabilities, issues_by_probabilities

Digits = tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.bool_]]


@pytest.fixture(scope="module")
def digits() -> Digits:
    """Out-of-sample shares (N, 10), given labels and which of them are wrong: a fifth, uniformly."""
    found, rng = load_digits(), np.random.default_rng(0)
    wrong = rng.random(len(found.target)) < 0.2
    given = np.where(wrong, (found.target + rng.integers(1, 10, len(wrong))) % 10, found.target)
    model = LogisticRegression(C=0.05, max_iter=60)
    return cross_val_predict(model, found.data / 16, given, cv=3, method="predict_proba"), given, wrong


def listed(probs: NDArray[np.float64], given: NDArray[np.int64]) -> LabelIssues:
    names = [str(k) for k in range(probs.shape[1])]
    return issues_by_probabilities(probs, given, [str(row) for row in range(len(given))], names)[0]


def test_level_with_cleanlab_on_the_same_probabilities(digits: Digits) -> None:
    rank = pytest.importorskip("cleanlab.rank")
    probs, given, wrong = digits
    ours = average_precision(listed(probs, given).score, wrong)
    theirs = average_precision(rank.get_label_quality_scores(given, probs), wrong)
    assert ours >= theirs - 0.001 and theirs > 0.9


def test_as_many_are_listed_as_are_wrong(digits: Digits) -> None:
    probs, given, wrong = digits
    issues, found = issues_by_probabilities(probs, given, [str(row) for row in range(len(given))], list("0123456789"))
    assert found.low < wrong.mean() < found.high and abs(found.share - wrong.mean()) < 0.04
    assert wrong[issues.is_issue].mean() > 0.85 and issues.is_issue[wrong].mean() > 0.85
    assert issues.is_issue.sum() <= round(found.share * len(given))


def test_one_model_relabels_nothing_and_says_who_spoke(digits: Digits) -> None:
    probs, given, _ = digits
    columns = listed(probs, given).columns
    assert set(columns["action"]) == {"keep", "review"}
    assert not any("network" in reason for reason in columns["reason"])
    assert any(reason.startswith("Looks like") for reason in columns["reason"])
    assert columns["loss"][0] == pytest.approx(-np.log(probs[int(columns["id"][0]), given[int(columns["id"][0])]]))


def test_shares_that_know_nothing_list_nothing() -> None:
    rng = np.random.default_rng(0)
    probs, given = rng.dirichlet(np.ones(4), 400), rng.integers(0, 4, 400)
    assert estimate_by_probabilities(probs, given).high == 1 and not listed(probs, given).is_issue.any()
