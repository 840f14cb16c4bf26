"""Shears, shifts and turns a batch of pictures, uint8 (M, C, H, W), by a map for each picture.

A map leads from a pixel of the result back to the place in the picture it is taken from, as in Pillow. It is
held in 16.16 fixed point, as Pillow does for the nearest pixel: whole numbers are the same on every device.
"""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import pad

GEOMETRIC = ("ShearX", "ShearY", "TranslateX", "TranslateY", "Rotate")
RESAMPLE = ("nearest", "bilinear")

ONE = 1 << 16  # 1.0 in fixed point
WEIGHT_BITS = 11  # of a bilinear weight: 8 bits of grey and two weights stay below 2**31


def fixed_maps(operations: Sequence[str], amounts: np.ndarray, height: int, width: int) -> np.ndarray:
    """Fixed-point maps int32 (M, 6) of M geometric operations; amounts (M,): shear, pixels, or degrees.

    (a, b, c, d, e, f) takes pixel (x, y) of the result from column a x + b y + c and row d x + e y + f.
    The half pixel from corner to centre is in c and f already.
    """
    names = np.asarray(operations, dtype=object)
    maps = np.zeros((len(names), 6))
    maps[:, 0] = maps[:, 4] = 1.0
    for name, place in (("ShearX", 1), ("ShearY", 3), ("TranslateX", 2), ("TranslateY", 5)):
        chosen = names == name
        maps[chosen, place] = amounts[chosen]
    chosen = names == "Rotate"
    maps[chosen] = _rotations(amounts[chosen], height, width)
    maps[:, 2] += (maps[:, 0] + maps[:, 1]) / 2
    maps[:, 5] += (maps[:, 3] + maps[:, 4]) / 2
    return np.floor(maps * ONE + 0.5).astype(np.int32)


def _rotations(degrees: np.ndarray, height: int, width: int) -> np.ndarray:
    """Maps (M, 6) of counter-clockwise turns about the picture's middle."""
    angle = -np.radians(degrees)
    cos, sin = np.cos(angle), np.sin(angle)
    middle_x, middle_y = width / 2, height / 2
    shift_x = middle_x - cos * middle_x - sin * middle_y
    shift_y = middle_y + sin * middle_x - cos * middle_y
    return np.stack([cos, sin, shift_x, -sin, cos, shift_y], axis=1)


def warp(images: Tensor, maps: Tensor, fill: int, resample: str) -> Tensor:
    """Pictures (M, C, H, W) seen through maps (M, 6); what lies outside the picture becomes `fill`.

    "nearest" gives Pillow's pixels, but for a shift that ends within 2**-17 of a pixel's edge: Pillow does
    shifts in floating point. "bilinear" cuts Pillow's weights to 11 bits, so a grey level may differ by 1.
    """
    height, width = images.shape[2:]
    across = torch.arange(width, dtype=torch.int32, device=images.device)
    down = torch.arange(height, dtype=torch.int32, device=images.device)[:, None]
    a, b, c, d, e, f = maps[:, :, None, None].unbind(1)
    x = a * across + (b * down + c)
    y = d * across + (e * down + f)
    return _nearest(images, x, y, fill) if resample == "nearest" else _bilinear(images, x, y, fill)


def _nearest(images: Tensor, x: Tensor, y: Tensor, fill: int) -> Tensor:
    """The pixels that hold the fixed-point places (x, y), each (M, H, W).

    A frame of fill around the picture catches what lies outside: clamping is much faster than masking.
    """
    height, width = images.shape[2:]
    framed = pad(images, (1, 1, 1, 1), value=fill).flatten(2)
    column = (x >> 16).clamp_(-1, width).add_(1)
    row = (y >> 16).clamp_(-1, height).add_(1)
    return _take(framed, row * (width + 2) + column).view(images.shape)


def _bilinear(images: Tensor, x: Tensor, y: Tensor, fill: int) -> Tensor:
    """Mixes of the four pixels whose centres are around the places (x, y); edges are repeated."""
    count, channels, height, width = images.shape
    pixels = images.reshape(count, channels, -1)
    inside = _inside(x, width) & _inside(y, height)
    x, y = x - ONE // 2, y - ONE // 2
    left, right = (((x >> 16) + step).clamp_(0, width - 1) for step in (0, 1))
    upper, lower = (((y >> 16) + step).clamp_(0, height - 1).mul_(width) for step in (0, 1))
    weight_x, weight_y = (_fraction(place).view(count, 1, -1) for place in (x, y))
    above = _mix(_take(pixels, upper + left), _take(pixels, upper + right), weight_x)
    below = _mix(_take(pixels, lower + left), _take(pixels, lower + right), weight_x)
    mixed = (_mix(above, below, weight_y) >> 2 * WEIGHT_BITS).sub_(fill).mul_(inside.view(count, 1, -1))
    return mixed.add_(fill).to(torch.uint8).view(images.shape)


def _inside(place: Tensor, size: int) -> Tensor:
    """1 where a fixed-point place is in 0..size, 0 where not; int32."""
    return ((place >= 0) & (place < size * ONE)).to(torch.int32)


def _fraction(place: Tensor) -> Tensor:
    """The part behind the point, as an int32 weight in 0..2**11 - 1."""
    return (place & (ONE - 1)) >> (16 - WEIGHT_BITS)


def _mix(first: Tensor, second: Tensor, weight: Tensor) -> Tensor:
    """first + (second - first) * weight, scaled up by 2**11; int32."""
    first = first.to(torch.int32)
    return (first << WEIGHT_BITS) + (second.to(torch.int32) - first) * weight


def _take(pixels: Tensor, place: Tensor) -> Tensor:
    """pixels (M, C, P) at places (M, H, W), the same in all channels: (M, C, H * W)."""
    place = place.flatten(1)[:, None].to(torch.int64)
    return pixels.gather(2, place.expand(-1, pixels.shape[1], -1))
