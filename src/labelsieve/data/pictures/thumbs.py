"""Pictures as small as a postage stamp, by which copies are recognised that were saved or resized in another way."""

import base64
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from labelsieve.data.pictures.decode import TURNS, eight_bit, orientation

SIDE = 8
DRAFT = (32, 32)  # what a JPEG must at least be decoded to, for its thumb to be that of the whole picture


def thumb(picture: Image.Image) -> bytes:
    """SIDE x SIDE x 3 bytes of a loaded picture, turned as it is seen."""
    turned, plain = orientation(picture), eight_bit(picture, "RGB")
    if turned in TURNS:
        plain = plain.transpose(TURNS[turned])
    return plain.resize((SIDE, SIDE), Image.Resampling.BILINEAR).tobytes()


def as_text(found: bytes) -> str:
    """For an answer in JSON."""
    return base64.b64encode(found).decode("ascii")


def of_texts(texts: Iterable[str]) -> NDArray[np.uint8]:
    """(N, SIDE * SIDE * 3)."""
    return _table(map(base64.b64decode, texts))


def of_arrays(images: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """The same of uint8 (N, C, H, W); channels other than one or three are averaged."""
    return _table(thumb(_picture(one)) for one in images)


def _table(found: Iterable[bytes]) -> NDArray[np.uint8]:
    return np.frombuffer(b"".join(found), np.uint8).reshape(-1, SIDE * SIDE * 3)


def _picture(image: NDArray[np.uint8]) -> Image.Image:
    if len(image) == 3:
        return Image.fromarray(np.ascontiguousarray(image.transpose(1, 2, 0)))
    return Image.fromarray(image[0] if len(image) == 1 else image.mean(0).astype(np.uint8))
