"""Fashion-MNIST from a folder with the four idx files (by default Debian's)."""

import gzip
import math
import struct
import zlib
from pathlib import Path
from typing import BinaryIO, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from labelsieve import doors
from labelsieve.data.noisy_data import Collection, Held, NoisyData, Truth, channel_statistics, checked, checked_held
from labelsieve.data.npz import refuse_beyond_memory
from labelsieve.errors import ToolError, UsageError

UNSIGNED_BYTE = 8


def read_idx(path: Path, dimensions: int) -> NDArray[np.uint8]:
    """The array in `path`: unsigned bytes in `dimensions` axes, and exactly as many as its header says."""
    try:
        with doors.open_plain(path, follow=True) as packed, gzip.open(packed) if path.suffix == ".gz" else packed as stream:
            return _read(cast(BinaryIO, stream), dimensions, path)
    except (EOFError, zlib.error, OSError) as error:
        raise ToolError(f"{path}: cannot be read whole ({type(error).__name__}: {error}); fetch it again") from error


def _read(stream: BinaryIO, dimensions: int, path: Path) -> NDArray[np.uint8]:
    size = 4 + 4 * dimensions
    header = stream.read(size)
    if len(header) < size:
        raise ToolError(f"{path}: {len(header)} bytes, too short for an idx file; fetch it again")
    magic = bytes((0, 0, UNSIGNED_BYTE, dimensions))
    if header[:4] != magic:
        raise ToolError(
            f"{path}: it starts with {header[:4].hex()}, not with {magic.hex()} as an idx file of bytes in "
            f"{dimensions} axes does; is it the right file?"
        )
    shape = struct.unpack(f">{dimensions}I", header[4:])
    expected = math.prod(shape)
    refuse_beyond_memory(expected, str(path))
    content = stream.read(expected + 1)  # one more tells that there is more, however much it would unpack to
    if len(content) != expected:
        there = f"{len(content)}" if len(content) < expected else "more"
        raise ToolError(
            f"{path}: the header says {' x '.join(map(str, shape))} = {expected} bytes, the file has {there}; it is cut short or "
            f"damaged, fetch it again"
        )
    return np.frombuffer(content, np.uint8).reshape(shape).copy()


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
