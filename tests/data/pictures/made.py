"""Tiny real picture files: a folder goes in, files on the disk come out."""

from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image


def noise(seed: int, side: int = 12, channels: int = 3) -> Image.Image:
    pixels = np.random.default_rng(seed).integers(0, 256, (side, side, channels), dtype=np.uint8)
    return Image.fromarray(pixels[..., 0] if channels == 1 else pixels)


def save(picture: Image.Image, path: Path, **how: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    picture.save(path, **how)
    return path


def class_folders(root: Path, classes: tuple[str, ...] = ("cat", "dog"), each: int = 3, seed: int = 0) -> Path:
    """`each` different 12 x 12 PNG files in a folder a class."""
    for number, name in enumerate(classes):
        for k in range(each):
            save(noise(seed + 1000 * number + k), root / name / f"{k}.png")
    return root


def wide_png_header(path: Path, side: int) -> Path:
    """A small PNG file whose header claims `side` x `side` pixels."""
    import struct
    import zlib

    def chunk(kind: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    head = chunk(b"IHDR", struct.pack(">IIBBBBB", side, side, 8, 0, 0, 0, 0))
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + head + chunk(b"IDAT", zlib.compress(bytes(100))) + chunk(b"IEND", b""))
    return path
