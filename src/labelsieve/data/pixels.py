"""Turns pictures as people store them, bytes or floats in any axis order, into uint8 (N, C, H, W)."""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from labelsieve.data.npz import Array
from labelsieve.data.pictures.depth import narrowing, white_for
from labelsieve.errors import ToolError

CHANNELS = (1, 3, 4)
WHITE = 1.001  # rounding takes what is 0..1 a little beyond 1, resizing some hundredths


def channels_first(pixels: Array, place: str) -> Array:
    """(N, H, W), (N, H, W, C) or (N, C, H, W) to (N, C, H, W).

    The rule for four axes: 1, 3 or 4 in the last place are the channels, else 1, 3 or 4 in the second. Where
    both would do (pictures 3 or 4 pixels wide), the last place wins.
    """
    if pixels.ndim not in (3, 4) or 0 in pixels.shape[1:]:
        raise ToolError(f"{place}: the shape is {pixels.shape}; pictures must be (N, H, W), (N, H, W, C) or (N, C, H, W)")
    if pixels.ndim == 3:
        return pixels[:, None]
    if pixels.shape[3] in CHANNELS:
        return np.moveaxis(pixels, 3, 1)
    if pixels.shape[1] in CHANNELS:
        return pixels
    raise ToolError(
        f"{place}: the shape {pixels.shape} has 1, 3 or 4 channels neither in the last nor in the "
        f"second place; store pictures as (N, H, W, C) or (N, C, H, W)"
    )


def brightest(pixels: Array, place: str) -> float:
    """The largest value, or a `ToolError` for values that are not numbers, not finite or negative."""
    if pixels.dtype.kind not in "uif":
        raise ToolError(f"{place}: the values are {pixels.dtype}; store pictures as uint8 or as floats")
    if pixels.size == 0:
        return 0.0
    if pixels.dtype.kind == "f":
        _raise_at(~np.isfinite(pixels), "has a value that is NaN or infinite; remove or fix the picture", place)
    _raise_at(pixels < 0, "has a negative value; store pictures as 0..255 or as floats in 0..1", place)
    return float(pixels.max())


def white_of(top: float, place: str) -> float:
    """What is white in floats whose largest value is `top`: 1 or 255. A little over 1 is neither: all would be nearly black."""
    if WHITE < top < 2:
        raise ToolError(f"{place}: the largest value is {top:g}, where 0..1 and 0..255 are possible; clip pictures to 0..1")
    return 1.0 if top <= WHITE else 255.0


def is_wide(pixels: Array) -> bool:
    """Whether these are whole numbers of 16 bits."""
    return pixels.dtype.kind in "ui" and pixels.dtype.itemsize == 2


def as_bytes(pixels: Array, top: float, place: str, white: int | None = None) -> Tensor:
    """uint8 (N, C, H, W). Whole numbers are 0..255; floats are 0..1 when `top` is at most 1, else 0..255.

    In numbers of 16 bits `white` becomes 255, as in picture files; unless it is given, `top` says what is white.
    """
    if is_wide(pixels):
        return torch.from_numpy(np.ascontiguousarray(narrowing(white or white_for(top))[pixels]))
    if top > 255:
        raise ToolError(f"{place}: the largest value is {top:g}; store pictures as 0..255, uint16 or floats in 0..1")
    if pixels.dtype.kind == "f":
        wide = pixels.astype(np.promote_types(pixels.dtype, np.float32))
        pixels = np.rint(wide * 255 if white_of(top, place) == 1 else wide)
    whole: NDArray[np.uint8] = np.ascontiguousarray(pixels, dtype=np.uint8)
    return torch.from_numpy(whole)


def _raise_at(bad: NDArray[np.bool_], what: str, place: str) -> None:
    rows = np.flatnonzero(bad.reshape(len(bad), -1).any(axis=1))
    if len(rows):
        raise ToolError(f"{place}: row {rows[0]} {what} ({len(rows)} such rows)")
