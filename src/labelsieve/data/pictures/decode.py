"""Decodes one picture file into uint8 (C, S, S), or raises a `PictureError` that says why not. Needs no torch.

Rules: the first frame; EXIF orientation applied; alpha laid on white; CMYK and the rest converted to RGB; float grey is 0..1 if
nothing is above 1, else 0..255. Cameras and scanners often store 10, 12 or 14 bits in 16, and brightness means something in a
data set: in 16-bit grey, the fewest usual bits that hold all pictures of the set are its one white, which becomes 255.
"""

import warnings
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray
from PIL import (
    BmpImagePlugin,
    GifImagePlugin,
    Image,
    JpegImagePlugin,
    PngImagePlugin,
    PpmImagePlugin,
    TiffImagePlugin,
    UnidentifiedImageError,
    WebPImagePlugin,
)

from labelsieve.doors import Refusal

DEPTHS = (8, 10, 12, 14, 16)
WHITEST = 65535
FLAG = "--set pictures.white=N"


def white_for(top: float) -> int:
    """The value that is white where `top` is the largest."""
    return next((2**bits - 1 for bits in DEPTHS if top < 2**bits), WHITEST)


@lru_cache(maxsize=8)
def narrowing(white: int) -> NDArray[np.uint8]:
    """(65536,) the byte that each value becomes: 0 stays, `white` and all above become 255."""
    return np.clip(np.rint(np.arange(WHITEST + 1) / (white / 255)), 0, 255).astype(np.uint8)


def counted(tops: Iterable[float]) -> tuple[int, ...]:
    """How many pictures need each of `DEPTHS`, by their largest values; empty without any."""
    found = [white_for(top) for top in tops]
    return tuple(found.count(2**bits - 1) for bits in DEPTHS) if found else ()


def common_white(counts: Sequence[int]) -> int:
    """The white that holds all of the counted pictures; without any, that of 16 bits."""
    return max((2**bits - 1 for bits, count in zip(DEPTHS, counts) if count), default=WHITEST)


def about_white(counts: Sequence[int], white: int) -> tuple[str, ...]:
    """What should be said of the counted pictures where `white` is white."""
    total, said = sum(counts), []
    low = sum(count for bits, count in zip(DEPTHS, counts) if 16 * 2**bits <= white + 1)
    over = sum(count for bits, count in zip(DEPTHS[1:], counts[1:]) if 2 ** (bits - 2) > white)
    if total and white != WHITEST:
        said.append(f"{total:,} pictures have 16 bits: {white:,} is white in them, by their largest value or as said ({FLAG})")
    if low:
        said.append(
            f"{low:,} of {total:,} pictures of 16 bits use less than 1/16 of the range and become nearly black; if they have "
            f"fewer bits than others, bring all to one range, or say what is white: {FLAG}"
        )
    if over:
        said.append(f"{over:,} of {total:,} pictures of 16 bits have values above {white:,}, which become white too ({FLAG})")
    return tuple(said)


# Formats that Pillow decodes by itself; those that start other programs (EPS) stay out.
PLUGINS = (
    JpegImagePlugin.JpegImageFile,
    PngImagePlugin.PngImageFile,
    WebPImagePlugin.WebPImageFile,
    BmpImagePlugin.BmpImageFile,
    GifImagePlugin.GifImageFile,
    TiffImagePlugin.TiffImageFile,
    PpmImagePlugin.PpmImageFile,
)
FORMATS = tuple(plugin.format for plugin in PLUGINS)
SUFFIXES = frozenset(
    [".jpg", ".jpeg", ".jpe", ".jfif", ".png", ".webp", ".bmp", ".dib", ".gif", ".tif", ".tiff", ".ppm", ".pgm", ".pbm"]
)
WIDE_MODES = frozenset(("I;16", "I;16B", "I;16L", "I;16N", "I"))
GREY_MODES = WIDE_MODES | {"1", "L", "LA", "La", "F"}
PART = 2**20  # pixels that are widened at a time
ORIENTATION = 0x0112
GONE = "it was gone when it was to be read"
FORBIDDEN = "there is no permission to read it"
NO_MEMORY = "too large for the memory"
CRASHED = "the decoder crashed on it"
# The file itself may be fine: another run tries again.
PASSING = frozenset((GONE, FORBIDDEN, NO_MEMORY, CRASHED))
TURNS = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}


class PictureError(Exception):
    """Why one picture cannot be read, as half a sentence. It never ends a run by itself."""


