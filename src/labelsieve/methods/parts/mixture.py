"""The small-loss prior (GMM_agn, GMM_awr): how likely each label is clean, by a two-component Gaussian mixture of its loss.

All classes are fitted at once, on the device; scikit-learn fits one mixture a call, on the host. It is followed step for step
(`GaussianMixture(2, max_iter=10, tol=1e-2, reg_covar=5e-4)`), early stop included: run to convergence the wide component claims
the smallest losses too, and the posterior is no longer monotone (PAPER.md, trap 1). Only the start differs: the exact optimum of
2-means, which one dimension allows, instead of a random search for it.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from labelsieve.methods.parts.evidence import Evidence

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


class MixtureCleaner:
    """A two-component mixture over the losses, one for all classes or one for each.

    Losses are min-max normalised over the whole set, or with `own_range` over each class. With `memory` > 1 the mean of the
    last `memory` normalised vectors goes into the mixture (90 % noise: 5). A class that cannot be fitted counts as clean
    (`unfitted_` names it); losses that are not finite are left out of the fit, judged 0, and counted (`excluded_`).

    >>> import torch
    >>> from labelsieve import Evidence
    >>> losses = torch.tensor([0.1, 0.2] * 6 + [3.0, 3.1] * 3)
    >>> seen = Evidence(torch.zeros(18, dtype=torch.int64), losses, torch.full((18, 2), 0.5), torch.zeros(18, 4))
    >>> cleaner = MixtureCleaner()
    >>> cleaner.learn(seen)
    >>> int((cleaner.judge(seen) > 0.5).sum())
    12
    """

    def __init__(
        self,
        per_class: bool = False,
        memory: int = 1,
        max_iter: int = 10,
        tol: float = 1e-2,
        reg_covar: float = 5e-4,
        own_range: bool = False,
    ) -> None:
        self.per_class = per_class
        self.own_range = own_range
        self.memory = memory
        self.max_iter = max_iter
        self.tol = tol
        self.reg_covar = reg_covar
        self.mixture_: Mixture | None = None
        self.past_: Tensor | None = None  # (up to memory, N), the newest last
        self.range_: Tensor | None = None  # (2, 1 or K) lowest and highest finite loss

    def learn(self, seen: Evidence, clean: Tensor | None = None) -> None:
        self.range_ = self._extremes(seen)
        latest = self._normalised(seen).unsqueeze(0)
        same_rows = self.past_ is not None and self.past_.shape[1] == len(seen)
        past = torch.cat((self.past_, latest)) if same_rows and self.past_ is not None else latest
        self.past_ = past[-self.memory :]
        self.mixture_ = fit(
            self.past_.mean(0),
            _groups(seen, self.per_class),
            seen.classes if self.per_class else 1,
            max_iter=self.max_iter,
            tol=self.tol,
            reg_covar=self.reg_covar,
        )

    def judge(self, seen: Evidence) -> Tensor:
        if self.mixture_ is None or self.past_ is None:
            raise RuntimeError("this MixtureCleaner has not learnt yet: call learn(seen) first")
        losses = self._normalised(seen)
        if len(self.past_) > 1 and self.past_.shape[1] == len(seen):
            losses = torch.cat((self.past_[:-1], losses.unsqueeze(0))).mean(0)
        return self.mixture_.posterior(losses, _groups(seen, self.per_class)).to(torch.float32)

    def _extremes(self, seen: Evidence) -> Tensor:
        """The lowest and the highest finite loss, of all labels (2, 1) or of each class's (2, K).

        A class that was not seen (of a large set, an epoch sees some rows) has those of all: its labels are judged at the end.
        """
        losses = seen.losses.double()
        finite = torch.isfinite(losses)
        low, high = torch.where(finite, losses, torch.inf), torch.where(finite, losses, -torch.inf)
        if not len(losses):
            return losses.new_zeros(2, seen.classes if self.own_range else 1)
        whole = torch.stack((low.amin(), high.amax())).unsqueeze(1)
        if not self.own_range:
            return whole
        none = losses.new_full((seen.classes,), torch.inf)
        lowest = none.scatter_reduce(0, seen.labels, low, "amin")
        highest = (-none).scatter_reduce(0, seen.labels, high, "amax")
        each = torch.stack((lowest, highest))
        return torch.where(torch.isfinite(each), each, whole)

    def _normalised(self, seen: Evidence) -> Tensor:
        assert self.range_ is not None
        lowest, highest = self.range_[:, _groups(seen, self.own_range)]
        losses = (seen.losses.double() - lowest) / (highest - lowest).clamp_min(1e-12)
        return torch.where(torch.isfinite(seen.losses), losses, torch.nan)

    @property
    def excluded_(self) -> int:
        """How many losses of the last pass were not finite (with `memory`: were so in any remembered pass)."""
        return 0 if self.past_ is None else int((~torch.isfinite(self.past_.mean(0))).sum())

    @property
    def unfitted_(self) -> list[int]:
        """Classes without a mixture (too few samples or no spread); [0] when the one mixture for all failed."""
        return [] if self.mixture_ is None else torch.nonzero(~self.mixture_.fitted).flatten().tolist()

    def state_dict(self) -> dict[str, Tensor]:
        if self.mixture_ is None or self.past_ is None or self.range_ is None:
            return {}
        m = self.mixture_
        return {
            "past": self.past_,
            "range": self.range_,
            "means": m.means,
            "variances": m.variances,
            "weights": m.weights,
            "fitted": m.fitted,
        }

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        if not state:
            return
        self.past_, self.range_ = state["past"], state["range"].reshape(2, -1)  # it was (2,) once
        self.mixture_ = Mixture(state["means"], state["variances"], state["weights"], state["fitted"])


def _groups(seen: Evidence, by_class: bool) -> Tensor:
    """(N,) which of K classes each label belongs to, or 0 for all."""
    return seen.labels if by_class else torch.zeros_like(seen.labels)
