"""Chooses which rows an epoch sees, from the given labels and a generator. A recipe carries one of these.

Small sets are seen whole every epoch. Of large ones each network draws so many batches, divides them and trains on them.
"""

import math
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor


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
