"""The nearest clean samples of an issue, found against a search written out, also where no score is high."""

import numpy as np
import pytest
import torch

from labelsieve.issues.table import LabelIssues, rank
from labelsieve.methods.contract import Verdict
from labelsieve.methods.parts.evidence import Evidence
from labelsieve.results import likeness as module
from labelsieve.results.likeness import SHOWN, neighbours


def made() -> tuple[Verdict, np.ndarray, np.ndarray, np.ndarray]:
    """40 samples of 2 classes in a plane, the first three labelled wrongly; all scores under 0.5."""
    g = torch.Generator().manual_seed(0)
    true = torch.arange(40) % 2
    given = true.clone()
    given[:3] = 1 - given[:3]
    features = torch.nn.functional.one_hot(true, 2).float() + 0.3 * torch.rand(40, 2, generator=g)
    seen = Evidence(given, torch.zeros(40), torch.full((40, 2), 0.5), features)
    score = np.where(true.numpy() == given.numpy(), 0.3 + 0.1 * torch.rand(40, generator=g).numpy(), 0.1)
    return Verdict((seen, seen), {}, {}, (), ()), given.numpy(), true.numpy(), score


def listed(given: np.ndarray, predicted: np.ndarray, score: np.ndarray) -> LabelIssues:
    return rank([str(i) for i in range(40)], ["a", "b"], given, np.eye(2)[predicted], score[None], tau=0.5)


def test_neighbours_are_the_nearest_of_the_surer_half() -> None:
    verdict, given, predicted, score = made()
    issues = listed(given, predicted, score)
    found = neighbours(verdict, issues)
    assert found["of"].tolist() == [0, 1, 2]
    v = verdict.seen[0].features.double().numpy()
    v /= np.linalg.norm(v, axis=1, keepdims=True)
    for place, sample in enumerate((0, 1, 2)):
        for name, label in (("given", given[sample]), ("suggested", predicted[sample])):
            clean = [i for i in range(3, 40) if given[i] == label]
            half = [i for i in clean if score[i] >= np.median(score[clean])]
            nearest = sorted(half, key=lambda i: -float(v[i] @ v[sample]))[:SHOWN]
            assert found[name][place].tolist() == nearest


def test_a_class_without_clean_samples_has_no_neighbours() -> None:
    verdict, given, predicted, score = made()
    predicted = np.where(given == 1, 0, predicted)  # nothing labelled 1 is confirmed
    issues = listed(given, predicted, score)
    found = neighbours(verdict, issues)
    assert (found["given"][given[found["of"]] == 1] == -1).all() and len(found["of"]) > 3


def test_the_most_alike_have_any_label_and_are_never_the_sample_itself() -> None:
    verdict, given, predicted, score = made()
    found = neighbours(verdict, listed(given, predicted, score))
    v = torch.nn.functional.normalize(verdict.seen[0].features.double(), dim=1).numpy()
    for place, sample in enumerate(found["of"].tolist()):
        others = [i for i in range(40) if i != sample]
        assert found["alike"][place].tolist() == sorted(others, key=lambda i: -float(v[i] @ v[sample]))[:SHOWN]


def test_of_many_samples_issues_and_a_spread_are_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "ALL", 8)
    assert module._of_all(np.array([20, 3, 7, 5, 1]), 40).tolist() == [0, 3, 5, 7, 14, 20, 27, 39]
    assert module._of_all(np.array([2]), 5).tolist() == [0, 1, 2, 3, 4]


def test_few_samples_leave_places_empty() -> None:
    near = module._nearest([torch.eye(3)], np.array([0, 2]), np.array([0, 1]))
    assert near.tolist() == [[1, -1, -1, -1, -1, -1], [0, 1, -1, -1, -1, -1]]
