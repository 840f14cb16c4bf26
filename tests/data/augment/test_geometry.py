"""Every move against Pillow's own, on real pictures."""

import numpy as np
import pytest
import torch
from PIL import Image
from torch import Tensor

from labelsieve.data.augment.edits import fixed_maps, warp

from .pictures import BATCHES, from_pillow, patches, to_pillow

PILLOW = {"nearest": Image.Resampling.NEAREST, "bilinear": Image.Resampling.BILINEAR}
CASES = [
    *(("ShearX", shear) for shear in (0.0333, 0.1667, 0.3, -0.0333, -0.2667, -0.3)),
    *(("ShearY", shear) for shear in (0.0667, 0.2333, -0.1, -0.3)),
    *(("TranslateX", pixels) for pixels in (0.0, 1.0, 4.8338, 14.5015, -2.4, -12.89, 50.0)),
    *(("TranslateY", pixels) for pixels in (1.0, 4.8338, 14.5015, -0.5, -14.5015)),
    *(("Rotate", degrees) for degrees in (3.3333, 6.6667, 16.0, 30.0, -6.6667, -26.6667, -30.0, 0.0)),
]


def with_pillow(operation: str, image: Image.Image, amount: float, fill: int, resample: str) -> Image.Image:
    filled = fill if image.mode == "L" else (fill, fill, fill)
    if operation == "Rotate":
        return image.rotate(amount, PILLOW[resample], fillcolor=filled)
    matrix = {
        "ShearX": (1, amount, 0, 0, 1, 0),
        "ShearY": (1, 0, 0, amount, 1, 0),
        "TranslateX": (1, 0, amount, 0, 1, 0),
        "TranslateY": (1, 0, 0, 0, 1, amount),
    }[operation]
    return image.transform(image.size, Image.Transform.AFFINE, matrix, PILLOW[resample], fillcolor=filled)


def moved(operation: str, amount: float, images: Tensor, fill: int, resample: str) -> Tensor:
    count = len(images)
    maps = fixed_maps(np.array([operation] * count), np.full(count, amount), *images.shape[2:])
    return warp(images, torch.from_numpy(maps), fill, resample)


def differences(operation: str, amount: float, images: Tensor, fill: int, resample: str) -> Tensor:
    ours = moved(operation, amount, images, fill, resample)
    theirs = [from_pillow(with_pillow(operation, to_pillow(image), amount, fill, resample)) for image in images]
    assert ours.dtype == torch.uint8
    return (ours.int() - torch.stack(theirs).int()).abs()


@pytest.mark.parametrize("batch", BATCHES)
@pytest.mark.parametrize(("operation", "amount"), CASES)
def test_the_nearest_pixel_is_pillows(operation: str, amount: float, batch: str) -> None:
    """Exactly, all of them: both use 16.16 fixed point, and none of these shifts ends on a pixel's edge."""
    assert differences(operation, amount, BATCHES[batch], 128, "nearest").max() == 0


@pytest.mark.parametrize("batch", BATCHES)
@pytest.mark.parametrize(("operation", "amount"), CASES)
def test_bilinear_is_within_one_level_of_pillows(operation: str, amount: float, batch: str) -> None:
    """Everywhere, the border included; and most pixels are the same."""
    difference = differences(operation, amount, BATCHES[batch], 0, "bilinear")
    assert difference.max() <= 1
    assert difference.float().mean() < 0.15


@pytest.mark.parametrize("resample", PILLOW)
def test_nothing_moves_without_an_amount(resample: str) -> None:
    images = BATCHES["rgb 20x37"]
    for operation in ("ShearX", "ShearY", "TranslateX", "TranslateY", "Rotate"):
        assert torch.equal(moved(operation, 0.0, images, 9, resample), images)


@pytest.mark.parametrize("resample", PILLOW)
def test_outside_is_filled(resample: str) -> None:
    assert (moved("TranslateX", 40.0, patches(3, 32, 32), 77, resample) == 77).all()


def test_pictures_move_on_their_own() -> None:
    names, amounts = np.array(["Rotate", "ShearX", "TranslateY"]), np.array([10.0, -0.2, 3.0])
    images = patches(3, 24, 30)
    together = warp(images, torch.from_numpy(fixed_maps(names, amounts, 24, 30)), 128, "nearest")
    for row, (name, amount) in enumerate(zip(names, amounts, strict=True)):
        assert torch.equal(together[row : row + 1], moved(name, amount, images[row : row + 1], 128, "nearest"))


def test_four_channels_move_together() -> None:
    images = patches(4, 20, 20, channels=4)
    turned = moved("Rotate", 12.0, images, 0, "bilinear")
    for channel in range(4):
        alone = moved("Rotate", 12.0, images[:, channel : channel + 1], 0, "bilinear")
        assert torch.equal(turned[:, channel : channel + 1], alone)
