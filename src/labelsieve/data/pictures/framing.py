"""How a picture of any size becomes what a pretrained network was made to see: resized, and cut or padded around its middle.

The numbers are those of timm's own transforms for evaluation, computed with Pillow alone. Normalising comes later, on the device.
"""

from dataclasses import asdict, dataclass
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from labelsieve.data.pictures.decode import WHITEST, upright

MODES = ("center", "squash", "border")
INTERPOLATIONS = {
    "nearest": Image.Resampling.NEAREST,
    "bilinear": Image.Resampling.BILINEAR,
    "bicubic": Image.Resampling.BICUBIC,
    "box": Image.Resampling.BOX,
    "hamming": Image.Resampling.HAMMING,
    "lanczos": Image.Resampling.LANCZOS,
}
LARGEST = 2**24  # pixels that a picture is resized to as a whole


@dataclass(frozen=True)
class Frame:
    """What comes out is (3, height, width); before it is cut, the picture is brought to `scaled` (height, width).

    "center": its shorter side is, and the long one keeps its share; "squash": both sides are; "border": its longer side is,
    and what is missing has the colour `fill`.
    """

    height: int
    width: int
    scaled: tuple[int, int]
    mode: str = "center"
    interpolation: str = "bicubic"
    fill: tuple[int, int, int] = (0, 0, 0)

    def facts(self) -> dict[str, Any]:
        """As JSON holds it."""
        return asdict(self) | {"scaled": list(self.scaled), "fill": list(self.fill)}

    @classmethod
    def of(cls, facts: dict[str, Any]) -> "Frame":
        return cls(**facts | {"scaled": tuple(facts["scaled"]), "fill": tuple(facts["fill"])})


def resized(width: int, height: int, frame: Frame) -> tuple[int, int]:
    """The (width, height) that a picture is brought to before it is cut."""
    tall, wide = frame.scaled
    if frame.mode == "squash":
        return wide, tall
    if frame.mode == "center" and tall == wide:
        short, long = min(width, height), max(width, height)
        other = int(tall * long / short)
        return (tall, other) if width <= height else (other, tall)
    ratios = height / tall, width / wide
    ratio = max(ratios) if frame.mode == "border" else min(ratios)
    return max(1, round(width / ratio)), max(1, round(height / ratio))


def framed(picture: Image.Image, frame: Frame) -> NDArray[np.uint8]:
    """uint8 (3, H, W) of an RGB picture."""
    (wide, tall), method = resized(*picture.size, frame), _interpolation(frame)
    left, top = round((wide - frame.width) / 2), round((tall - frame.height) / 2)
    if wide * tall > LARGEST and left >= 0 and top >= 0:
        # All of a long strip would fill the memory; of the part that is kept, a value may be rounded otherwise.
        across, down = picture.width / wide, picture.height / tall
        box = left * across, top * down, (left + frame.width) * across, (top + frame.height) * down
        small = picture.resize((frame.width, frame.height), method, box=box)
    else:
        small = _cut(picture.resize((wide, tall), method), frame)
    return np.ascontiguousarray(np.asarray(small).transpose(2, 0, 1))


def _cut(picture: Image.Image, frame: Frame) -> Image.Image:
    """The middle, padded where the picture is smaller."""
    if picture.width < frame.width or picture.height < frame.height:
        picture = _padded(picture, frame)
    left, top = round((picture.width - frame.width) / 2), round((picture.height - frame.height) / 2)
    return picture.crop((left, top, left + frame.width, top + frame.height))


def _padded(picture: Image.Image, frame: Frame) -> Image.Image:
    whole = Image.new("RGB", (max(picture.width, frame.width), max(picture.height, frame.height)), frame.fill)
    whole.paste(picture, (max(0, frame.width - picture.width) // 2, max(0, frame.height - picture.height) // 2))
    return whole


def _interpolation(frame: Frame) -> Image.Resampling:
    """timm resizes to what is not square by the shorter side, and then always bilinearly."""
    if frame.mode == "center" and frame.scaled[0] != frame.scaled[1]:
        return Image.Resampling.BILINEAR
    return INTERPOLATIONS[frame.interpolation]


def framed_file(stream: BinaryIO, frame: Frame, white: int = WHITEST) -> NDArray[np.uint8]:
    """The same of a picture file, by the rules of `decode`. A large JPEG is read at a half, a quarter or an eighth.

    It is then still at least twice as large as it will be: what comes out differs by a step of grey here and there.
    """
    return framed(upright(stream, 2 * max(frame.scaled), "RGB", white), frame)
