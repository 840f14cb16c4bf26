"""Recolours a batch of pictures, uint8 (M, C, H, W), by one amount per picture (M,).

Each operation is Pillow's (ImageOps, ImageEnhance), done to a batch with every picture's own amount. Without
exactly three channels there is no RGB: `Color` leaves such pictures alone, `Contrast` takes all values' mean.
"""

from collections.abc import Callable

import torch
from torch import Tensor

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
