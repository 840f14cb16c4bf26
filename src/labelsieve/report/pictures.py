"""Turns a picture, uint8 (C, H, W), into a PNG or JPEG inside a `data:` address, to be part of the page."""

import base64
from io import BytesIO

import numpy as np
from PIL import Image

from labelsieve.errors import UsageError
from labelsieve.report.markup import escape

# Pictures of at most so many pixels a side are shown with crisp pixels, larger ones smoothly.
TINY = 48


def thumbnail(image: np.ndarray, at_most: int = 192) -> str:
    """A `data:` address: grey for one channel, colour for three; else the first three, or the first.

    Pixels of tiny pictures are kept as they are, and the page enlarges them. Others are scaled down where a side is longer
    than `at_most`, and stored as PNG or JPEG, whichever is smaller.
    """
    if image.dtype != np.uint8 or image.ndim != 3 or 0 in image.shape:
        raise UsageError(f"a picture is uint8 (C, H, W) and not empty; this one is {image.dtype} {image.shape}")
    pixels = image[:3].transpose(1, 2, 0) if len(image) >= 3 else image[0]
    picture = Image.fromarray(np.ascontiguousarray(pixels))
    if max(picture.size) > at_most:
        picture.thumbnail((at_most, at_most), Image.Resampling.LANCZOS)
    kinds = ("png",) if max(image.shape[1:]) <= TINY else ("png", "jpeg")
    kind, content = min(((kind, _encoded(picture, kind)) for kind in kinds), key=lambda found: len(found[1]))
    return f"data:image/{kind};base64," + base64.b64encode(content).decode("ascii")


def _encoded(picture: Image.Image, kind: str) -> bytes:
    buffer = BytesIO()
    picture.save(buffer, format=kind, optimize=True, **({"quality": 85} if kind == "jpeg" else {}))
    return buffer.getvalue()


def picture(image: np.ndarray, words: str) -> str:
    """The `<img>`, with words for those who do not see it."""
    height, width = image.shape[1:]
    klass = "picture tiny" if max(height, width) <= TINY else "picture"
    size = f'width="{width}" height="{height}"'
    return f'<img class="{klass}" src="{thumbnail(image)}" alt="{escape(words)}" {size}>'
