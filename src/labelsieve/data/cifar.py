"""CIFAR-10 and CIFAR-100 from the official python files, as a folder or .tar.gz.

Batches may hold any number of pictures from one on; labels, names and superclasses are the official ones.
"""

import gzip
import tarfile
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO, TypeGuard, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from labelsieve import doors
from labelsieve.data.noisy_data import Collection, Held, NoisyData, Truth, checked, checked_held
from labelsieve.data.safe_pickle import REMEDY, read_plain, texts
from labelsieve.errors import ToolError, UsageError

LARGEST = 2**28  # bytes of a file: CIFAR's have up to 155 million
LARGEST_ARCHIVE = 2**29  # bytes, unpacked: CIFAR's have 186 million
GZIP = b"\x1f\x8b"


@dataclass(frozen=True)
class CifarSet:
    """Where one of the two sets keeps its things, and its usual channel statistics."""

    name: str
    folder: str
    archive: str
    train: tuple[str, ...]
    test: str
    meta: str
    names_key: str
    labels_key: str
    classes: int
    mean: tuple[float, ...]
    std: tuple[float, ...]

    @property
    def files(self) -> tuple[str, ...]:
        return (*self.train, self.test, self.meta)


CIFAR10 = CifarSet(
    name="cifar10",
    folder="cifar-10-batches-py",
    archive="cifar-10-python.tar.gz",
    train=tuple(f"data_batch_{i}" for i in range(1, 6)),
    test="test_batch",
    meta="batches.meta",
    names_key="label_names",
    labels_key="labels",
    classes=10,
    mean=(0.4914, 0.4822, 0.4465),
    std=(0.2023, 0.1994, 0.2010),
)
CIFAR100 = CifarSet(
    name="cifar100",
    folder="cifar-100-python",
    archive="cifar-100-python.tar.gz",
    train=("train",),
    test="test",
    meta="meta",
    names_key="fine_label_names",
    labels_key="fine_labels",
    classes=100,
    mean=(0.507, 0.487, 0.441),
    std=(0.267, 0.256, 0.276),
)


def read_files(path: Path, layout: CifarSet) -> dict[str, dict[str, Any]]:
    """Every file of the layout, unpickled, by name."""
    if not path.exists():
        raise ToolError(f"{path}: no such file or folder; {remedy(layout)}")
    if (path / layout.folder).is_dir():
        path = path / layout.folder
    elif (path / layout.archive).is_file():
        path = path / layout.archive
    contents = _read_folder(path, layout) if path.is_dir() else _read_archive(path, layout)
    missing = [file for file in layout.files if file not in contents]
    if missing:
        raise ToolError(f"{path}: {', '.join(missing)} missing; {remedy(layout)}")
    return contents


def remedy(layout: CifarSet) -> str:
    return (
        f"put the official {layout.archive} there, or the folder {layout.folder} unpacked from it, "
        f"or give the path where one of them is"
    )


def _read_folder(folder: Path, layout: CifarSet) -> dict[str, dict[str, Any]]:
    present = [folder / file for file in layout.files if (folder / file).is_file()]
    return {path.name: _read_file(path) for path in present}


def _read_file(path: Path) -> dict[str, Any]:
    with doors.reading(path, REMEDY):
        return read_plain(doors.read_bytes(path, LARGEST, follow=True), str(path))


class _Unpacked:
    """The unpacked bytes of a .tar.gz or a .tar, no more of them than an archive of CIFAR has."""

    def __init__(self, packed: BinaryIO) -> None:
        is_packed = packed.read(len(GZIP)) == GZIP
        packed.seek(0)
        self._stream: Any = gzip.GzipFile(fileobj=packed) if is_packed else packed
        self._left = LARGEST_ARCHIVE

    def read(self, count: int) -> bytes:
        found: bytes = self._stream.read(count)
        self._left -= len(found)
        if self._left < 0:
            raise doors.Damage(f"it unpacks to more than {LARGEST_ARCHIVE:,} bytes, which no archive of CIFAR does")
        return found


def _read_archive(path: Path, layout: CifarSet) -> dict[str, dict[str, Any]]:
    """The layout's files in an archive; read as a stream, so that nothing is decompressed twice."""
    contents = {}
    with (
        doors.reading(path, remedy(layout)),
        doors.open_plain(path, follow=True) as packed,
        tarfile.open(fileobj=cast(BinaryIO, _Unpacked(packed)), mode="r|") as archive,
    ):
        for member in archive:
            *_, folder, file = ("", "", *PurePosixPath(member.name).parts)
            if folder == layout.folder and file in layout.files and member.isfile():
                if member.size > LARGEST:
                    raise doors.Damage(f"{member.name} unpacks to {member.size:,} bytes, no file of CIFAR does")
                stream = archive.extractfile(member)
                assert stream is not None  # a regular file always has one
                contents[file] = read_plain(stream.read(), f"{path}: {member.name}")
    return contents


