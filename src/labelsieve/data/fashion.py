"""Fashion-MNIST from a folder with the four idx files (by default Debian's)."""

from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from labelsieve.data.idx import read_idx
from labelsieve.data.noisy_data import Collection, Held, NoisyData, Truth, channel_statistics, checked, checked_held
from labelsieve.errors import ToolError, UsageError

CLASSES = (
    "T-shirt/top",
    "Trouser",
    "Pullover",
    "Dress",
    "Coat",
    "Sandal",
    "Shirt",
    "Sneaker",
    "Bag",
    "Ankle boot",
)
DEBIAN_PLACE = Path("/usr/share/datasets/fashion-mnist")
FILES = (
    "train-images-idx3-ubyte",
    "train-labels-idx1-ubyte",
    "t10k-images-idx3-ubyte",
    "t10k-labels-idx1-ubyte",
)
REMEDY = (
    f"put {', '.join(FILES)} (or the same with .gz) there; on Debian and Ubuntu "
    f'"apt-get install dataset-fashion-mnist" puts them in {DEBIAN_PLACE}'
)


def load_fashion(path: Path | None) -> Collection:
    """Fashion-MNIST from the folder `path`, or from where Debian's package puts it."""
    if path is None and not DEBIAN_PLACE.is_dir():
        raise UsageError(f'fashion-mnist needs a path: write "fashion-mnist:PATH"; {REMEDY}')
    folder = path or DEBIAN_PLACE
    images, labels, test_images, test_labels = _arrays(folder)
    ids = tuple(f"{row:05d}" for row in range(len(labels)))
    train = checked(NoisyData(_pictures(images), _targets(labels), ids, CLASSES), str(folder))
    test = checked_held(Held(_pictures(test_images), _targets(test_labels)), train, str(folder))
    mean, std = channel_statistics(train.images)
    return Collection("fashion-mnist", train, Truth(train.labels.clone()), test, mean, std, mirror=True)


def _arrays(folder: Path) -> list[NDArray[np.uint8]]:
    """The four arrays in the order of `FILES`."""
    if not folder.is_dir():
        raise ToolError(f"{folder}: no such folder; {REMEDY}")
    found = {file: _either(folder, file) for file in FILES}
    missing = [file for file, path in found.items() if path is None]
    if missing:
        raise ToolError(f"{folder}: {', '.join(missing)} missing; {REMEDY}")
    return [read_idx(path, 3 if "images" in file else 1) for file, path in found.items() if path is not None]


def _either(folder: Path, file: str) -> Path | None:
    """The plain file, else the .gz, else None."""
    return next((path for path in (folder / file, folder / f"{file}.gz") if path.is_file()), None)


def _pictures(pixels: NDArray[np.uint8]) -> Tensor:
    """(N, H, W) to (N, 1, H, W)."""
    return torch.from_numpy(pixels)[:, None]


def _targets(labels: NDArray[np.uint8]) -> Tensor:
    return torch.from_numpy(labels.astype(np.int64))
