"""`label_score` against values computed by hand."""

import pytest
import scipy.stats
import torch
from torch import Tensor

from labelsieve.methods.contract import Verdict, together
from labelsieve.methods.cpc import among_ten
from labelsieve.methods.epochs import Epoch
from labelsieve.results.outcome import RECENT, ScoreHistory, geometric_mean, label_score, remember

# Prototypes that give three quarters to class 0 for the first sample, and a half to class 1 for the second.
BY_PROTOTYPES = torch.tensor([0.75, 0.5])


def last_verdict(by_prototype: bool = True, first: float = 0.8) -> Verdict:
    """Two samples, labels 0 and 1; the networks give `first` to the first label and 0.1 to the second."""
    own: tuple[Tensor, ...] = (together([torch.tensor([first, 0.1])] * 2),)
    opinions = {"loss": (torch.tensor([0.6, 0.4]),) * 2} | ({"prototype": (BY_PROTOTYPES,) * 2} if by_prototype else {})
    return Verdict((), opinions, dict.fromkeys(opinions, 0.5), (), own + ((BY_PROTOTYPES,) if by_prototype else ()))


def test_networks_and_prototypes_have_equal_say() -> None:
    history = ScoreHistory(2, 1)
    remember(history, Epoch(6, "final", (), last_verdict()))
    assert history.recent[0].tolist() == pytest.approx([(0.8 * 0.75) ** 0.5, (0.1 * 0.5) ** 0.5], abs=1e-3)
    assert history.first is not None and history.first.tolist() == pytest.approx([0.75, 0.5], abs=1e-3)


def test_without_prototypes_the_networks_speak_alone() -> None:
    history = ScoreHistory(2, 1)
    remember(history, Epoch(6, "final", (), last_verdict(by_prototype=False)))
    assert history.recent[0].tolist() == pytest.approx([0.8, 0.1], abs=1e-3) and history.first is None


def test_what_prototypes_said_first_counts_once_it_is_long_ago() -> None:
    history = ScoreHistory(1, 1)
    for division in range(RECENT):
        history.remember(torch.tensor([0.8]), torch.tensor([0.1 if division == 0 else 0.9]))
    assert label_score(last_verdict(), history).tolist() == pytest.approx([0.8], abs=1e-3)
    history.remember(torch.tensor([0.8]), torch.tensor([0.9]))
    again = ScoreHistory(1, 1)
    again.load_state_dict(history.state_dict())
    expected = scipy.stats.gmean([0.8, 0.8, 0.1])
    for each in (history, again):
        assert label_score(last_verdict(), each).tolist() == pytest.approx([expected], abs=1e-3)


def test_the_geometric_mean_of_the_latest_divisions() -> None:
    history = ScoreHistory(3, 1)
    for value in (0.0, 0.1, 0.2, 0.4, 0.8, 1.0):  # the first is forgotten
        history.remember(torch.tensor([value, 0.5, 0.0]))
    assert len(history.recent) == RECENT == 5
    expected = scipy.stats.gmean([0.1, 0.2, 0.4, 0.8, 1.0])
    assert label_score(last_verdict(), history).tolist() == pytest.approx([expected, 0.5, 0], abs=1e-3)


def test_one_firm_doubt_counts_for_more_than_two_halves() -> None:
    doubted, unsure = geometric_mean(torch.tensor([[0.9, 0.3], [0.01, 0.3]]))
    assert doubted < unsure


def test_without_a_history_the_latest_division_speaks() -> None:
    """A run taken up from a slim checkpoint has none."""
    found = label_score(last_verdict(), ScoreHistory(2, 1))
    assert found.tolist() == pytest.approx([0.6**0.5, 0.05**0.5], abs=1e-3)


def test_shares_that_are_no_numbers_count_as_none() -> None:
    found = geometric_mean(torch.stack(last_verdict(first=float("nan")).beliefs))
    assert found[0] < 0.01 and found[1] == pytest.approx(0.05**0.5, abs=1e-3)


def test_the_latest_shares_survive_a_checkpoint() -> None:
    history, again = ScoreHistory(2, 1), ScoreHistory(2, 1)
    for value in (0.1, 0.2):
        history.remember(torch.tensor([value, value]))
    again.load_state_dict(history.state_dict())
    assert torch.equal(torch.stack(again.recent), torch.stack(history.recent))


@pytest.mark.parametrize("classes", [2, 10, 100, 1000])
def test_a_share_means_the_same_whatever_the_number_of_classes(classes: int) -> None:
    """A class that is e^3 times as likely as each of the others: against nine of them, however many there are."""
    scores = torch.zeros(1, classes)
    scores[0, 0] = 3.0
    share = scores.softmax(1)[:, 0]
    others = min(classes, 10) - 1
    assert among_ten(share, classes).item() == pytest.approx(float(torch.e**3 / (torch.e**3 + others)), abs=1e-5)
