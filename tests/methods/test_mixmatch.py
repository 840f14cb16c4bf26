"""Targets, mixing and the ramp by hand; mixing shares against the folded Beta distribution."""

import math

import pytest
import torch
from scipy import stats
from torch import Tensor

from labelsieve.methods.parts.losses import guess, mix, mixing_shares, ramp, refine, sharpen
from labelsieve.methods.parts.streams import seeded


def row(*values: float) -> Tensor:
    return torch.tensor([values], dtype=torch.float64)


def test_sharpen_by_hand() -> None:
    """T = 0.5 squares: (0.1, 0.3, 0.6) -> (0.01, 0.09, 0.36) / 0.46."""
    expected = row(0.01 / 0.46, 0.09 / 0.46, 0.36 / 0.46)
    torch.testing.assert_close(sharpen(row(0.1, 0.3, 0.6), 0.5), expected)
    torch.testing.assert_close(sharpen(row(0.1, 0.3, 0.6), 1.0), row(0.1, 0.3, 0.6))


@pytest.mark.parametrize("temperature", [1e-3, 0.01, 0.1, 0.5, 10.0])
@pytest.mark.parametrize("classes", [2, 1000])
def test_sharpen_is_a_distribution_at_every_temperature_a_run_may_have(temperature: float, classes: int) -> None:
    one_hot = torch.eye(classes)[:1]
    even = torch.full((1, classes), 1 / classes)
    torch.testing.assert_close(sharpen(one_hot, temperature).sum(1), torch.ones(1))
    torch.testing.assert_close(sharpen(even, temperature), even)
    assert int(sharpen(0.5 * one_hot + 0.5 * even, temperature).argmax()) == 0


def test_refine_by_hand() -> None:
    """w = 0.8: 0.8 (1, 0) + 0.2 (0.25, 0.75) = (0.85, 0.15), then squared; w = 1 keeps the label."""
    got = refine(row(1, 0), row(0.25, 0.75), torch.tensor([0.8], dtype=torch.float64), 0.5)
    total = 0.85**2 + 0.15**2
    torch.testing.assert_close(got, row(0.85**2 / total, 0.15**2 / total))
    kept = refine(row(0, 1), row(0.9, 0.1), torch.ones(1, dtype=torch.float64), 0.5)
    torch.testing.assert_close(kept, row(0, 1), rtol=0, atol=1e-12)


def test_refine_takes_each_rows_own_chance() -> None:
    given, guessed = torch.eye(2, dtype=torch.float64), torch.full((2, 2), 0.5, dtype=torch.float64)
    got = refine(given, guessed, torch.tensor([1.0, 0.0], dtype=torch.float64), 1.0)
    torch.testing.assert_close(got, torch.tensor([[1.0, 0.0], [0.5, 0.5]], dtype=torch.float64))


def test_guess_by_hand() -> None:
    """The mean of four views is (0.4, 0.6); squared: (0.16, 0.36) / 0.52."""
    got = guess((row(0.1, 0.9), row(0.3, 0.7), row(0.5, 0.5), row(0.7, 0.3)), 0.5)
    torch.testing.assert_close(got, row(0.16 / 0.52, 0.36 / 0.52))


def test_mix_by_hand() -> None:
    torch.testing.assert_close(mix(row(1, 2), row(5, 10), torch.tensor(0.75, dtype=torch.float64)), row(2, 4))


@pytest.mark.parametrize("beta", [0.5, 4.0])
def test_mixing_shares_follow_the_folded_beta(beta: float) -> None:
    """For l' = max(l, 1 - l) of a symmetric Beta, P(l' <= t) = 2 F(t) - 1 on [1/2, 1]."""
    shares = mixing_shares(20_000, beta, seeded(5, 0)).double()
    assert float(shares.min()) >= 0.5 and float(shares.max()) <= 1
    result = stats.kstest(shares.numpy(), lambda t: 2 * stats.beta.cdf(t, beta, beta) - 1)
    assert result.pvalue > 0.01


def test_mixing_shares_belong_to_their_generator() -> None:
    assert torch.equal(mixing_shares(9, 4, seeded(1, 2)), mixing_shares(9, 4, seeded(1, 2)))
    assert not torch.equal(mixing_shares(9, 4, seeded(1, 2)), mixing_shares(9, 4, seeded(1, 3)))


@pytest.mark.parametrize("beta", [0.02, 1e3])
def test_mixing_shares_are_numbers_at_both_ends_of_beta(beta: float) -> None:
    shares = mixing_shares(2000, beta, seeded(0, 0))
    assert bool(torch.isfinite(shares).all())
    # a tiny Beta is almost a coin, a huge one almost 1/2
    assert (float(shares.mean()) > 0.95) if beta < 1 else (float(shares.mean()) < 0.55)


@pytest.mark.parametrize(("epoch", "expected"), [(0, 0), (10, 0), (10.5, 0.03125), (14, 0.25), (26, 1), (400, 1)])
def test_ramp_by_hand(epoch: float, expected: float) -> None:
    assert ramp(epoch, 10, 16) == pytest.approx(expected)


def test_no_ramp_is_full_weight_at_once() -> None:
    assert ramp(10, 10, 0) == 1 and not math.isnan(ramp(0, 10, 0))
