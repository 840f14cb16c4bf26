"""Stage 1's batches: columns by sample and an order go in, batches of one size come out, each with a weight for its rows."""

from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

import torch
from torch import Tensor

Step = Callable[..., Tensor]


class Prepare(Protocol):
    """Gives a step in the fastest form a device has; `same` is what is fixed in it, `state` the tensors it changes."""

    def __call__(
        self, owner: object, name: str, step: Step, state: Callable[[], Sequence[Tensor]], same: tuple[object, ...]
    ) -> Step: ...


def plainly(owner: object, name: str, step: Step, state: Callable[[], Sequence[Tensor]], same: tuple[object, ...]) -> Step:
    """The step as it is."""
    return step


def batches(columns: Sequence[Tensor], order: Tensor, size: int) -> Iterator[tuple[Tensor, ...]]:
    """The columns in `order` (N,), cut into batches of `size`; the last is filled up with rows of weight 0.

    Sorted once, then cut: a batch is a view, not a gather. The weight (size,) comes last in each batch.
    """
    device = columns[0].device
    missing = -len(order) % size
    filled = torch.cat((order, order[:1].expand(missing))).to(device)
    weight = (torch.arange(len(filled), device=device) < len(order)).float()
    return zip(*(column[filled].split(size) for column in columns), weight.split(size))
