"""What strong views do to a batch of pictures, uint8 (M, C, H, W): shear, shift and turn, or recolour, each by its own amount.

A map leads from a pixel of the result back to the place in the picture it is taken from, as in Pillow. It is held in 16.16 fixed
point, as Pillow does for the nearest pixel: whole numbers are the same on every device. Recolouring is Pillow's, too (ImageOps,
ImageEnhance). Without exactly three channels there is no RGB: `Color` leaves such pictures alone, `Contrast` takes all values'
mean.
"""

from collections.abc import Callable, Sequence

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


Tone = Callable[[Tensor, Tensor], Tensor]


def auto_contrast(images: Tensor, amount: Tensor) -> Tensor:
    """Stretches each channel so that its darkest pixel is 0 and its brightest 255; a flat channel stays.

    The quotient is floored exactly; Pillow's double arithmetic can fall one level short of a whole number.
    """
    low, high = images.amin((2, 3), keepdim=True), images.amax((2, 3), keepdim=True)
    flat = high == low
    low, high = low.masked_fill(flat, 0), high.masked_fill(flat, 255)
    return _bytes((images - low).float().mul_(255.0).div_((high - low).float()))


def invert(images: Tensor, amount: Tensor) -> Tensor:
    """255 - pixel."""
    return images.bitwise_not()


def equalize(images: Tensor, amount: Tensor) -> Tensor:
    """Spreads each channel's grey levels evenly, by Pillow's table; too few pixels for a step: unchanged."""
    pixels = images.flatten(2).to(torch.int64)
    counts = torch.zeros((*images.shape[:2], 256), dtype=torch.int32, device=images.device)
    counts.scatter_add_(2, pixels, torch.ones((), dtype=torch.int32, device=images.device).expand(pixels.shape))
    brightest = counts.gather(2, pixels.amax(2, keepdim=True))
    step = (pixels.shape[2] - brightest).div_(255, rounding_mode="floor")
    # Pillow counts the pixels darker than a level, starting from half a step.
    darker = counts.cumsum(2, dtype=torch.int32).sub_(counts).add_(step // 2)
    table = darker.div_(step.clamp_min(1), rounding_mode="floor").clamp_max_(255).to(torch.uint8)
    unchanged = torch.arange(256, dtype=torch.uint8, device=images.device)
    return torch.where(step > 0, table, unchanged).gather(2, pixels).view(images.shape)


def solarize(images: Tensor, amount: Tensor) -> Tensor:
    """Inverts the pixels that are not below the threshold `amount` (0..256)."""
    last_kept = _per_picture(amount.ceil().to(torch.int16) - 1)
    # The sign of the difference, spread over all bits, masks what to invert: faster than a comparison.
    inverted = (last_kept - images) >> 15
    return images ^ inverted.to(torch.uint8)


def posterize(images: Tensor, amount: Tensor) -> Tensor:
    """Keeps the `amount` (1..8) highest bits of every pixel."""
    dropped = _per_picture((8 - amount).to(torch.uint8))
    return (images >> dropped) << dropped


def contrast(images: Tensor, amount: Tensor) -> Tensor:
    """Moves pixels away from the picture's mean grey, by the factor `amount`."""
    grey = _luma(images) if images.shape[1] == 3 else images
    size = max(1, grey[0].numel()) if len(grey) else 1
    total = grey.sum((1, 2, 3), dtype=torch.int64)
    mean = (2 * total + size).div(2 * size, rounding_mode="floor")
    return _blend(_per_picture(mean.float()), images, amount)


def color(images: Tensor, amount: Tensor) -> Tensor:
    """Moves RGB pixels away from their own grey, by the factor `amount`; other pictures stay as they are."""
    return _blend(_luma(images).float(), images, amount) if images.shape[1] == 3 else images


def brightness(images: Tensor, amount: Tensor) -> Tensor:
    """Multiplies pixels by the factor `amount`."""
    return _bytes(images.float().mul_(_per_picture(amount)).clamp_(0.0, 255.0))


def sharpness(images: Tensor, amount: Tensor) -> Tensor:
    """Moves pixels away from the smoothed picture, by the factor `amount`; the edge stays, as in Pillow."""
    wide = images.to(torch.int16)
    rows = wide[:, :, :-2] + wide[:, :, 1:-1] + wide[:, :, 2:]
    around = rows[..., :-2] + rows[..., 1:-1] + rows[..., 2:]
    around.add_(wide[:, :, 1:-1, 1:-1], alpha=4)
    smooth = around.float().mul_(1 / 13).add_(0.5).floor_()
    sharp = images.clone()
    sharp[:, :, 1:-1, 1:-1] = _blend(smooth, images[:, :, 1:-1, 1:-1], amount)
    return sharp


TONAL: dict[str, Tone] = {
    "AutoContrast": auto_contrast,
    "Invert": invert,
    "Equalize": equalize,
    "Solarize": solarize,
    "Posterize": posterize,
    "Contrast": contrast,
    "Color": color,
    "Brightness": brightness,
    "Sharpness": sharpness,
}


def _per_picture(values: Tensor) -> Tensor:
    return values[:, None, None, None]


def _luma(images: Tensor) -> Tensor:
    """Pillow's grey of RGB pictures: int32 (M, 1, H, W)."""
    red, green, blue = images.to(torch.int32).split(1, dim=1)
    return (red * 19595 + green * 38470 + blue * 7471 + 0x8000) >> 16


def _blend(plain: Tensor, images: Tensor, factor: Tensor) -> Tensor:
    """plain + factor * (images - plain), cut to 0..255 and floored; `plain` is float and broadcasts."""
    return _bytes(images.float().sub_(plain).mul_(_per_picture(factor)).add_(plain).clamp_(0.0, 255.0))


def _bytes(values: Tensor) -> Tensor:
    """Floored to uint8, by way of int16: on a host the direct cast is five times slower."""
    return values.to(torch.int16).to(torch.uint8)