PIXELS = 3 * 32 * 32


def load_cifar10(path: Path | None) -> Collection:
    """CIFAR-10 with its official labels as given and as true labels."""
    return _load(path, CIFAR10)


def load_cifar100(path: Path | None) -> Collection:
    """CIFAR-100, fine labels; `groups` gives each class's superclass as the training file has it."""
    return _load(path, CIFAR100)


def _load(path: Path | None, layout: CifarSet) -> Collection:
    if path is None:
        raise UsageError(f'{layout.name} needs a path: write "{layout.name}:PATH"; {remedy(layout)}')
    contents = read_files(path, layout)
    names = _names(contents.pop(layout.meta), layout, f"{path}: {layout.meta}")
    batches = [_batch(contents[file], layout, f"{path}: {file}") for file in layout.train]
    images = torch.cat([batch[0] for batch in batches])
    labels = torch.cat([batch[1] for batch in batches])
    ids = tuple(f"{row:05d}" for row in range(len(labels)))
    train = checked(NoisyData(images, labels, ids, names), str(path))
    test_images, test_labels, _ = _batch(contents[layout.test], layout, f"{path}: {layout.test}")
    test = checked_held(Held(test_images, test_labels), train, str(path))
    groups = None
    if layout is CIFAR100:
        groups = _groups(labels, torch.cat([batch[2] for batch in batches]), layout, str(path))
    truth = Truth(labels.clone())
    return Collection(layout.name, train, truth, test, layout.mean, layout.std, mirror=True, groups=groups)


def _names(meta: dict[str, Any], layout: CifarSet, place: str) -> tuple[str, ...]:
    if layout.names_key not in meta:
        raise ToolError(f'{place}: it has no "{layout.names_key}"; {remedy(layout)}')
    names = texts(meta[layout.names_key], place)
    if len(names) != layout.classes:
        raise ToolError(f"{place}: {len(names)} class names where {layout.classes} belong; {remedy(layout)}")
    return names


def _batch(content: dict[str, Any], layout: CifarSet, place: str) -> tuple[Tensor, Tensor, Tensor]:
    """Pictures (N, 3, 32, 32), labels (N,), superclasses (N,) of one file; for CIFAR-10 the labels twice."""
    data = content.get("data")
    found = f"{data.dtype} {data.shape}" if isinstance(data, np.ndarray) else type(data).__name__
    if not _is_batch(data):
        raise ToolError(f'{place}: "data" is {found}, not uint8 (N, {PIXELS}); {remedy(layout)}')
    images = torch.from_numpy(np.array(data)).reshape(-1, 3, 32, 32)
    labels = _labels(content, layout.labels_key, len(data), place)
    coarse = _labels(content, "coarse_labels", len(data), place) if layout is CIFAR100 else labels
    return images, labels, coarse


def _is_batch(data: object) -> TypeGuard[NDArray[np.uint8]]:
    if not isinstance(data, np.ndarray) or data.dtype != np.uint8 or data.ndim != 2:
        return False
    return len(data) >= 1 and data.shape[1] == PIXELS


def _labels(content: dict[str, Any], key: str, count: int, place: str) -> Tensor:
    values = content.get(key)
    listed = values if isinstance(values, list) else []
    if len(listed) != count or not all(type(value) is int and 0 <= value < 1000 for value in listed):
        found = f"{len(listed)} values" if isinstance(values, list) else type(values).__name__
        raise ToolError(f'{place}: "{key}" is {found}, not a list of {count} class numbers; fetch the file again')
    return torch.tensor(listed, dtype=torch.int64)


def _groups(labels: Tensor, coarse: Tensor, layout: CifarSet, place: str) -> tuple[int, ...]:
    """The superclass of each class (K,); every picture of a class must agree."""
    groups = torch.zeros(layout.classes, dtype=torch.int64)
    groups[labels] = coarse
    strays = torch.nonzero(groups[labels] != coarse).flatten()
    if len(strays):
        row = int(strays[0])
        raise ToolError(
            f"{place}: row {row} puts class {int(labels[row])} in superclass {int(coarse[row])}, "
            f"other rows in {int(groups[labels[row]])}; {remedy(layout)}"
        )
    return tuple(groups.tolist())
