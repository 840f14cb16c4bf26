"""find_label_issues: it finds what was made wrong, takes labels of any kind, and refuses what it cannot use."""

import builtins
from typing import Any

import numpy as np
import pytest
import torch

from api.made import blobs
from labelsieve import IssueTable, find_label_issues
from labelsieve.api import find
from labelsieve.api.labels import numbered
from labelsieve.errors import UsageError
from labelsieve.methods.parts import heads as small_head
from labelsieve.methods.parts import scaling as compaction
from labelsieve.methods.parts.diagnostics import auc
from labelsieve.methods.parts.scaling import compact

NAMES = np.array(["cat", "dog", "owl"])


@pytest.fixture(scope="module")
def found() -> tuple[IssueTable, Any, Any]:
    vectors, given, truth = blobs()
    return find_label_issues(vectors, NAMES[given]), given, truth


def test_wrong_labels_come_first(found: tuple[IssueTable, Any, Any]) -> None:
    table, given, truth = found
    clean = torch.from_numpy(given == truth)
    area = auc(torch.from_numpy(table.label_score), clean)
    assert area is not None and area > 0.98
    assert np.array_equal(np.sort(table.order), np.arange(len(given)))
    assert (np.diff(table.label_score[table.order]) >= 0).all()
    assert np.array_equal(table.rank[table.order], np.arange(len(given)))
    flagged = table.is_label_issue
    assert (given != truth)[flagged].mean() > 0.9 and flagged[given != truth].mean() > 0.8
    assert (table.suggested_label[flagged] == NAMES[truth[flagged]]).mean() > 0.9


def test_clean_labels_stay_clean() -> None:
    vectors, given, _ = blobs(wrong=0.0)
    found = find_label_issues(vectors, given)
    assert found.is_label_issue.mean() < 0.03 and found.wrong_share.low == 0 and found.wrong_share.high < 0.15


def test_how_many_are_wrong_is_told_where_it_can_be_known(found: tuple[IssueTable, Any, Any]) -> None:
    table, given, truth = found
    share = table.wrong_share
    assert share.known and share.low <= (np.asarray(given) != np.asarray(truth)).mean() <= share.high
    assert " wrong (" in repr(table)
    rng = np.random.default_rng(0)
    lots = find_label_issues(rng.normal(size=(600, 4)), rng.integers(0, 3, 600))
    assert not lots.wrong_share.known and "%" not in repr(lots)


def test_one_kind_of_mistake_is_not_learnt() -> None:
    """30 % of each class carry the next one's name: what a single round ranks badly."""
    vectors, _, truth = blobs(600)
    wrong = np.random.default_rng(1).random(600) < 0.3
    given = np.where(wrong, (truth + 1) % 3, truth)
    area = auc(torch.from_numpy(find_label_issues(vectors, given).label_score), torch.from_numpy(~wrong))
    assert area is not None and area > 0.97


def test_numpy_and_torch_the_same_and_repeatable(found: tuple[IssueTable, Any, Any]) -> None:
    vectors, given, _ = blobs()
    again = find_label_issues(torch.from_numpy(vectors).requires_grad_(), torch.from_numpy(given))
    assert np.array_equal(again.label_score, found[0].label_score)
    assert again.suggested_label.dtype.kind == "i"


@pytest.mark.parametrize(
    "names", [("b", "a", "c"), (True, False, 7), ((1, 2), (3,), ("x",)), (2.5, 1.5, 0.5), (frozenset("a"), "b", 3)]
)
def test_labels_may_be_any_hashables(names: tuple[Any, ...]) -> None:
    vectors, given, _ = blobs(60)
    table = find_label_issues(vectors, [names[k] for k in given])
    assert set(table.classes.tolist()) == set(names)
    assert [names[k] for k in given] == table.given_label.tolist()


def test_own_probabilities_are_used() -> None:
    vectors, given, truth = blobs()
    probs = np.full((300, 3), 0.05)
    probs[np.arange(300), truth] = 0.9
    table = find_label_issues(vectors, given, probs)
    assert np.array_equal(table.suggested_label, truth)
    assert set(table.order[: (given != truth).sum()]) == set(np.flatnonzero(given != truth))


