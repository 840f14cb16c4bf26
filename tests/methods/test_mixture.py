"""The vectorised mixture against scikit-learn's, one fit a group; it never fails, whatever the losses are."""

import numpy as np
import pytest
import torch
from sklearn.cluster import KMeans
from sklearn.mixture import GaussianMixture
from torch import Tensor

from labelsieve.methods.parts.mixture import Mixture, fit

SETTINGS = {"max_iter": 10, "tol": 1e-2, "reg_covar": 5e-4}


def reference(x: np.ndarray, max_iter: int = 10, tol: float = 1e-2) -> np.ndarray:
    """scikit-learn's posterior of the lower component, from the best of ten k-means starts."""
    x = x.reshape(-1, 1)
    split = KMeans(2, n_init=10, tol=0, random_state=0).fit(x).labels_
    shares = np.eye(2)[split]
    mass = shares.sum(0)
    means = shares.T @ x / mass[:, None]
    variances = (shares * (x - means.T) ** 2).sum(0) / mass + 5e-4
    start = GaussianMixture(
        2, max_iter=max_iter, tol=tol, reg_covar=5e-4, means_init=means, weights_init=mass / mass.sum(),
        precisions_init=(1 / variances).reshape(2, 1, 1), random_state=0,
    )  # fmt: skip
    fitted = start.fit(x)
    return fitted.predict_proba(x)[:, fitted.means_[:, 0].argmin()]


def plain_reference(x: np.ndarray, states: int = 5) -> list[np.ndarray]:
    """The call as DivideMix writes it, under several random states."""
    found = []
    for state in range(states):
        fitted = GaussianMixture(2, **SETTINGS, random_state=state).fit(x.reshape(-1, 1))
        found.append(fitted.predict_proba(x.reshape(-1, 1))[:, fitted.means_.argmin()])
    return found


def two_humps(n: int, share: float, low: float, high: float, width: tuple[float, float], seed: int) -> np.ndarray:
    draw = np.random.default_rng(seed)
    few = round(n * share)
    x = np.concatenate((draw.normal(low, width[0], n - few), draw.normal(high, width[1], few)))
    return np.clip(x, 0, 1)


