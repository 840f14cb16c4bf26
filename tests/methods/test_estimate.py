"""The noise estimate: counts by hand, made clouds with known noise, and a network that has hardly learnt."""

from dataclasses import replace

import pytest
import torch
from scipy.stats import binomtest

from labelsieve.methods.parts.estimate import (
    contradicted,
    estimate_noise,
    lag_behind,
    lambda_for,
    noise_at_end,
    noise_by_neighbours,
    votes,
    wrong_shares,
)
from labelsieve.methods.parts.evidence import Evidence


def clouds(share: float, overlap: float, n: int = 3000, classes: int = 5, pair: bool = False) -> tuple[Evidence, torch.Tensor]:
    """Gaussian clouds; `share` of the labels drawn from the other classes (or from the next one)."""
    generator = torch.Generator().manual_seed(1)
    truth = torch.randint(classes, (n,), generator=generator)
    centres = 4 * torch.randn(classes, 16, generator=generator)
    features = centres[truth] + overlap * torch.randn(n, 16, generator=generator)
    step = torch.ones(n, dtype=torch.long) if pair else torch.randint(1, classes, (n,), generator=generator)
    labels = torch.where(torch.rand(n, generator=generator) < share, (truth + step) % classes, truth)
    probs = torch.full((n, classes), 1 / classes)
    return Evidence(labels, torch.zeros(n), probs, features), truth


@pytest.mark.parametrize("share", [0.0, 0.05, 0.2, 0.4, 0.6])
@pytest.mark.parametrize("overlap", [1.0, 6.0])
def test_the_share_is_found_also_where_classes_overlap(share: float, overlap: float) -> None:
    seen, truth = clouds(share, overlap)
    found = estimate_noise([seen, seen])
    assert found.share == pytest.approx(float((seen.labels != truth).double().mean()), abs=0.07)
    assert found.low <= found.share <= found.high


def test_few_votes_without_a_wrong_label_leave_room_for_some() -> None:
    """Wilson's bound of none in `counted` at 95 %; rules go by an end that leaves it out."""
    for n, counted in ((400, 100), (3000, 750)):
        found = estimate_noise([clouds(0.0, 1.0, n)[0]])
        assert found.share == found.low == 0
        assert found.high == pytest.approx(proportion(0, counted), abs=1e-5)
        assert found.firm < found.high / 3
    much = estimate_noise([clouds(0.4, 1.0)[0]])
    assert much.high == much.firm


def proportion(count: int, of: int) -> float:
    return float(binomtest(count, of).proportion_ci(method="wilson").high)


def test_wrong_labels_of_one_direction_are_found_too() -> None:
    seen, _ = clouds(0.3, 2.0, pair=True)
    assert estimate_noise([seen]).share == pytest.approx(0.3, abs=0.05)