def test_a_frame_or_records(monkeypatch: pytest.MonkeyPatch, found: tuple[IssueTable, Any, Any]) -> None:
    table = found[0]

    def without(name: str, *rest: Any, **more: Any) -> Any:
        if name == "pandas":
            raise ImportError(name)
        return builtins.__import__(name, *rest, **more)

    monkeypatch.setattr("labelsieve.api.labels.importlib.import_module", without)
    records = table.to_frame()
    assert records["label_score"].tolist() == table.label_score.tolist()
    assert records.dtype.names == ("id", "given_label", "suggested_label", "label_score", "is_label_issue", "rank")
    monkeypatch.undo()
    pandas = pytest.importorskip("pandas")
    frame = table.to_frame()
    assert isinstance(frame, pandas.DataFrame) and list(frame.columns) == list(records.dtype.names)
    assert frame.sort_values("rank")["id"].tolist() == table.order.tolist()


def test_wide_vectors_are_cut_to_their_main_axes_in_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    wide = rng.normal(size=(50, 3)) @ rng.normal(size=(3, 400)) * 9 + 5
    whole = compact(wide)
    assert whole.shape == (50, 256)
    monkeypatch.setattr(compaction, "CHUNK", 7)
    torch.testing.assert_close(compact(wide), whole, rtol=1e-4, atol=1e-4)
    # three dimensions carry everything: distances survive the cut, on one common scale
    before, after = torch.cdist(*2 * (torch.from_numpy((wide - wide.mean(0)) / wide.std(0)),)), torch.cdist(whole, whole)
    ratio = (after / before)[~torch.eye(50, dtype=torch.bool)]
    assert float(ratio.max() / ratio.min()) < 1.01


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"features": np.zeros((3, 2, 2))}, "must be"),
        ({"features": np.array([["a"], ["b"]])}, "must be numbers"),
        ({"features": np.array([[1.0], [np.nan], [2.0]]), "labels": [0, 1, 0]}, "row 1 has a value"),
        ({"features": np.full((60, 4), 7.0)}, "all rows are the same"),
        ({"labels": [0, 1]}, "counts must agree"),
        ({"labels": [1] * 60}, "at least two"),
        ({"labels": [None, *[0, 1] * 29, 0]}, "row 0 has no label"),
        ({"labels": [[1], *[0, 1] * 29, 0]}, "row 0 is a list"),
        ({"labels": ["kat", *["cat", "dog"] * 29, "cat"], "classes": ["cat", "dog"]}, 'did you mean "cat"'),
        ({"probs": np.ones((60, 2))}, "need \\(60, 3\\)"),
        ({"probs": np.ones((60, 3))}, "row 0 adds up to 3, not to 1"),
    ],
)
def test_what_cannot_be_used_is_named(change: dict[str, Any], words: str) -> None:
    vectors, given, _ = blobs(60)
    with pytest.raises(UsageError, match=words) as raised:
        find_label_issues(**({"features": vectors, "labels": given} | change))
    assert isinstance(raised.value, ValueError)


def test_classes_are_sorted_where_they_can_be() -> None:
    assert numbered(["b", "a", "b"])[1].tolist() == ["a", "b"]
    assert numbered(["b", 1, "b"])[1].tolist() == ["b", 1]
    assert numbered(["b", "a"], classes=["b", "c", "a"])[0].tolist() == [0, 2]


@pytest.mark.parametrize(
    ("ids", "said"),
    [(["a", "b"], "there are 2"), (["a"] * 300, "'a' names 300 samples"), ([["a", "b"]] * 300, r"\(300, 2\)")],
)
def test_ids_that_do_not_name_each_sample_once(ids: Any, said: str) -> None:
    vectors, given, _ = blobs(300)
    with pytest.raises(ValueError, match=f"300 different names.*{said}"):
        find_label_issues(vectors, given, ids=ids)


