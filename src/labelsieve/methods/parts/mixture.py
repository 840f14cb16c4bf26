"""Two-component Gaussian mixtures of one-dimensional losses, for all groups (classes) at once, deterministic.

Written by hand because scikit-learn fits one mixture a call, on the host. It follows scikit-learn's
`GaussianMixture(2, max_iter=10, tol=1e-2, reg_covar=5e-4)` step for step, the early stop included: run to convergence
the wide component claims the smallest losses too, and the posterior is no longer monotone (PAPER.md, trap 1). The only
difference is the start: the exact optimum of 2-means, which one dimension allows, instead of a random search for it.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

Params = tuple[Tensor, Tensor, Tensor]  # means, variances, weights, (R, 2) each
TINY = 10 * torch.finfo(torch.float64).eps


@dataclass
class Mixture:
    """One row for each of G groups; component 0 has the lower mean. `fitted` (G,) is False where none could be fitted."""

    means: Tensor  # (G, 2)
    variances: Tensor  # (G, 2)
    weights: Tensor  # (G, 2)
    fitted: Tensor  # (G,) bool

    def posterior(self, losses: Tensor, groups: Tensor) -> Tensor:
        """The chance of the lower component: (N,). 1 in groups without a mixture, 0 where the loss is not finite."""
        finite = torch.isfinite(losses)
        x = torch.where(finite, losses.double(), 0).unsqueeze(1)
        joint = _log_joint(x, self.means[groups], self.variances[groups], self.weights[groups])
        chance = torch.softmax(joint, 1)[:, 0]
        chance = torch.where(self.fitted[groups], chance, 1.0)
        return torch.where(finite, chance, 0.0)


def fit(
    losses: Tensor,
    groups: Tensor,
    count: int,
    *,
    max_iter: int = 10,
    tol: float = 1e-2,
    reg_covar: float = 5e-4,
    fewest: int = 8,
    least_spread: float = 1e-3,
) -> Mixture:
    """Fit the mixture of each group of `losses` (N,), `groups` (N,) in 0..count-1; values that are not finite are left out.

    A group with under `fewest` values, or with a standard deviation under `least_spread`, gets none.
    """
    device = losses.device
    result = Mixture(
        means=torch.tensor([[0.0, 1.0]], dtype=torch.float64, device=device).repeat(count, 1),
        variances=torch.ones(count, 2, dtype=torch.float64, device=device),
        weights=torch.full((count, 2), 0.5, dtype=torch.float64, device=device),
        fitted=torch.zeros(count, dtype=torch.bool, device=device),
    )
    for rows, values, mask in _padded(losses, groups, count, fewest):
        means, variances, weights, spread = _fit_rows(values, mask, max_iter, tol, reg_covar)
        order = means.argsort(1)
        result.means[rows] = means.gather(1, order)
        result.variances[rows] = variances.gather(1, order)
        result.weights[rows] = weights.gather(1, order)
        result.fitted[rows] = spread >= least_spread
    return result


def _padded(losses: Tensor, groups: Tensor, count: int, fewest: int) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    """The groups as rows of sorted values with a mask, (R, W) each, gathered by size so that padding at most doubles N."""
    device = losses.device
    finite = torch.isfinite(losses)
    groups = torch.where(finite, groups, count)
    # Sorted by value, then stably by group: each group is one sorted run.
    by_value = torch.where(finite, losses.double(), 0).argsort(stable=True)
    order = by_value[groups[by_value].argsort(stable=True)]
    values = losses.double()[order]
    sizes = torch.bincount(groups, minlength=count + 1)[:count].cpu()
    starts = torch.cumsum(sizes, 0) - sizes
    width_class = torch.where(sizes >= fewest, sizes.clamp_min(1).log2().ceil().long(), -1)
    for width in sorted(set(width_class.tolist()) - {-1}):
        rows = torch.nonzero(width_class == width).flatten()
        places = torch.arange(int(sizes[rows].max()))
        mask = places < sizes[rows].unsqueeze(1)
        index = torch.where(mask, starts[rows].unsqueeze(1) + places, 0)
        mask = mask.to(device)
        yield rows.to(device), torch.where(mask, values[index.to(device)], 0.0), mask


def _fit_rows(x: Tensor, mask: Tensor, max_iter: int, tol: float, reg_covar: float) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Expectation-maximisation on every row of sorted `x` (R, W) under `mask`; a row stops when its likelihood does."""
    n = mask.sum(1, dtype=torch.float64)
    centre = x.sum(1) / n
    spread = ((x - centre.unsqueeze(1)).square() * mask).sum(1).div(n).sqrt()
    params = _maximise(x, _two_means(x, mask), n, reg_covar)
    active = torch.ones_like(n, dtype=torch.bool)
    bound = torch.full_like(n, -torch.inf)
    for _ in range(max_iter):
        means, variances, weights = (p.unsqueeze(1) for p in params)
        joint = _log_joint(x.unsqueeze(2), means, variances, weights)
        evidence = torch.logsumexp(joint, 2)
        shares = torch.exp(joint - evidence.unsqueeze(2)) * mask.unsqueeze(2)
        moved = _maximise(x, shares, n, reg_covar)
        params = _where(active, moved, params)
        reached = (evidence * mask).sum(1) / n
        active = active & ((reached - bound).abs() >= tol)
        bound = reached
    means, variances, weights = params
    return means, variances, weights, spread


def _where(active: Tensor, moved: Params, before: Params) -> Params:
    a = active.unsqueeze(1)
    return torch.where(a, moved[0], before[0]), torch.where(a, moved[1], before[1]), torch.where(a, moved[2], before[2])


def _two_means(x: Tensor, mask: Tensor) -> Tensor:
    """The best split of each sorted row in two clusters, as 0/1 shares (R, W, 2): least squared error over all splits."""
    n = mask.sum(1, keepdim=True)
    left = torch.cumsum(x, 1)
    total = left[:, -1:]
    size = torch.arange(1, x.shape[1] + 1, device=x.device).unsqueeze(0)
    gain = left.square() / size + (total - left).square() / (n - size).clamp_min(1)
    gain = torch.where(size < n, gain, -torch.inf)
    lower = (size - 1) <= gain.argmax(1, keepdim=True)
    return torch.stack((lower & mask, ~lower & mask), 2).double()


def _maximise(x: Tensor, shares: Tensor, n: Tensor, reg_covar: float) -> Params:
    """Means, variances and weights (R, 2) that fit `shares` (R, W, 2)."""
    mass = shares.sum(1) + TINY
    means = (shares * x.unsqueeze(2)).sum(1) / mass
    variances = (shares * (x.unsqueeze(2) - means.unsqueeze(1)).square()).sum(1) / mass + reg_covar
    weights = mass / mass.sum(1, keepdim=True)
    return means, variances, weights


def _log_joint(x: Tensor, means: Tensor, variances: Tensor, weights: Tensor) -> Tensor:
    """log(weight) + log N(x; mean, variance), up to the same constant for both components."""
    return weights.log() - 0.5 * (variances.log() + (x - means).square() / variances)
