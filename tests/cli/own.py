"""One's own pictures for the command line: small folders of real files, and settings under which they train in a moment."""

from pathlib import Path

import numpy as np
from PIL import Image

# No noise is made and nothing is said of batches: what is left open is settled by the data.
QUICK = (
    *("--epochs", "2", "--device", "cpu", "--set", "engine.threads=1", "--set", "cleaning.dim=8"),
    *("--set", "pictures.workers=1", "--set", "output.checkpoint_seconds=0"),
)


def striped(number: int, label: int, side: int = 12) -> Image.Image:
    """A dark noisy picture with a bright bar where its class says; `number` makes it different from all others."""
    pixels = np.random.default_rng(number).integers(0, 60, (side, side)).astype(np.uint8)
    step = side // 4
    pixels[step * label : step * (label + 1)] += 150
    return Image.fromarray(pixels)


def folder(root: Path, classes: tuple[str, ...] = ("cat", "dog", "cow"), each: int = 20, first: int = 0) -> Path:
    for label, name in enumerate(classes):
        (root / name).mkdir(parents=True, exist_ok=True)
        for k in range(first, first + each):
            striped(1000 * label + k, label).save(root / name / f"{k}.png")
    return root


def broken(path: Path) -> Path:
    path.write_bytes(b"\x89PNG\r\n\x1a\n and then nothing")
    return path
