"""Every recolouring against Pillow's own, on real pictures: no pixel more than one grey level away."""

import numpy as np
import pytest
import torch
from PIL import Image, ImageEnhance, ImageOps
from torch import Tensor

from labelsieve.data.augment.edits import TONAL

from .pictures import BATCHES, from_pillow, patches, to_pillow

FACTORS = (0.0, 0.1, 0.3, 0.7, 1.0, 1.3, 1.6, 1.9, 3.0)
CASES = [
    *(("AutoContrast", 0.0), ("Invert", 0.0), ("Equalize", 0.0)),
    *(("Solarize", threshold) for threshold in (0.0, 1.0, 28.4, 113.8, 128.0, 227.6, 255.0, 256.0)),
    *(("Posterize", bits) for bits in (4.0, 5.0, 6.0, 7.0, 8.0, 1.0)),
    *((name, factor) for name in ("Contrast", "Color", "Brightness", "Sharpness") for factor in FACTORS),
]


def with_pillow(operation: str, image: Image.Image, amount: float) -> Image.Image:
    match operation:
        case "AutoContrast":
            return ImageOps.autocontrast(image)
        case "Invert":
            return ImageOps.invert(image)
        case "Equalize":
            return ImageOps.equalize(image)
        case "Solarize":
            return ImageOps.solarize(image, amount)
        case "Posterize":
            return ImageOps.posterize(image, int(amount))
    return getattr(ImageEnhance, operation)(image).enhance(amount)


def differences(operation: str, amount: float, images: Tensor) -> Tensor:
    ours = TONAL[operation](images, torch.full((len(images),), amount))
    theirs = torch.stack([from_pillow(with_pillow(operation, to_pillow(image), amount)) for image in images])
    assert ours.dtype == torch.uint8
    return (ours.int() - theirs.int()).abs()


@pytest.mark.parametrize("batch", BATCHES)
@pytest.mark.parametrize(("operation", "amount"), CASES)
def test_every_pixel_is_within_one_level_of_pillows(operation: str, amount: float, batch: str) -> None:
    difference = differences(operation, amount, BATCHES[batch])
    assert difference.max() <= 1
    # Pillow's AutoContrast can round to just below a whole number; all else is the same to the last bit.
    assert difference.float().mean() < (0.02 if operation == "AutoContrast" else 1e-4)


@pytest.mark.parametrize("operation", TONAL)
def test_flat_pictures_are_as_with_pillow(operation: str) -> None:
    levels = torch.tensor([0, 1, 77, 254, 255], dtype=torch.uint8)
    flat = levels[:, None, None, None].expand(-1, 3, 32, 32).contiguous()
    assert differences(operation, 1.0, flat).max() == 0


def test_equalize_is_pillows_on_pictures_with_few_levels() -> None:
    few = (BATCHES["rgb 32x32"] >> 6) << 6
    assert differences("Equalize", 0.0, few).max() == 0


def test_every_picture_has_its_own_amount() -> None:
    images = BATCHES["rgb 32x32"][:1].expand(3, -1, -1, -1)
    for operation, amounts in {"Brightness": (0.5, 1.0, 1.5), "Solarize": (0.0, 100.0, 256.0)}.items():
        together = TONAL[operation](images, torch.tensor(amounts))
        alone = [from_pillow(with_pillow(operation, to_pillow(images[0]), amount)) for amount in amounts]
        assert torch.equal(together, torch.stack(alone))


@pytest.mark.parametrize("channels", [1, 2, 4])
def test_color_leaves_pictures_alone_that_are_not_rgb(channels: int) -> None:
    images = patches(5, 16, 16, channels=4)[:, :channels]
    assert torch.equal(TONAL["Color"](images, torch.full((5,), 0.1)), images)


def test_contrast_of_four_channels_is_about_the_mean_of_all_values() -> None:
    images = patches(6, 16, 16, channels=4)
    grey = TONAL["Contrast"](images, torch.zeros(6))
    means = [int(np.floor(image.double().mean().item() + 0.5)) for image in images]
    assert [sorted(set(image.flatten().tolist())) for image in grey] == [[mean] for mean in means]


@pytest.mark.parametrize("size", [(1, 1), (2, 5), (5, 2)])
@pytest.mark.parametrize("operation", TONAL)
def test_tiny_pictures_keep_their_shape(operation: str, size: tuple[int, int]) -> None:
    images = patches(3, *size)
    assert TONAL[operation](images, torch.full((3,), 2.0)).shape == images.shape
