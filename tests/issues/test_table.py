"""The list of issues: exact columns, the most suspicious first, and any name survives the file."""

import csv
import subprocess
import sys

import numpy as np
import pytest

from labelsieve.issues.table import COLUMNS, LabelIssues, rank

AWKWARD = ('comma, "quote"', "line\nfeed", "carriage\rreturn", "both\r\n", " spaces ", "Gänse 雪", "'", '""', ",")


def made(seed: int = 0, count: int = 40, classes: int = 4) -> LabelIssues:
    draws = np.random.default_rng(seed)
    probs = draws.dirichlet(np.ones(classes), count)
    ids = [f"id{i}" for i in range(count)]
    names = [f"class {k}" for k in range(classes)]
    return rank(ids, names, draws.integers(0, classes, count), probs, draws.random((2, count)), 0.5)


def read(issues: LabelIssues) -> list[dict[str, str]]:
    return list(csv.DictReader(issues.csv_lines()))


def test_the_columns_are_exactly_these() -> None:
    assert next(made().csv_lines()) == ",".join(COLUMNS) + "\n"
    first = ("id", "path", "given_label", "suggested_label", "suggested_confidence", "label_score", "is_label_issue")
    promised = [*first, "action", "reason"]
    assert list(COLUMNS)[: len(promised)] == promised
    older = {"id", "given_label", "predicted_label", "label_score", "is_label_issue"}
    assert older <= set(COLUMNS)


@pytest.mark.parametrize("seed", range(5))
def test_rows_are_sorted_and_joined_by_sample(seed: int) -> None:
    issues = made(seed)
    rows = read(issues)
    scores = [float(row["label_score"]) for row in rows]
    assert scores == sorted(scores) and scores[0] >= 0 and scores[-1] <= 1
    assert sorted(row["id"] for row in rows) == sorted(issues.ids)
    for row in rows:
        i = int(row["id"].removeprefix("id"))
        assert row["given_label"] == f"class {issues.given[i]}"
        assert row["predicted_label"] == row["suggested_label"] == f"class {issues.predicted[i]}"
        assert float(row["label_score"]) == pytest.approx(issues.score[i], abs=1e-6)
        assert row["is_label_issue"] == str(issues.score[i] <= 0.5 and issues.given[i] != issues.predicted[i])


def test_what_a_person_was_unsure_of_is_never_relabelled_unseen() -> None:
    probs = np.array([[0.05, 0.95], [0.05, 0.95], [0.95, 0.05]])
    issues = rank(list("abc"), ["no", "yes"], np.zeros(3, int), probs, np.array([[0.01, 0.02, 0.9]]), 0.5)
    assert [row["action"] for row in read(issues)] == ["relabel", "relabel", "keep"]
    rows = read(issues.with_decisions(["unsure", "", "unsure"]))
    assert [row["action"] for row in rows] == ["review", "relabel", "keep"] and rows[0]["is_label_issue"] == "True"
    assert rows[0]["reason"].startswith('Looks like "yes"') and rows[0]["reason"].endswith("A person was unsure.")
    assert "unsure" not in rows[1]["reason"]


def test_nothing_has_no_sign() -> None:
    evidence = {"score_trend": np.array([-1e-9, -0.25, 0.0, np.nan])}
    issues = rank(list("abcd"), ["no", "yes"], np.zeros(4, int), np.full((4, 2), 0.5), np.zeros((1, 4)), 0.5, evidence=evidence)
    assert [row["score_trend"] for row in read(issues)] == ["0.000000", "-0.250000", "0.000000", ""]


def test_worked_out_by_hand() -> None:
    given = np.array([0, 1, 1, 0])
    probs = np.array([[0.9, 0.1], [0.8, 0.2], [0.7, 0.3], [0.4, 0.6]])
    chances = np.array([[0.9, 0.2, 0.4, 0.5], [0.7, 0.0, 0.0, 0.5]])
    rows = read(rank(["a", "b", "c", "d"], ["no", "yes"], given, probs, chances, 0.5))
    names = ("id", "given_label", "predicted_label", "label_score", "is_label_issue")
    assert [tuple(row[name] for name in names) for row in rows] == [
        ("b", "yes", "no", "0.100000", "True"),
        ("c", "yes", "no", "0.200000", "True"),
        ("d", "no", "yes", "0.500000", "True"),  # not above tau
        ("a", "no", "no", "0.800000", "False"),
    ]