def test_classes_that_are_clean_are_told_from_those_that_are_not() -> None:
    seen, truth = clouds(0.0, 1.5)
    labels = seen.labels.clone()
    twos = torch.nonzero(truth == 2).flatten()
    labels[twos[: len(twos) * 3 // 10]] = 3
    found = estimate_noise([Evidence(labels, seen.losses, seen.probs, seen.features)])
    # 3 of 10 twos among the threes: about 23 of 100 labels "3" are wrong
    assert found.by_class[3] == pytest.approx(0.23, abs=0.06) and max(found.by_class[k] for k in (0, 1, 4)) < 0.05


def test_a_sample_does_not_vote_on_itself() -> None:
    """Two far points that are alone in their class: each is surrounded by the other class."""
    features = torch.tensor([[1.0, 0.0], [1.0, 0.01], [1.0, 0.02], [1.0, 0.015]])
    labels = torch.tensor([0, 0, 0, 1])
    given, shares = votes(Evidence(labels, torch.zeros(4), torch.full((4, 2), 0.5), features))
    assert float(shares[given == 1][0, 0]) == 1.0


@pytest.mark.parametrize(
    ("count", "classes", "asked"), [(3, 2, 2), (200, 10, 5), (400, 8, 12), (4_999, 5, 20), (5_000, 5, 50), (6_000, 50, 30)]
)
def test_so_many_neighbours_are_asked(count: int, classes: int, asked: int) -> None:
    """A quarter of what a class has, but 5 at least and 20 at most, or 50 of 5,000 labels and more. One voice is the least."""
    features = torch.randn(count, 8, generator=torch.Generator().manual_seed(0))
    seen = Evidence(torch.arange(count) % classes, torch.zeros(count), torch.full((count, classes), 0.5), features)
    _, shares = votes(seen)
    assert float(shares[shares > 0].min()) == pytest.approx(1 / asked)


def test_joint_by_hand() -> None:
    """Class 0 is voted for four samples, one of them given 1; class 1 for two, both given 1."""
    given = torch.tensor([0, 0, 0, 1, 1, 1])
    shares = torch.tensor([[0.9, 0.1], [0.8, 0.2], [0.7, 0.3], [0.95, 0.05], [0.2, 0.8], [0.1, 0.9]])
    whole, by_class = wrong_shares(given, shares, 2, sure=1.0)
    assert whole == pytest.approx(1 / 6)
    assert by_class.tolist() == pytest.approx([0, 1 / 3])
    absent = torch.cat((shares, torch.zeros(6, 1)), 1)
    assert wrong_shares(given, absent, 3, sure=1.0)[1].tolist() == pytest.approx(
        [0, 1 / 3, 0]
    )  # none of a class that is not there
    surest, _ = wrong_shares(given, shares, 2, sure=0.25)  # the surest vote for 0 is the one that was given 1
    assert surest == pytest.approx(4 / 6)


def test_odd_evidence_does_not_stop_it() -> None:
    nothing = torch.full((3, 4), torch.nan)
    found = estimate_noise([Evidence(torch.tensor([0, 1, 1]), torch.zeros(3), torch.full((3, 2), 0.5), nothing)])
    assert 0 <= found.low <= found.share <= found.high <= 1


@pytest.mark.parametrize(
    ("share", "classes", "expected"),
    [(0.18, 10, 0), (0.45, 10, 0), (0.54, 10, 25), (0.72, 10, 25), (0.81, 10, 50), (0.198, 100, 25), (0.495, 100, 150),
     (0.5, 30, 25), (0.75, 30, 50), (0.25, 31, 150)],
)  # fmt: skip
def test_lambda_by_the_share_of_wrong_labels(share: float, classes: int, expected: float) -> None:
    """What symmetric noise of 20, 50, 60, 80, 90 % makes wrong among 10, and of 20, 50 % among 100 classes; and each limit."""
    assert lambda_for(share, classes) == expected


def test_many_small_classes_are_asked_few_neighbours() -> None:
    """300 classes of 20, a fifth of the labels wrong: fifty neighbours would say 65 %, five say 27."""
    g = torch.Generator().manual_seed(0)
    truth = torch.arange(6_000) % 300
    centres = torch.randn(300, 32, generator=g)
    features = centres[truth] + 0.7 * torch.randn(6_000, 32, generator=g)
    wrong = torch.rand(6_000, generator=g) < 0.2
    labels = torch.where(wrong, torch.randint(300, (6_000,), generator=g), truth)
    probs = torch.full((6_000, 300), 1 / 300)
    found = estimate_noise([Evidence(labels, torch.zeros(6_000), probs, features)])
    assert found.share == pytest.approx(0.2, abs=0.08)


def opinionated(seen: Evidence, says: torch.Tensor) -> Evidence:
    """The same evidence of a network that predicts `says` (N,)."""
    return Evidence(seen.labels, seen.losses, 0.1 + torch.eye(5)[says], seen.features)


def test_networks_that_err_more_often_than_labels_lag_behind() -> None:
    seen, truth = clouds(0.1, 1.0)
    wrong = float((seen.labels != truth).double().mean())
    right = opinionated(seen, truth)
    assert contradicted([right, right]) == pytest.approx(wrong)
    assert not lag_behind([right, right], estimate_noise([right, right]))
    poor = opinionated(seen, torch.where(torch.arange(len(truth)) % 2 == 0, truth, (truth + 1) % 5))
    assert lag_behind([poor, poor], estimate_noise([poor, poor]))


def test_a_division_on_which_both_networks_agree_is_trusted() -> None:
    seen, truth = clouds(0.3, 1.0)
    networks, right = [opinionated(seen, truth)] * 2, seen.labels == truth
    early = noise_by_neighbours(networks)
    assert early.by == "neighbours" and early.low <= float((~right).double().mean()) <= early.high
    for before in (early, None):
        found = noise_at_end(networks, [right, right], before)
        assert found.by == "division" and found.share == pytest.approx(1 - float(right.double().mean()))
        assert found.low < found.share < found.high and found.high - found.low < 0.05
    elsewhere = replace(early, low=0.5, high=0.6)
    assert noise_at_end(networks, [right, right], elsewhere) == elsewhere, "it contradicts what was known before"


def test_networks_that_do_not_agree_or_have_memorised_leave_it_to_what_was_known_before() -> None:
    seen, truth = clouds(0.3, 1.0)
    right, half, every = seen.labels == truth, torch.arange(len(truth)) % 2 == 0, torch.ones(len(truth), dtype=torch.bool)
    good, other = opinionated(seen, truth), opinionated(seen, torch.where(half, (truth + 1) % 5, truth))
    memorised = opinionated(seen, seen.labels)
    early = noise_by_neighbours([good, good])
    for networks, clean in (
        ([good, other], [right, right]),
        ([good, good], [right, half]),
        ([memorised, memorised], [right, right]),
        ([good], [right]),
    ):
        assert noise_at_end(networks, clean, early) == early
        unknown = noise_at_end(networks, clean, None)
        assert (unknown.low, unknown.high) == (0, 1) and 0 <= unknown.share <= 1
    fooled = noise_at_end([memorised, memorised], [every, every], early)
    assert fooled == early, "no label is called wrong, and the neighbours knew of some"


@pytest.mark.parametrize("block", [7, 3000, 100_000])
def test_blocks_count_every_row_once(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    seen, truth = clouds(0.1, 1.0)
    monkeypatch.setattr("labelsieve.methods.parts.estimate.BLOCK", block)
    assert contradicted([opinionated(seen, truth)] * 2) == float((seen.labels != truth).double().mean())


def test_both_networks_speak_together() -> None:
    seen, truth = clouds(0.0, 1.0)
    sure, unsure = opinionated(seen, truth), opinionated(seen, (truth + 1) % 5)
    both = [Evidence(sure.labels, sure.losses, 2 * sure.probs, sure.features), unsure]
    assert contradicted(both) == 0.0 and contradicted([unsure]) == 1.0
