"""Cleaners: from `Evidence` to q(z_i = 0), the chance that label i is clean. Two verbs, as scikit-learn would write it.

`MixtureCleaner` judges by the loss, `PrototypeCleaner` (CPC) and `ContrastiveCleaner` by class prototypes. Cleaners see
tensors, never pictures or networks, so they work alone on anybody's embeddings.
"""

from collections.abc import Callable, Mapping
from typing import Protocol

from torch import Tensor

from labelsieve.methods.parts.batches import Prepare
from labelsieve.methods.parts.contrastive import ContrastiveCleaner
from labelsieve.methods.parts.evidence import Evidence
from labelsieve.methods.parts.prototypes import PrototypeCleaner
from labelsieve.methods.parts.small_loss import MixtureCleaner

__all__ = ["Cleaner", "ContrastiveCleaner", "Evidence", "Judge", "MixtureCleaner", "PrototypeCleaner"]


class Cleaner(Protocol):
    """Gives q(z_i = 0), the chance that label i is clean."""

    def learn(self, seen: Evidence, clean: Tensor | None = None) -> None:
        """May change state. `clean` (N,) is a teacher's partition, for cleaners that learn from one."""

    def judge(self, seen: Evidence) -> Tensor:
        """q (N,) in [0, 1]; never changes state."""

    def state_dict(self) -> dict[str, Tensor]:
        """All that `learn` changed, as tensors."""

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """Take up where another cleaner of the same settings stood."""


class Judge(Cleaner, Protocol):
    """A cleaner by prototypes, or in their place: its learning rate drops with the network's, and most can classify."""

    lr: float
    prepare: Prepare
    inner: Callable[..., Tensor]  # the function of tensors that most of a step is

    @property
    def cosine(self) -> float:
        """0 for plain products of embeddings and prototypes, else the scale of their cosine."""

    def classify(self, features: Tensor) -> Tensor | None:
        """Scores (N, K) of features (N, D); None from a cleaner that judges given labels only."""