def test_only_so_many_are_flagged_and_the_rest_is_kept() -> None:
    given, scores = np.zeros(6, int), np.array([[0.1, 0.3, 0.2, 0.4, 0.9, 0.05]])
    probs = np.array([[0.1, 0.9]] * 5 + [[0.9, 0.1]])  # the last has the lowest score, and the networks say the same
    found = rank([*"abcdef"], ["no", "yes"], given, probs, scores, 0.5, most=0.34)
    assert found.is_issue.tolist() == [True, False, True, False, False, False]
    assert found.action.tolist() == ["relabel", "keep", "relabel", "keep", "keep", "keep"]
    assert "such doubts are wrong more often" in found.reasons[1] and found.reasons[5].startswith("Fits")
    none = rank([*"abcdef"], ["no", "yes"], given, probs, scores, 0.5, most=0.0)
    assert not none.is_issue.any() and set(none.action) == {"keep"}


def test_equal_scores_are_ordered_by_the_share_of_the_given_label() -> None:
    probs = np.array([[0.6, 0.4], [0.1, 0.9], [0.3, 0.7]])
    rows = read(rank(["a", "b", "c"], ["no", "yes"], np.zeros(3, int), probs, np.zeros((2, 3)), 0.5))
    assert [row["id"] for row in rows] == ["b", "c", "a"]


def test_confidences_are_those_of_the_two_most_probable_classes() -> None:
    probs = np.array([[0.2, 0.5, 0.3], [0.1, 0.1, 0.8]])
    issues = rank(["a", "b"], ["x", "y", "z"], np.array([0, 2]), probs, np.ones((2, 2)), 0.5)
    assert issues.predicted.tolist() == [1, 2] and issues.second.tolist() == [2, 0]
    assert issues.confidence.tolist() == [[0.5, 0.3], [0.8, 0.1]]


def test_evidence_and_paths_stand_beside_their_sample_and_what_is_not_known_is_empty() -> None:
    evidence = {"loss": np.array([1.5, 0.25]), "similarity_best": np.array([np.nan, 3.0])}
    paths = ["x/1.png", "y/2.png"]
    chances = np.array([[0.9, 0.1], [0.9, 0.1]])
    rows = read(rank(["a", "b"], ["x", "y"], np.zeros(2, int), np.eye(2), chances, 0.5, paths=paths, evidence=evidence))
    assert [(row["id"], row["path"], row["loss"], row["similarity_best"]) for row in rows] == [
        ("b", "y/2.png", "0.250000", "3.000000"),
        ("a", "x/1.png", "1.500000", ""),
    ]
    assert {row["chance_by_prototype"] for row in rows} == {""}
    assert {row["path"] for row in read(made())} == {""}


def test_scores_that_are_no_numbers_count_as_suspicious_and_stay_within_bounds() -> None:
    chances = np.array([[np.nan, 1.5, -0.5, np.inf], [0.5, 1.5, -0.5, 0.5]])
    issues = rank(list("abcd"), ["no", "yes"], np.zeros(4, int), np.full((4, 2), 0.5), chances, 0.5)
    assert issues.score.tolist() == [0, 1, 0, 1]


def test_awkward_names_survive() -> None:
    count = len(AWKWARD)
    given = np.arange(count)
    issues = rank(list(AWKWARD), list(AWKWARD), given, np.eye(count)[::-1], np.random.default_rng(0).random((2, count)), 0.5)
    rows = read(issues)
    assert len(rows) == count
    for row, i in zip(rows, issues.order):
        assert (row["id"], row["given_label"], row["predicted_label"]) == (AWKWARD[i], AWKWARD[i], AWKWARD[count - 1 - i])


def test_needs_no_torch() -> None:
    code = "import sys, labelsieve.issues.table; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