def open_picture(stream: BinaryIO) -> Image.Image:
    """The picture with its header read and its pixels not; refused when it has more pixels than Pillow's limit."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.simplefilter("error", Image.DecompressionBombWarning)
        return Image.open(stream, formats=FORMATS)


def orientation(picture: Image.Image) -> int:
    """1..8 as in EXIF. A picture whose EXIF block is damaged is still a picture: 1."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return int(picture.getexif().get(ORIENTATION, 1))
    except Exception:  # Pillow's parsers fail on damaged blocks in many ways
        return 1


def pixels(stream: BinaryIO, size: int, channels: int, fit: str, white: int = WHITEST) -> NDArray[np.uint8]:
    """uint8 (C, S, S). "crop": the shorter side becomes S and the middle is kept; "squash": both become S."""
    plain = upright(stream, 2 * size, "L" if channels == 1 else "RGB", white)
    width, height = plain.size
    side = min(width, height)
    left, top = (width - side) // 2, (height - side) // 2
    box = (left, top, left + side, top + side) if fit == "crop" else (0, 0, width, height)
    small = np.asarray(plain.resize((size, size), Image.Resampling.BICUBIC, box=box))
    return np.ascontiguousarray(small[None] if channels == 1 else small.transpose(2, 0, 1))


def upright(stream: BinaryIO, least: int, mode: str, white: int = WHITEST) -> Image.Image:
    """The whole picture in `mode` ("L" or "RGB"), turned as it is meant. Of a large JPEG both sides may be halved, never below
    `least`: it can be decoded at 1/2, 1/4 or 1/8, which is much faster."""
    picture = open_picture(stream)
    picture.draft(None, (least, least))
    turned = orientation(picture)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        picture.load()
        plain = eight_bit(picture, mode, white)
    return plain.transpose(TURNS[turned]) if turned in TURNS else plain


def eight_bit(picture: Image.Image, mode: str, white: int = WHITEST) -> Image.Image:
    """The loaded picture in `mode` ("L" or "RGB"), by the rules above."""
    if picture.mode in WIDE_MODES:
        table = narrowing(white)
        picture = _narrowed(np.asarray(picture), lambda part: table[np.clip(part, 0, WHITEST)])
    elif picture.mode == "F":
        values = np.asarray(picture)
        scale = 255 if not np.any(values > 1) else 1
        picture = _narrowed(values, lambda part: np.clip(np.rint(np.nan_to_num(part.astype(np.float64)) * scale), 0, 255))
    elif picture.mode in ("RGBA", "LA", "PA", "RGBa", "La") or "transparency" in picture.info:
        if picture.mode == "La":
            picture = picture.convert("LA")
        picture = picture.convert("RGBA")
        paper = Image.new("RGBA", picture.size, (255, 255, 255, 255))
        picture = Image.alpha_composite(paper, picture)
    return picture.convert(mode)


def _narrowed(values: NDArray[Any], convert: Callable[[NDArray[Any]], NDArray[Any]]) -> Image.Image:
    """Values (H, W) as bytes, a part at a time: of the most pixels allowed, wide copies of all would take gigabytes."""
    flat, found = values.reshape(-1), np.empty(values.size, np.uint8)
    for start in range(0, len(flat), PART):
        found[start : start + PART] = convert(flat[start : start + PART])
    return Image.fromarray(found.reshape(values.shape))


def reason(error: BaseException) -> str:
    """Half a sentence for what went wrong with one picture."""
    if isinstance(error, PictureError):
        return str(error)
    if isinstance(error, FileNotFoundError):
        return GONE
    if isinstance(error, Refusal):
        return str(error.strerror)
    if isinstance(error, PermissionError):
        return FORBIDDEN
    if isinstance(error, (Image.DecompressionBombError, Image.DecompressionBombWarning)):
        return f"more than {Image.MAX_IMAGE_PIXELS:,} pixels: refused as a decompression bomb"
    if isinstance(error, UnidentifiedImageError):
        return "empty, damaged, or not in a format that is read (JPEG, PNG, WebP, BMP, GIF, TIFF, PPM)"
    if isinstance(error, MemoryError):
        return NO_MEMORY
    said = " ".join(str(error).split())[:160]
    if isinstance(error, (OSError, EOFError)) and ("truncated" in said.lower() or "EOF" in said or not said):
        return f"cut short ({said or 'the data end early'})"
    return f"damaged ({said or type(error).__name__})"


def top_of(picture: Image.Image) -> dict[str, int]:
    """{"top": the largest value} of 16-bit grey, for which it has to be loaded; nothing of others."""
    return {"top": int(np.asarray(picture).max(initial=0))} if picture.mode in WIDE_MODES else {}


def header(picture: Image.Image) -> dict[str, Any]:
    """What is known before decoding: format, mode, and width and height as seen after turning."""
    width, height = picture.size
    if orientation(picture) >= 5:
        width, height = height, width
    return {"format": picture.format or "?", "mode": picture.mode, "width": width, "height": height}
