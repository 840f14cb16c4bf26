"""Real pictures to test on: scikit-learn's two photographs cut into patches, and its handwritten digits."""

from functools import cache

import numpy as np
import torch
from PIL import Image
from sklearn.datasets import load_digits, load_sample_images
from torch import Tensor


@cache
def photographs() -> list[np.ndarray]:
    """china.jpg and flower.jpg, uint8 (427, 640, 3) each."""
    return list(load_sample_images().images)


def patches(count: int, height: int, width: int, channels: int = 3) -> Tensor:
    """Patches of the photographs, uint8 (count, channels, height, width), from all over them."""
    rng = np.random.default_rng(0)
    cut = []
    for number in range(count):
        photograph = photographs()[number % 2]
        top = rng.integers(photograph.shape[0] - height)
        left = rng.integers(photograph.shape[1] - width)
        patch = photograph[top : top + height, left : left + width]
        cut.append(np.asarray(Image.fromarray(patch).convert("L"))[:, :, None] if channels == 1 else patch)
    images = torch.from_numpy(np.stack(cut)).permute(0, 3, 1, 2).contiguous()
    return images if channels in (1, 3) else torch.cat([images, images[:, :1].flip(-1)], dim=1)


def digits(count: int) -> Tensor:
    """Handwritten digits, uint8 (count, 1, 8, 8), 0..255."""
    images = load_digits().images[:count]
    return torch.from_numpy(np.round(images / 16 * 255).astype(np.uint8))[:, None]


def to_pillow(image: Tensor) -> Image.Image:
    """A picture (C, H, W) with one or three channels, as Pillow has it."""
    array = image.permute(1, 2, 0).numpy()
    return Image.fromarray(np.ascontiguousarray(array[:, :, 0] if array.shape[2] == 1 else array))


def from_pillow(image: Image.Image) -> Tensor:
    """The picture (C, H, W)."""
    array = np.array(image)
    return torch.from_numpy(array[:, :, None] if array.ndim == 2 else array).permute(2, 0, 1)


BATCHES = {
    "rgb 32x32": patches(32, 32, 32),
    "rgb 20x37": patches(24, 20, 37),
    "grey 28x28": patches(32, 28, 28, channels=1),
    "digits 8x8": digits(32),
}
