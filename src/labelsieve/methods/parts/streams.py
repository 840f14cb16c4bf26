"""Randomness without state, and which rows an epoch sees by it.

Every draw belongs to a name (epoch, network, purpose), never to what was drawn before. So a run can be resumed at any epoch, on
any machine, and draws what it would have drawn: nothing to save, nothing to restore. Small sets are seen whole every epoch; of
large ones each network draws so many batches, divides them and trains on them.
"""

import math
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor


def seeded(seed: int, *key: int) -> torch.Generator:
    """A CPU generator that depends on the seed and the key alone, so that a stream can be resumed anywhere."""
    mixed = int(seed) & 0xFFFFFFFFFFFFFFFF  # numpy's integers have no room for these
    for part in key:
        # splitmix64's finaliser: neighbouring keys give unrelated streams
        mixed = (mixed + 0x9E3779B97F4A7C15 * (int(part) + 1)) & 0xFFFFFFFFFFFFFFFF
        mixed = ((mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9) & 0xFFFFFFFFFFFFFFFF
        mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) & 0xFFFFFFFFFFFFFFFF
        mixed ^= mixed >> 31
    return torch.Generator().manual_seed(mixed & 0x7FFFFFFFFFFFFFFF)


# What a draw is for. The numbers are part of every run's identity: never renumber, only add.
WEIGHTS, PROTOTYPES, WARM_UP_ORDER, WARM_UP_VIEWS, PLAN, WEAK, STRONG, DRAW, LAYERS, WEAK_FEATURES, CLEANER = range(11)


class Sampler(Protocol):
    """An epoch's choice of rows."""

    def rows(self, labels: Tensor, batch: int, generator: torch.Generator) -> Tensor | None:
        """Row numbers (M,), ascending, for batches of that size; None where every row is seen. `labels` (N,) on the host."""


@dataclass(frozen=True)
class EveryRow:
    """The whole set, every epoch."""

    def rows(self, labels: Tensor, batch: int, generator: torch.Generator) -> Tensor | None:
        return None


@dataclass(frozen=True)
class RandomBatches:
    """So many batches, drawn evenly from all rows."""

    batches: int

    def rows(self, labels: Tensor, batch: int, generator: torch.Generator) -> Tensor:
        return cycled(torch.arange(len(labels)), self.batches * batch, generator).sort().values


@dataclass(frozen=True)
class BalancedBatches:
    """So many batches, with equally many rows of each class that was given; classes that have too few repeat theirs."""

    batches: int

    def rows(self, labels: Tensor, batch: int, generator: torch.Generator) -> Tensor:
        groups = labels.argsort(stable=True).split(torch.bincount(labels).tolist())
        present = [group for group in groups if len(group)]
        quota, left = divmod(self.batches * batch, len(present))
        one_more = torch.randperm(len(present), generator=generator) < left
        drawn = [cycled(group, quota + int(more), generator) for group, more in zip(present, one_more)]
        return torch.cat(drawn).sort().values


def cycled(rows: Tensor, length: int, generator: torch.Generator) -> Tensor:
    """`length` rows: whole random passes over `rows`, one after the other, the last cut short."""
    passes = [rows[torch.randperm(len(rows), generator=generator)] for _ in range(math.ceil(length / len(rows)))]
    return torch.cat([rows[:0], *passes])[:length]
