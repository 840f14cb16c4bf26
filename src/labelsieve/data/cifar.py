"""CIFAR-10 and CIFAR-100: the official python files, as folder or .tar.gz, go in, a `Collection` comes out.

Files are read through `safe_pickle`, archives in memory. Batches may hold any number of pictures from one on.
"""

import tarfile
import zlib
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
import torch
from torch import Tensor

from labelsieve.data.noisy_data import Collection, Held, NoisyData, Truth, checked, checked_held
from labelsieve.data.safe_pickle import read_plain, texts
from labelsieve.errors import ToolError, UsageError

PIXELS = 3 * 32 * 32


@dataclass(frozen=True)
class Layout:
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


CIFAR10 = Layout(
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
CIFAR100 = Layout(
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


def load_cifar10(path: Path | None) -> Collection:
    """CIFAR-10 with its official labels as given and as true labels."""
    return _load(path, CIFAR10)


def load_cifar100(path: Path | None) -> Collection:
    """CIFAR-100, fine labels; `groups` gives each class's superclass as the training file has it."""
    return _load(path, CIFAR100)


def _load(path: Path | None, layout: Layout) -> Collection:
    if path is None:
        raise UsageError(f'{layout.name} needs a path: write "{layout.name}:PATH"; {_remedy(layout)}')
    contents = _contents(path, layout)
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


def _contents(path: Path, layout: Layout) -> dict[str, dict[str, Any]]:
    """Every file of the layout, unpickled, by name."""
    if not path.exists():
        raise ToolError(f"{path}: no such file or folder; {_remedy(layout)}")
    if path.is_dir() and not (path / layout.folder).is_dir() and (path / layout.archive).is_file():
        path = path / layout.archive
    read = _read_folder if path.is_dir() else _read_archive
    contents = read(path, layout)
    missing = [file for file in layout.files if file not in contents]
    if missing:
        raise ToolError(
            f"{path}: {', '.join(missing)} missing (of {', '.join(layout.files)}); {_remedy(layout)}"
        )
    return contents


def _remedy(layout: Layout) -> str:
    return (
        f"put the official {layout.archive} there, or the folder {layout.folder} unpacked from it, "
        f"or give the path where one of them is"
    )


def _read_folder(path: Path, layout: Layout) -> dict[str, dict[str, Any]]:
    folder = path / layout.folder if (path / layout.folder).is_dir() else path
    present = [file for file in layout.files if (folder / file).is_file()]
    try:
        return {file: read_plain((folder / file).read_bytes(), str(folder / file)) for file in present}
    except OSError as error:
        raise ToolError(f"{folder}: cannot be read ({error}); check the permissions") from error


def _read_archive(path: Path, layout: Layout) -> dict[str, dict[str, Any]]:
    """The layout's files in an archive; read as a stream, so that nothing is decompressed twice."""
    contents = {}
    try:
        with tarfile.open(path, mode="r|*") as archive:
            for member in archive:
                inside = PurePosixPath(member.name)
                if (
                    not member.isfile()
                    or inside.parent.name != layout.folder
                    or inside.name not in layout.files
                ):
                    continue
                stream = archive.extractfile(member)
                if stream is not None:
                    contents[inside.name] = read_plain(stream.read(), f"{path}: {member.name}")
    except (tarfile.TarError, EOFError, zlib.error, OSError) as error:
        raise ToolError(
            f"{path}: not a whole tar archive ({type(error).__name__}: {error}); {_remedy(layout)}"
        ) from error
    return contents


def _names(meta: dict[str, Any], layout: Layout, place: str) -> tuple[str, ...]:
    if layout.names_key not in meta:
        raise ToolError(f'{place}: it has no "{layout.names_key}"; {_remedy(layout)}')
    names = texts(meta[layout.names_key], place)
    if len(names) != layout.classes:
        raise ToolError(f"{place}: {len(names)} class names where {layout.classes} belong; {_remedy(layout)}")
    return names


def _batch(content: dict[str, Any], layout: Layout, place: str) -> tuple[Tensor, Tensor, Tensor]:
    """Pictures (N, 3, 32, 32), labels (N,) and superclasses (N,) of one file; for CIFAR-10 the labels twice."""
    data = content.get("data")
    if (
        not isinstance(data, np.ndarray)
        or data.dtype != np.uint8
        or data.ndim != 2
        or data.shape[1] != PIXELS
    ):
        shape = f"{data.dtype} {data.shape}" if isinstance(data, np.ndarray) else type(data).__name__
        raise ToolError(f'{place}: "data" is {shape}, not uint8 (N, {PIXELS}); {_remedy(layout)}')
    if len(data) == 0:
        raise ToolError(f'{place}: "data" has no pictures; {_remedy(layout)}')
    images = torch.from_numpy(np.array(data)).reshape(-1, 3, 32, 32)
    labels = _labels(content, layout.labels_key, len(data), place)
    coarse = _labels(content, "coarse_labels", len(data), place) if layout is CIFAR100 else labels
    return images, labels, coarse


def _labels(content: dict[str, Any], key: str, count: int, place: str) -> Tensor:
    values = content.get(key)
    whole = isinstance(values, list) and all(type(value) is int for value in values)
    if not whole or len(values) != count:  # type: ignore[arg-type]
        found = f"{len(values)} values" if isinstance(values, list) else type(values).__name__
        raise ToolError(
            f'{place}: "{key}" is {found}, not a list of {count} whole numbers; fetch the file again'
        )
    return torch.tensor(values, dtype=torch.int64)


def _groups(labels: Tensor, coarse: Tensor, layout: Layout, place: str) -> tuple[int, ...]:
    """The superclass of each class (K,); every picture of a class must agree."""
    groups = torch.zeros(layout.classes, dtype=torch.int64)
    groups[labels] = coarse
    strays = torch.nonzero(groups[labels] != coarse).flatten()
    if len(strays):
        row = int(strays[0])
        raise ToolError(
            f"{place}: row {row} puts class {int(labels[row])} in superclass {int(coarse[row])}, "
            f"other rows in {int(groups[labels[row]])}; {_remedy(layout)}"
        )
    return tuple(groups.tolist())
