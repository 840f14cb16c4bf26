"""`label_score` against values computed by hand."""

import pytest
import torch

from labelsieve.method.algorithm import Epoch
from labelsieve.method.evidence import Evidence
from labelsieve.runs.history import ScoreHistory
from labelsieve.runs.label_score import chances_over_time, label_score


def both(*values: float) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.tensor(values), torch.tensor(values)


def last_epoch(by_prototype: bool = True) -> Epoch:
    """Two samples, labels 0 and 1; the networks give 0.8 to the first label and 0.1 to the second."""
    probs = torch.tensor([[0.8, 0.2], [0.9, 0.1]])
    seen = tuple(Evidence(torch.tensor([0, 1]), torch.zeros(2), probs, torch.zeros(2, 1)) for _ in range(2))
    return Epoch(6, "final", (), seen, both(0.6, 0.4), both(1.0, 0.0) if by_prototype else ())


def test_later_divisions_weigh_more_by_the_epochs_between_them() -> None:
    tables = [[torch.tensor([[0.0], [0.0]]), torch.tensor([[1.0], [1.0]])]]
    found = chances_over_time([4, 6], tables)  # weights 1 and 3
    assert found is not None and found.tolist() == [0.75]
    assert chances_over_time([], tables) is None


def test_the_mean_of_the_past_and_of_the_networks_share() -> None:
    history = ScoreHistory(2, 1)
    history.add(5, both(0.0, 0.0), both(1.0, 0.0))
    history.add(6, both(0.6, 0.4), both(1.0, 0.0))
    past = [((1 * 0.0 + 2 * 0.6) / 3 + 1.0) / 2, ((2 * 0.4) / 3 + 0.0) / 2]
    expected = [(past[0] + 0.8) / 2, (past[1] + 0.1) / 2]
    assert label_score(last_epoch(), history).tolist() == pytest.approx(expected, abs=1e-3)


def test_without_prototypes_the_mixture_speaks_alone() -> None:
    history = ScoreHistory(2, 1)
    history.add(6, both(0.6, 0.4), ())
    assert label_score(last_epoch(by_prototype=False), history).tolist() == pytest.approx([0.7, 0.25], abs=1e-3)


def test_without_a_history_the_latest_division_speaks() -> None:
    """A run taken up from a slim checkpoint has none."""
    assert label_score(last_epoch(), ScoreHistory(2, 1)).tolist() == pytest.approx([0.8, 0.15])


def test_chances_that_are_no_numbers_count_as_none() -> None:
    history = ScoreHistory(2, 1)
    history.add(6, both(float("nan"), 0.4), both(1.0, 0.0))
    found = label_score(last_epoch(), history)
    assert found[0] == pytest.approx((0.5 + 0.8) / 2, abs=1e-3)
