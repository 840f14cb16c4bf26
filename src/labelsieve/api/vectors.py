"""Anybody's vectors (N, D) go in; float32 (N, d <= 256) on a common scale comes out, made in chunks so that memory is bounded."""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from labelsieve.api.labels import BadInput, plain

DIMENSIONS = 256  # more are turned onto their main axes and cut: they cost time and memory and rank no better
SAMPLE, CHUNK = 10_000, 8_192


def compact(features: Any) -> Tensor:
    """Every dimension minus its mean over its spread; where there are more than `DIMENSIONS`, their main axes, scaled alike."""
    values = np.asarray(plain(features))
    if values.ndim != 2 or 0 in values.shape:
        raise BadInput(f"features: the shape is {values.shape}; they must be (N, D), one row a sample")
    if values.dtype.kind not in "fiub":
        raise BadInput(f"features: the values are {values.dtype}; they must be numbers")
    rows = _floats(values, np.linspace(0, len(values) - 1, min(SAMPLE, len(values))).astype(np.int64))
    mean, spread = rows.mean(0), rows.std(0, correction=0)
    turn = torch.where(spread > 0, 1 / spread.clamp_min(1e-30), 0.0)
    axes = _main_axes((rows - mean) * turn) if values.shape[1] > DIMENSIONS else None
    width = values.shape[1] if axes is None else DIMENSIONS
    result = torch.empty(len(values), width)
    for first in range(0, len(values), CHUNK):
        some = _floats(values, slice(first, first + CHUNK))
        broken = torch.nonzero(~torch.isfinite(some).all(1)).flatten()
        if len(broken):
            raise BadInput(
                f"features: row {first + int(broken[0])} has a value that is NaN, infinite or beyond float32; remove or mend it"
            )
        some = (some - mean) * turn
        result[first : first + CHUNK] = some if axes is None else some @ axes
    return result


def _floats(values: Any, rows: Any) -> Tensor:
    with np.errstate(over="ignore"):
        return torch.from_numpy(np.array(values[rows], dtype=np.float32))


def _main_axes(rows: Tensor) -> Tensor:
    """(D, 256): the axes along which the rows differ most, all scaled alike, so that the mean variance is 1."""
    rows = torch.nan_to_num(rows)
    values, axes = torch.linalg.eigh(rows.T @ rows / len(rows))
    return axes[:, -DIMENSIONS:] * (DIMENSIONS / values[-DIMENSIONS:].clamp_min(0).sum().clamp_min(1e-12)).sqrt()
