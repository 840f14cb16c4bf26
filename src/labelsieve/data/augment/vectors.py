"""Views of vectors, float32 (M, D): what shifts and colours are to pictures, noise is to vectors.

Weak: Gaussian noise of a tenth of each dimension's standard deviation. Strong: noise of three tenths, and one dimension in ten
put to its mean. Drawn on the host for every sample apart, so one seed gives the same views on every device.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from labelsieve.data.augment.weak import upload
from labelsieve.errors import UsageError

WEAK_NOISE, STRONG_NOISE, STRONG_DROPOUT = 0.1, 0.3, 0.1  # in standard deviations, and a share of the dimensions


@dataclass(frozen=True)
class VectorPlan:
    """What happens to each of M vectors: `noise` float32 (M, D) in standard deviations, `dropped` bool (M, D); on the host."""

    noise: Tensor
    dropped: Tensor | None

    def __len__(self) -> int:
        return len(self.noise)


@dataclass(frozen=True)
class Shaken:
    """Adds noise of `noise` standard deviations to every dimension and puts a share `dropout` of them to their mean."""

    noise: float
    dropout: float
    mean: Tensor  # (D,)
    std: Tensor  # (D,)

    def draw(self, count: int, dimensions: int, generator: torch.Generator) -> VectorPlan:
        """A plan for `count` vectors; `generator` is a host one."""
        noise = torch.randn((count, dimensions), generator=generator).mul_(self.noise)
        dropped = torch.rand((count, dimensions), generator=generator) < self.dropout if self.dropout else None
        return VectorPlan(noise, dropped)

    def apply(self, vectors: Tensor, plan: VectorPlan) -> Tensor:
        """The planned views, float32 (M, D), on the vectors' device."""
        if vectors.shape != plan.noise.shape:
            raise UsageError(
                f"the plan is for vectors of shape {tuple(plan.noise.shape)}, but {tuple(vectors.shape)} came; "
                f"draw a plan for these vectors"
            )
        device = vectors.device
        views = torch.addcmul(vectors, upload(plan.noise, device), upload(self.std, device))
        if plan.dropped is None:
            return views
        return torch.where(upload(plan.dropped, device), upload(self.mean, device), views)

    def __call__(self, vectors: Tensor, generator: torch.Generator) -> Tensor:
        return self.apply(vectors, self.draw(len(vectors), vectors.shape[1], generator))


@dataclass(frozen=True)
class VectorViews:
    """Weak views for guessing labels, strong ones for training."""

    weak: Shaken
    strong: Shaken

    def plain(self, vectors: Tensor) -> Tensor:
        """The vectors as they are evaluated: unchanged."""
        return vectors


def vector_views(mean: Sequence[float], std: Sequence[float]) -> VectorViews:
    """Views of vectors whose dimensions have this mean and standard deviation, (D,) each."""
    middle, spread = torch.tensor(mean), torch.tensor(std)
    return VectorViews(Shaken(WEAK_NOISE, 0.0, middle, spread), Shaken(STRONG_NOISE, STRONG_DROPOUT, middle, spread))