def test_threads_are_few_while_it_works_and_the_callers_again_afterwards(monkeypatch: pytest.MonkeyPatch) -> None:
    """Several threads meet at every small step, which takes ten times as long where cores are busy."""
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    used: list[int] = []
    compacted = find.compact
    monkeypatch.setattr(find, "compact", lambda *rows: [used.append(torch.get_num_threads()), compacted(*rows)][1])
    vectors, given, _ = blobs(90)
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    try:
        find_label_issues(vectors, given)
        with pytest.raises(UsageError):
            find_label_issues(vectors, given[:-1])
        assert used == [1, 1] and torch.get_num_threads() == 3
    finally:
        torch.set_num_threads(before)


def test_many_classes_are_learnt_in_as_few_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Half of the suggestions were wrong with a thousand classes, however far apart."""
    classes = torch.arange(4000) % 1000
    generator = torch.Generator().manual_seed(0)
    centres = torch.randn(1000, 24, generator=generator)
    vectors = centres[classes] + 0.3 * torch.randn(4000, 24, generator=generator)

    def sure() -> float:
        weights = small_head.trained(vectors, classes, torch.arange(4000), 1000, 0, 0, 0)
        return float(torch.softmax(small_head.forward(weights, centres), 1).diagonal().mean())

    grown = sure()
    monkeypatch.setattr(small_head, "rate_for", lambda _: small_head.LR)
    assert grown > 0.8 > 0.5 > sure()
    monkeypatch.undo()
    assert [small_head.rate_for(count) for count in (2, 100, 400, 5000)] == pytest.approx([0.05, 0.05, 0.2, 0.5])


def test_a_table_says_when_not_to_trust_it() -> None:
    rng = np.random.default_rng(0)
    few = find_label_issues(rng.normal(size=(60, 4)), rng.integers(0, 3, 60))
    assert any("60 samples are few" in words for words in few.cautions)
    labels = np.arange(600) % 3
    assert find_label_issues(8 * np.eye(3)[labels] + rng.normal(size=(600, 3)), labels).cautions == ()


def test_samples_are_named_by_the_index_of_a_data_frame() -> None:
    """As `train_test_split` leaves it: `frame.loc[issues.id]` must be the rows that were judged."""
    pandas = pytest.importorskip("pandas")
    vectors, given, _ = blobs(60)
    places = np.random.default_rng(0).permutation(200)[:60]
    frame = pandas.DataFrame(vectors, index=places)
    assert find_label_issues(frame, given).id.tolist() == places.tolist()
    assert find_label_issues(vectors, pandas.Series(given, index=places)).id.tolist() == places.tolist()
    assert find_label_issues(frame, given, ids=range(60)).id.tolist() == list(range(60))
    twice = pandas.DataFrame(vectors, index=np.repeat(np.arange(30), 2))
    assert find_label_issues(twice, given).id.tolist() == list(range(60))


@pytest.mark.parametrize("count", [4, 5, 6, 12])
def test_a_handful_is_called_so_and_nothing_else_is_said_of_it(count: int) -> None:
    """Of two samples a class each one's nearest is of the other: "most labels look wrong" stood beside "0 labels look wrong"."""
    labels = np.arange(count) % 2
    found = find_label_issues(np.random.default_rng(0).normal(size=(count, 6)) + 3 * labels[:, None], labels)
    assert not found.is_label_issue.any()
    assert [words.split()[0] for words in found.cautions] == [str(count), "2"]  # samples are few, and so are classes'


def test_a_class_for_each_sample_is_called_that_and_no_wrong_label() -> None:
    """Where no class has two samples nothing can confirm a label, and nothing contradicts it."""
    found = find_label_issues(np.random.default_rng(0).normal(size=(60, 8)), [f"c{i}" for i in range(60)])
    assert not found.is_label_issue.any()
    assert any("60 classes for 60 samples: are these labels?" in words for words in found.cautions)
    assert not any("Most labels look wrong" in words for words in found.cautions)
