"""Encodes a picture as the bytes that a browser shows."""

from io import BytesIO

from PIL import Image

from labelsieve.report.pictures import TINY

CHANGED = "the data have changed since the run, so no pictures are shown"


def encode(picture: Image.Image, at_most: int) -> tuple[bytes, str]:
    """(bytes, media type): PNG for tiny pictures, whose pixels the page enlarges; JPEG for the rest, `at_most` a side."""
    buffer = BytesIO()
    if max(picture.size) <= TINY:
        picture.save(buffer, format="png")
        return buffer.getvalue(), "image/png"
    if max(picture.size) > at_most:
        picture.thumbnail((at_most, at_most), Image.Resampling.LANCZOS, reducing_gap=2.0)
    picture.save(buffer, format="jpeg", quality=88)
    return buffer.getvalue(), "image/jpeg"
