"""Anybody's vectors (N, D) go in; float32 (N, d <= 256) on a common scale comes out, made in chunks so that memory is bounded."""

from contextlib import suppress
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from labelsieve.api.labels import BadInput, plain

DIMENSIONS = 256  # more are turned onto their main axes and cut: they cost time and memory and rank no better
SAMPLE, CHUNK = 10_000, 8_192
LARGEST = float(torch.finfo(torch.float32).max)
FARTHEST = 30.0  # spreads: numbers drawn from a normal distribution never are that far away
TORN = 10.0  # a spread that is so many times that of the middle 98 % comes from a few rows


def compact(features: Any) -> Tensor:
    """Every dimension minus its mean over its spread; where there are more than `DIMENSIONS`, their main axes, scaled alike.

    What is farther than `FARTHEST` spreads away is brought to that, so that one broken row does not decide all others' scale.
    """
    values = _numbers(features)
    rows = _floats(values, np.linspace(0, len(values) - 1, min(SAMPLE, len(values))).astype(np.int64))
    mean, turn = _scale(rows)
    axes = _main_axes(_scaled(rows, mean, turn)) if values.shape[1] > DIMENSIONS else None
    width = values.shape[1] if axes is None else DIMENSIONS
    result = torch.empty(len(values), width)
    for first in range(0, len(values), CHUNK):
        some = _floats(values, slice(first, first + CHUNK))
        broken = torch.nonzero(~(some.abs() <= LARGEST).all(1)).flatten()
        if len(broken):
            raise BadInput(
                f"features: row {first + int(broken[0])} has a value that is NaN, infinite or beyond float32; remove or mend it"
            )
        some = _scaled(some, mean, turn)
        result[first : first + CHUNK] = some if axes is None else some @ axes
    return result


def _numbers(features: Any) -> NDArray[Any]:
    """(N, D) as they lie in memory or on the disk; objects (a frame's numbers that may be missing) become floats."""
    if hasattr(features, "toarray") and hasattr(features, "nnz"):
        raise BadInput(
            "features: they are a sparse matrix; make them dense, by .toarray() or, where they are wide, by TruncatedSVD"
        )
    values = np.asarray(plain(features))
    if values.ndim == 2 and len(values) == 0:
        raise BadInput("features: there are no rows; give at least one sample of two classes each")
    if values.ndim != 2 or 0 in values.shape:
        raise BadInput(f"features: the shape is {values.shape}; they must be (N, D), one row a sample")
    if values.dtype.kind == "O":
        with suppress(TypeError, ValueError):
            values = values.astype(np.float64)
    if values.dtype.kind not in "fiub":
        raise BadInput(f"features: the values are {values.dtype}; they must be numbers")
    return values


def _floats(values: Any, rows: Any) -> Tensor:
    """In float64: what varies little around a large mean would be all the same in float32."""
    return torch.from_numpy(np.array(values[rows], dtype=np.float64))


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
