"""Vectors (N, D) on a common scale: float32 (N, d <= 256), made in chunks so that memory stays bounded."""

from typing import Any

import numpy as np
import torch
from torch import Tensor

DIMENSIONS = 256  # wider vectors keep only their main axes: more cost time and memory and rank no better
SAMPLE, CHUNK = 10_000, 8_192
LARGEST = float(torch.finfo(torch.float32).max)
FARTHEST = 30.0  # spreads: numbers drawn from a normal distribution never are that far away
TORN = 10.0  # a spread that is so many times that of the middle 98 % comes from a few rows


class BrokenRow(ValueError):
    """A value that is NaN, infinite or beyond float32, in row `row`."""

    def __init__(self, row: int) -> None:
        super().__init__(f"row {row} has a value that is NaN, infinite or beyond float32")
        self.row = row


def compact(values: Any, alike: bool = False) -> Tensor:
    """Each dimension minus its mean over its spread; wider than `DIMENSIONS`, only the main axes, scaled alike.

    `values` (N, D) is an array, a memory map or a tensor. With `alike`, all dimensions share one spread, so that those that vary
    most weigh most: a network's features are on one scale already. Values farther than `FARTHEST` spreads are cut to that, so
    one broken row does not decide the scale of all others.
    """
    rows = _floats(values, np.linspace(0, len(values) - 1, min(SAMPLE, len(values))).astype(np.int64))
    mean, turn = _scale(rows)
    if alike:
        turn = _shared(turn)
    axes = _main_axes(_scaled(rows, mean, turn)) if values.shape[1] > DIMENSIONS else None
    width = values.shape[1] if axes is None else DIMENSIONS
    result = torch.empty(len(values), width)
    for first in range(0, len(values), CHUNK):
        some = _floats(values, slice(first, first + CHUNK))
        broken = torch.nonzero(~(some.abs() <= LARGEST).all(1)).flatten()
        if len(broken):
            raise BrokenRow(first + int(broken[0]))
        some = _scaled(some, mean, turn)
        result[first : first + CHUNK] = some if axes is None else some @ axes
    return result


def _floats(values: Any, rows: Any) -> Tensor:
    """In float64: what varies little around a large mean would be all the same in float32."""
    if isinstance(values, Tensor):
        values = values.detach().cpu().numpy()
    return torch.from_numpy(np.array(values[rows], dtype=np.float64))


def _shared(turn: Tensor) -> Tensor:
    """One over the root mean square of all spreads; 0 where there is no spread."""
    varies = turn > 0
    spread = turn[varies].reciprocal().square().mean().sqrt() if varies.any() else turn.new_ones(())
    return torch.where(varies, 1 / spread, 0.0)


def _scale(rows: Tensor) -> tuple[Tensor, Tensor]:
    """Mean (D,) and one over the spread (D,), 0 where there is none. Where a few rows make most of the spread, without those."""
    rows = torch.nan_to_num(rows).clamp(-LARGEST, LARGEST)
    mean, spread = rows.mean(0), rows.std(0, correction=0)
    cut = -(-len(rows) // 100)  # this many at each end
    if len(rows) >= 20:
        columns = rows.T.contiguous()
        low, high = columns.kthvalue(cut + 1).values, columns.kthvalue(len(rows) - cut).values
        calm = rows.clamp(low, high)
        calm_spread = calm.std(0, correction=0)
        torn = (calm_spread > 0) & (spread > TORN * calm_spread)
        mean, spread = torch.where(torn, calm.mean(0), mean), torch.where(torn, calm_spread, spread)
    return mean, torch.where(spread > 0, 1 / spread.clamp_min(1e-300), 0.0)


def _scaled(rows: Tensor, mean: Tensor, turn: Tensor) -> Tensor:
    return ((rows - mean) * turn).clamp(-FARTHEST, FARTHEST).float()


def _main_axes(rows: Tensor) -> Tensor:
    """(D, 256): the axes along which the rows differ most, all scaled alike, so that the mean variance is 1."""
    rows = torch.nan_to_num(rows)
    values, axes = torch.linalg.eigh(rows.T @ rows / len(rows))
    return axes[:, -DIMENSIONS:] * (DIMENSIONS / values[-DIMENSIONS:].clamp_min(0).sum().clamp_min(1e-12)).sqrt()
