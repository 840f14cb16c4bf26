"""Every kind of picture file, decoded to the pixels that the rules promise."""

from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from labelsieve.data.pictures.decode import SUFFIXES, header, open_picture, pixels, reason

from .made import noise, wide_png_header

RED = (255, 0, 0)


def encoded(picture: Image.Image, kind: str, **how: Any) -> BytesIO:
    stream = BytesIO()
    picture.save(stream, kind, **how)
    stream.seek(0)
    return stream


def first_pixel(stream: BytesIO, channels: int = 3) -> tuple[int, ...]:
    found = pixels(stream, 8, channels, "crop")
    assert found.shape == (channels, 8, 8) and found.dtype == np.uint8
    return tuple(found[:, 0, 0].tolist())


@pytest.mark.parametrize("kind", ["PNG", "BMP", "TIFF", "PPM"])
def test_lossless_files_of_the_right_size_are_kept_to_the_pixel(kind: str) -> None:
    picture = noise(1, 8)
    assert np.array_equal(pixels(encoded(picture, kind), 8, 3, "crop"), np.asarray(picture).transpose(2, 0, 1))


@pytest.mark.parametrize(("kind", "how"), [("JPEG", {"quality": 95}), ("WEBP", {"lossless": True})])
def test_jpeg_and_webp(kind: str, how: dict[str, Any]) -> None:
    found = first_pixel(encoded(Image.new("RGB", (20, 20), RED), kind, **how))
    assert np.abs(np.subtract(found, RED)).max() <= 3


def test_the_first_frame_of_a_gif() -> None:
    second = Image.new("RGB", (8, 8), (0, 0, 255))
    stream = encoded(Image.new("RGB", (8, 8), RED), "GIF", save_all=True, append_images=[second])
    assert first_pixel(stream) == RED


@pytest.mark.parametrize(
    ("picture", "expected"),
    [
        (Image.new("1", (8, 8), 1), (255, 255, 255)),
        (Image.new("L", (8, 8), 77), (77, 77, 77)),
        (Image.new("RGB", (8, 8), RED).convert("P"), RED),
        (Image.new("RGBA", (8, 8), (255, 0, 0, 0)), (255, 255, 255)),
        (Image.new("RGBA", (8, 8), (0, 0, 0, 128)), (127, 127, 127)),
        (Image.new("LA", (8, 8), (0, 0)), (255, 255, 255)),
        (Image.fromarray(np.full((8, 8), 65535, np.uint16)), (255, 255, 255)),
        (Image.fromarray(np.full((8, 8), 257 * 100, np.uint16)), (100, 100, 100)),
    ],
    ids=["1 bit", "grey", "palette", "clear", "half clear", "clear grey", "16 bit white", "16 bit grey"],
)
def test_every_mode_of_png(picture: Image.Image, expected: tuple[int, ...]) -> None:
    assert first_pixel(encoded(picture, "PNG")) == expected


def test_a_palette_with_a_clear_colour_is_laid_on_white() -> None:
    picture = Image.new("P", (8, 8), 0)
    picture.putpalette([0, 0, 0, *RED])
    assert first_pixel(encoded(picture, "PNG", transparency=0)) == (255, 255, 255)
    assert first_pixel(encoded(picture, "GIF", transparency=0)) == (255, 255, 255)


def test_cmyk() -> None:
    found = first_pixel(encoded(Image.new("CMYK", (16, 16), (0, 255, 255, 0)), "JPEG", quality=95))
    assert np.abs(np.subtract(found, RED)).max() <= 4


@pytest.mark.parametrize(("top", "expected"), [(1.0, 255), (200.0, 200)])
def test_floats(top: float, expected: int) -> None:
    assert first_pixel(encoded(Image.fromarray(np.full((8, 8), top, np.float32)), "TIFF"), 1) == (expected,)


def test_one_channel_is_grey() -> None:
    assert first_pixel(encoded(Image.new("RGB", (8, 8), RED), "PNG"), 1) == (76,)


CORNER = {1: (0, 0), 2: (0, 7), 3: (7, 7), 4: (7, 0), 5: (0, 0), 6: (0, 7), 7: (7, 7), 8: (7, 0)}


