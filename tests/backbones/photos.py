"""Small photos that no two are alike, as files in class folders."""

from pathlib import Path

import numpy as np
from PIL import Image

from labelsieve.data.pictures.decoding import Plan, Progress
from labelsieve.data.pictures.listing import Listing
from labelsieve.data.pictures.options import PictureOptions
from labelsieve.data.pictures.presence import present
from labelsieve.data.pictures.recognise import list_pictures, recognise

__all__ = ["Plan", "Progress", "folder", "listing", "photo"]


def photo(number: int, size: tuple[int, int] = (40, 30)) -> Image.Image:
    """Coloured blots; `number` makes it different from all others."""
    blots = np.random.default_rng(number).integers(0, 255, (5, 7, 3)).astype(np.uint8)
    return Image.fromarray(blots).resize(size, Image.Resampling.BICUBIC)


def folder(root: Path, each: int = 10, classes: tuple[str, ...] = ("cat", "dog")) -> Path:
    for label, name in enumerate(classes):
        (root / name).mkdir(parents=True, exist_ok=True)
        for k in range(each):
            photo(1000 * label + k).save(root / name / f"{k:03d}.png")
    return root


def listing(root: Path) -> Listing:
    options = PictureOptions()
    return present(list_pictures(recognise(root, options), options))
