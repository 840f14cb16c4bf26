"""The small-loss prior: how likely each label is clean, by its loss (GMM_agn, GMM_awr)."""

from collections.abc import Mapping

import torch
from torch import Tensor

from labelsieve.methods.parts import mixture
from labelsieve.methods.parts.evidence import Evidence
from labelsieve.methods.parts.mixture import Mixture


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
        self.mixture_ = mixture.fit(
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
