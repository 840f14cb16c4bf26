"""CIFAR-10 and CIFAR-100 from the official python files, as a folder or .tar.gz.

Batches may hold any number of pictures from one on; labels, names and superclasses are the official ones.
"""

from pathlib import Path
from typing import Any, TypeGuard

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from labelsieve.data.cifar_files import CIFAR10, CIFAR100, Layout, read_files, remedy
from labelsieve.data.noisy_data import Collection, Held, NoisyData, Truth, checked, checked_held
from labelsieve.data.safe_pickle import texts
from labelsieve.errors import ToolError, UsageError

PIXELS = 3 * 32 * 32


def load_cifar10(path: Path | None) -> Collection:
    """CIFAR-10 with its official labels as given and as true labels."""
    return _load(path, CIFAR10)


def load_cifar100(path: Path | None) -> Collection:
    """CIFAR-100, fine labels; `groups` gives each class's superclass as the training file has it."""
    return _load(path, CIFAR100)


def _load(path: Path | None, layout: Layout) -> Collection:
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


def _names(meta: dict[str, Any], layout: Layout, place: str) -> tuple[str, ...]:
    if layout.names_key not in meta:
        raise ToolError(f'{place}: it has no "{layout.names_key}"; {remedy(layout)}')
    names = texts(meta[layout.names_key], place)
    if len(names) != layout.classes:
        raise ToolError(f"{place}: {len(names)} class names where {layout.classes} belong; {remedy(layout)}")
    return names


def _batch(content: dict[str, Any], layout: Layout, place: str) -> tuple[Tensor, Tensor, Tensor]:
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


def _groups(labels: Tensor, coarse: Tensor, layout: Layout, place: str) -> tuple[int, ...]:
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
