"""Pictures are framed as timm's own transforms do it, to the last bit; and some by numbers worked out by hand."""

import io
import math
from types import ModuleType

import numpy as np
import pytest
from PIL import Image

from backbones.photos import photo
from labelsieve.data.pictures.framing import Frame, framed, framed_file, resized

SIZES = [(500, 375), (375, 500), (224, 224), (100, 33), (1000, 301), (7, 5), (37, 300)]
WAYS = [(0.875, 224, 224), (1.0, 96, 96), (0.95, 120, 100), (0.9, 64, 64)]


@pytest.mark.parametrize("mode", ["center", "squash", "border"])
@pytest.mark.parametrize("size", SIZES)
def test_a_frame_is_timms_own_transform(timm: ModuleType, mode: str, size: tuple[int, int]) -> None:
    from timm.data.transforms_factory import transforms_imagenet_eval

    picture, mean = photo(size[0], size), (0.485, 0.456, 0.406)
    for share, height, width in WAYS:
        for way in ("bicubic", "bilinear"):
            told = {"crop_pct": share, "crop_mode": mode, "interpolation": way, "mean": mean, "normalize": False}
            theirs = transforms_imagenet_eval((height, width), **told)(picture).numpy()
            scaled = (math.floor(height / share), math.floor(width / share))
            ours = framed(picture, Frame(height, width, scaled, mode, way, (124, 116, 104)))
            assert (ours == theirs).all(), (share, height, width, way)


def test_sizes_by_hand() -> None:
    square = Frame(224, 224, (256, 256))
    assert resized(500, 375, square) == (341, 256)  # 256 * 500 / 375 = 341.33, cut off
    assert resized(375, 500, square) == (256, 341)
    assert resized(500, 375, Frame(224, 224, (256, 256), "squash")) == (256, 256)
    assert resized(500, 375, Frame(224, 224, (224, 224), "border")) == (224, 168)


def test_the_middle_is_kept_and_a_border_is_filled() -> None:
    pixels = np.zeros((4, 8, 3), np.uint8)
    pixels[:, 2:6] = 200
    picture = Image.fromarray(pixels)
    assert (framed(picture, Frame(4, 4, (4, 4))) == 200).all()
    bordered = framed(picture, Frame(8, 8, (8, 8), "border", "nearest", (1, 2, 3)))
    assert bordered[:, :2].reshape(3, -1).std(1).max() == 0 and bordered[:, 0, 0].tolist() == [1, 2, 3]
    assert (bordered[:, 2:6, 2:6] == 200).all()


def test_a_long_strip_does_not_fill_the_memory() -> None:
    """Its shorter side brought to 224, it would have a million million pixels."""
    strip = Image.fromarray(np.random.default_rng(0).integers(0, 255, (2, 60_000, 3)).astype(np.uint8))
    assert framed(strip, Frame(224, 224, (256, 256))).shape == (3, 224, 224)


def test_a_large_jpeg_is_read_smaller_and_looks_the_same() -> None:
    stream = io.BytesIO()
    photo(3, (2400, 1800)).save(stream, "JPEG", quality=95)
    frame = Frame(64, 64, (72, 72))
    whole = framed(Image.open(stream).convert("RGB"), frame).astype(int)
    stream.seek(0)
    assert np.abs(framed_file(stream, frame) - whole).mean() < 1


def test_a_turned_photo_is_upright() -> None:
    picture, stream = photo(5, (60, 40)), io.BytesIO()
    tags = Image.Exif()
    tags[0x0112] = 6
    picture.transpose(Image.Transpose.ROTATE_90).save(stream, "PNG", exif=tags)
    stream.seek(0)
    frame = Frame(32, 32, (32, 32))
    assert (framed_file(stream, frame) == framed(picture, frame)).all()
