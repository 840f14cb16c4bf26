"""Cleaners: from `Evidence` to q(z_i = 0), the chance that label i is clean. Two verbs, as scikit-learn would write it.

`MixtureCleaner` judges by the loss, `PrototypeCleaner` (CPC) and `ContrastiveCleaner` by class prototypes. Cleaners see
tensors, never pictures or networks, so they work alone on anybody's embeddings.
"""

from collections.abc import Mapping
from typing import Protocol

from torch import Tensor

from labelsieve.methods.parts.contrastive import ContrastiveCleaner
from labelsieve.methods.parts.evidence import Evidence
from labelsieve.methods.parts.prototypes import PrototypeCleaner
from labelsieve.methods.parts.small_loss import MixtureCleaner

__all__ = ["Cleaner", "ContrastiveCleaner", "Evidence", "MixtureCleaner", "PrototypeCleaner"]


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