def skewed(n: int, seed: int) -> np.ndarray:
    """Losses as a network leaves them: many near 0 (exponential), the wrong labels wide and high."""
    draw = np.random.default_rng(seed)
    x = np.concatenate((draw.exponential(0.03, n // 2), draw.gamma(6, 0.08, n - n // 2)))
    return (x - x.min()) / (x.max() - x.min())


SHAPES = {
    "far apart": two_humps(4000, 0.5, 0.1, 0.8, (0.05, 0.1), 0),
    "overlapping": two_humps(4000, 0.4, 0.3, 0.6, (0.1, 0.12), 1),
    "100 to 1": two_humps(4040, 1 / 101, 0.1, 0.9, (0.05, 0.03), 2),
    "1 to 100": two_humps(4040, 100 / 101, 0.1, 0.7, (0.02, 0.1), 3),
    "skewed": skewed(4000, 4),
    "few": two_humps(40, 0.5, 0.2, 0.7, (0.05, 0.1), 5),
}


def one_group(x: np.ndarray, **settings: float) -> Tensor:
    losses = torch.from_numpy(x)
    groups = torch.zeros(len(x), dtype=torch.long)
    return fit(losses, groups, 1, **settings).posterior(losses, groups)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", SHAPES)
def test_one_group_equals_scikit_learn(name: str) -> None:
    x = SHAPES[name]
    ours = one_group(x).numpy()
    assert np.abs(ours - reference(x)).max() < 1e-6  # the same start: the same posterior
    assert min(np.abs(ours - theirs).max() for theirs in plain_reference(x)) < 0.01


def many_groups() -> tuple[Tensor, Tensor]:
    """Classes of 9 to 3000 samples, one of them 100 : 1, in mixed order."""
    sizes = (9, 30, 300, 3000, 1010, 64, 65, 500)
    parts = [two_humps(n, 0.4, 0.1 + 0.02 * k, 0.5 + 0.05 * k, (0.05, 0.08), k) for k, n in enumerate(sizes)]
    parts[4] = two_humps(1010, 10 / 1010, 0.1, 0.9, (0.04, 0.02), 99)
    losses = torch.from_numpy(np.concatenate(parts))
    groups = torch.repeat_interleave(torch.arange(len(sizes)), torch.tensor(sizes))
    order = torch.randperm(len(losses), generator=torch.Generator().manual_seed(0))
    return losses[order], groups[order]


def test_all_classes_at_once_equal_one_fit_per_class() -> None:
    losses, groups = many_groups()
    together = fit(losses, groups, 8).posterior(losses, groups)
    for k in range(8):
        alone = losses[groups == k].numpy()
        ours = together[groups == k].numpy()
        assert np.abs(ours - reference(alone)).max() < 1e-6, k
        assert min(np.abs(ours - theirs).max() for theirs in plain_reference(alone)) < 0.01, k


def test_the_early_stop_matters() -> None:
    """Trap 1: only a fit run to convergence lets the wide component claim the smallest losses too."""
    draw = np.random.default_rng(7)
    x = np.concatenate((draw.normal(0.45, 0.05, 5000), draw.normal(0.53, 0.2, 5000)))
    x = np.sort((x - x.min()) / (x.max() - x.min()))
    early, converged = one_group(x).numpy(), one_group(x, max_iter=2000, tol=1e-9).numpy()
    lowest = x < np.quantile(x, 0.02)
    assert early[lowest].mean() > 0.9  # the smallest losses count as clean ...
    assert converged[lowest].mean() < 0.1  # ... where the converged fit gives them away
    assert np.abs(early - reference(x)).max() < 1e-6
    assert np.abs(converged - reference(x, 2000, 1e-9)).max() < 1e-3
    assert min(np.abs(early - theirs).max() for theirs in plain_reference(x)) < 0.01


def test_each_group_stops_by_itself() -> None:
    """A group's result does not depend on the groups it is fitted with."""
    losses, groups = many_groups()
    together = fit(losses, groups, 8)
    for k in range(8):
        alone = fit(losses[groups == k], torch.zeros(int((groups == k).sum()), dtype=torch.long), 1)
        torch.testing.assert_close(alone.means[0], together.means[k], rtol=0, atol=1e-9)
        torch.testing.assert_close(alone.variances[0], together.variances[k], rtol=0, atol=1e-9)


def test_deterministic_and_blind_to_the_order_of_samples() -> None:
    losses, groups = many_groups()
    first = fit(losses, groups, 8).posterior(losses, groups)
    assert torch.equal(first, fit(losses, groups, 8).posterior(losses, groups))
    order = torch.randperm(len(losses), generator=torch.Generator().manual_seed(3))
    moved = fit(losses[order], groups[order], 8).posterior(losses[order], groups[order])
    torch.testing.assert_close(moved, first[order], rtol=0, atol=1e-9)


nan, inf = float("nan"), float("inf")
HARD = {
    "constant": [0.3] * 50,
    "one sample": [0.5],
    "two samples": [0.1, 0.9],
    "all NaN": [nan] * 20,
    "no samples": [],
    "two values": [0.0, 1.0] * 20,
    "one outlier": [0.0] * 49 + [1.0],
    "some not finite": [nan, inf, -inf] + [0.1, 0.12, 0.9, 0.88] * 10,
}


@pytest.mark.parametrize("name", HARD)
def test_never_fails(name: str) -> None:
    losses = torch.tensor(HARD[name], dtype=torch.float64)
    groups = torch.ones(len(losses), dtype=torch.long)  # groups 0 and 2 stay empty
    found = fit(losses, groups, 3)
    chance = found.posterior(losses, groups)
    finite = torch.isfinite(losses)
    assert chance.shape == losses.shape
    assert bool(((chance >= 0) & (chance <= 1)).all())
    assert bool((chance[~finite] == 0).all())
    assert not found.fitted[0] and not found.fitted[2]
    unfit = name in ("constant", "one sample", "two samples", "all NaN", "no samples")
    assert bool(found.fitted[1]) != unfit
    if unfit:
        assert bool((chance[finite] == 1).all())  # ruling 9: all its labels count as clean


def test_eight_values_are_enough_and_seven_are_not() -> None:
    losses = torch.tensor([0.1, 0.12, 0.14, 0.16, 0.8, 0.82, 0.84, 0.86, 0.1, 0.12, 0.14, 0.16, 0.8, 0.82, 0.84])
    assert fit(losses, torch.tensor([0] * 8 + [1] * 7), 2).fitted.tolist() == [True, False]


def test_values_that_are_not_finite_are_left_out_of_the_fit() -> None:
    x = torch.from_numpy(SHAPES["far apart"])
    spoilt = torch.cat((torch.tensor([nan, inf]), x, torch.tensor([-inf])))
    without = fit(x, torch.zeros(len(x), dtype=torch.long), 1)
    within = fit(spoilt, torch.zeros(len(spoilt), dtype=torch.long), 1)
    torch.testing.assert_close(within.means, without.means, rtol=0, atol=1e-12)


def test_component_0_has_the_lower_mean_and_weights_add_up() -> None:
    losses, groups = many_groups()
    found: Mixture = fit(losses, groups, 8)
    assert bool((found.means[:, 0] < found.means[:, 1]).all())
    torch.testing.assert_close(found.weights.sum(1), torch.ones(8, dtype=torch.float64))
    assert bool((found.variances >= 5e-4).all())


def test_float32_losses_give_nearly_the_same_posterior() -> None:
    losses, groups = many_groups()
    double = fit(losses, groups, 8).posterior(losses, groups)
    single = fit(losses.float(), groups, 8).posterior(losses.float(), groups)
    assert float((double - single).abs().max()) < 1e-3
