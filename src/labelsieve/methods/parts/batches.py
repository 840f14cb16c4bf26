"""Stage 1's batches: one step per batch of rows in a given order; all batches have one size."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Protocol

import torch
from torch import Tensor

Step = Callable[..., Tensor]
Pass = Callable[[Sequence[Tensor], int], None]  # columns in the order of their batches, and a batch's size


class Prepare(Protocol):
    """Gives a pass of steps in the fastest form a device has; `same` is what is fixed in it, `state` the tensors it changes."""

    def __call__(
        self, owner: object, name: str, step: Step, state: Callable[[], Sequence[Tensor]], same: tuple[object, ...]
    ) -> Pass: ...


def plainly(owner: object, name: str, step: Step, state: Callable[[], Sequence[Tensor]], same: tuple[object, ...]) -> Pass:
    """The step as it is, once a batch."""
    return partial(one_by_one, step)


def one_by_one(step: Step, columns: Sequence[Tensor], size: int) -> None:
    """A step on each batch. None on no rows: torch would split these into one batch of none, which weights would decay by."""
    if len(columns[0]):
        for inputs in zip(*(column.split(size) for column in columns)):
            step(*inputs)


def sorted_for(columns: Sequence[Tensor], order: Tensor, size: int) -> tuple[Tensor, ...]:
    """The columns in `order` (N,), filled up to whole batches of `size` with rows of weight 0; the weight comes last.

    Sorted once, so that a batch is a view, not a gather.
    """
    device = columns[0].device
    missing = -len(order) % size
    filled = torch.cat((order, order[:1].expand(missing))).to(device)
    weight = (torch.arange(len(filled), device=device) < len(order)).float()
    return (*(column[filled] for column in columns), weight)
