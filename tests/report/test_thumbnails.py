"""Thumbnails decode to the pixels that went in."""

import base64
from io import BytesIO

import numpy as np
import pytest
from PIL import Image

from labelsieve.errors import UsageError
from labelsieve.report.page import picture, thumbnail


def decoded(address: str) -> Image.Image:
    kind, _, data = address.partition(";base64,")
    assert kind in ("data:image/png", "data:image/jpeg")
    return Image.open(BytesIO(base64.b64decode(data)))


def made(*shape: int) -> np.ndarray:
    return np.random.default_rng(3).integers(0, 256, shape, dtype=np.uint8)


def test_grey() -> None:
    image = made(1, 8, 5)
    seen = decoded(thumbnail(image))
    assert seen.mode == "L" and np.array_equal(np.asarray(seen), image[0])


def test_colour() -> None:
    image = made(3, 32, 32)
    seen = decoded(thumbnail(image))
    assert seen.mode == "RGB" and np.array_equal(np.asarray(seen), image.transpose(1, 2, 0))


@pytest.mark.parametrize(("channels", "shown"), [(2, 1), (4, 3), (7, 3)])
def test_other_numbers_of_channels(channels: int, shown: int) -> None:
    image = made(channels, 6, 6)
    seen = np.asarray(decoded(thumbnail(image)))
    assert np.array_equal(seen, image[0] if shown == 1 else image[:3].transpose(1, 2, 0))


def test_a_view_with_odd_strides() -> None:
    image = made(3, 16, 16)[:, ::-2, ::2]
    assert np.array_equal(np.asarray(decoded(thumbnail(image))), image.transpose(1, 2, 0))


def test_large_pictures_are_scaled_down_and_keep_their_shape() -> None:
    assert decoded(thumbnail(made(3, 600, 300))).size == (96, 192)


def test_photographs_are_stored_as_jpeg_and_flat_drawings_as_they_are() -> None:
    assert thumbnail(made(3, 100, 100)).startswith("data:image/jpeg")
    flat = np.zeros((3, 100, 100), np.uint8)
    flat[:, 20:40] = 200
    assert np.array_equal(np.asarray(decoded(thumbnail(flat))), flat.transpose(1, 2, 0))


def test_small_pictures_have_crisp_pixels_and_words() -> None:
    assert 'class="picture tiny"' in picture(made(1, 8, 8), 'a "7"')
    assert 'alt="a &quot;7&quot;"' in picture(made(1, 8, 8), 'a "7"')
    assert 'class="picture"' in picture(made(1, 64, 64), "x")


@pytest.mark.parametrize("image", [np.zeros((8, 8), np.uint8), np.zeros((1, 8, 8)), np.zeros((3, 0, 8), np.uint8)])
def test_what_is_no_picture_is_refused(image: np.ndarray) -> None:
    with pytest.raises(UsageError, match="uint8"):
        thumbnail(image)