@pytest.mark.parametrize("turn", CORNER)
def test_the_camera_orientation_is_applied(turn: int) -> None:
    picture = Image.new("L", (16, 8), 0)
    picture.paste(255, (0, 0, 4, 2))
    exif = Image.Exif()
    exif[0x0112] = turn
    stream = encoded(picture, "PNG", exif=exif)
    found = pixels(stream, 8, 1, "squash")[0]
    assert {corner for corner in CORNER.values() if found[corner] > 200} == {CORNER[turn]}
    stream.seek(0)
    seen = header(open_picture(stream))
    assert (seen["width"], seen["height"]) == ((8, 16) if turn >= 5 else (16, 8))


def test_a_damaged_exif_block_costs_nothing() -> None:
    stream = encoded(Image.new("RGB", (8, 8), RED), "PNG", exif=b"Exif\0\0MM\0*\xff\xff\xff\xff")
    assert first_pixel(stream) == RED


@pytest.mark.parametrize("size", [(40, 20), (20, 40), (1, 500), (3, 3), (501, 7)])
def test_crop_keeps_the_middle_and_squash_keeps_all(size: tuple[int, int]) -> None:
    width, height = size
    picture = Image.new("L", size, 0)
    side = min(size)
    left, top = (width - side) // 2, (height - side) // 2
    picture.paste(255, (left, top, left + side, top + side))
    assert pixels(encoded(picture, "PNG"), 8, 1, "crop").min() > 100
    squashed = pixels(encoded(picture, "PNG"), 8, 1, "squash")
    assert squashed.shape == (1, 8, 8) and (squashed.min() < 100) == (width != height)


def test_a_large_jpeg_read_at_a_fraction_looks_as_if_read_whole() -> None:
    slope = np.linspace(0, 255, 640).astype(np.uint8)
    picture = Image.fromarray(np.broadcast_to(slope, (480, 640)).copy())
    small = pixels(encoded(picture, "JPEG", quality=95), 32, 1, "crop").astype(int)
    whole = pixels(encoded(picture, "PNG"), 32, 1, "crop").astype(int)
    assert np.abs(small - whole).max() <= 4


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "BMP", "WEBP", "TIFF"])
def test_a_file_cut_short_is_never_half_a_picture(kind: str) -> None:
    whole = encoded(noise(3, 64), kind).getvalue()
    with pytest.raises(Exception) as caught:
        pixels(BytesIO(whole[: len(whole) // 2]), 8, 3, "crop")
    assert reason(caught.value)


@pytest.mark.parametrize(
    "content", [b"", b"no picture", b"\x89PNG\r\n\x1a\n", b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n"]
)
def test_what_is_no_picture(content: bytes) -> None:
    with pytest.raises(Exception) as caught:
        pixels(BytesIO(content), 8, 3, "crop")
    assert "not in a format that is read" in reason(caught.value) or "damaged" in reason(caught.value)


@pytest.mark.parametrize("side", [10_000, 50_000])
def test_a_decompression_bomb_is_refused_by_its_header(side: int, tmp_path: Path) -> None:
    with wide_png_header(tmp_path / "bomb.png", side).open("rb") as stream, pytest.raises(Exception) as caught:
        pixels(stream, 8, 3, "crop")
    assert "decompression bomb" in reason(caught.value)


def test_reasons_for_what_the_disk_says() -> None:
    assert "gone" in reason(FileNotFoundError())
    assert "permission" in reason(PermissionError())
    assert "memory" in reason(MemoryError())
    assert reason(ValueError("a\nb")) == "damaged (a b)"
    assert ".webp" in SUFFIXES


@pytest.mark.parametrize("kind", [np.uint16, np.float32])
def test_wide_pictures_are_narrowed_in_parts(kind: type, monkeypatch: pytest.MonkeyPatch) -> None:
    """The largest float picture took three gigabytes at once; the pixels are the same whatever the parts are."""
    values = (np.random.default_rng(0).random((40, 30)) * (60_000 if kind is np.uint16 else 300)).astype(kind)
    if kind is np.float32:
        values[:2, :2] = [[np.nan, np.inf], [-np.inf, -5]]
    buffer = BytesIO()
    Image.fromarray(values).save(buffer, "tiff")
    whole = pixels(BytesIO(buffer.getvalue()), 30, 1, "crop")
    parts: list[int] = []
    rint = np.rint
    monkeypatch.setattr("labelsieve.data.pictures.decode.PART", 7)
    monkeypatch.setattr(np, "rint", lambda some: (parts.append(np.size(some)), rint(some))[1])
    np.testing.assert_array_equal(pixels(BytesIO(buffer.getvalue()), 30, 1, "crop"), whole)
    assert kind is np.uint16 or (max(parts) == 7 and len(parts) == 172)
