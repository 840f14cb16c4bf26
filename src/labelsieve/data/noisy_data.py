"""The spine: N rows of pictures and given labels. The row's index is the only join key.

What is true (`Truth`) is kept in another object, so that nothing which trains or cleans can reach it: the method is
handed a `NoisyData`, and a `NoisyData` has no true labels to give.
"""

from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from labelsieve.errors import ToolError


@dataclass(frozen=True)
class NoisyData:
    """Pictures as uint8 (N, C, H, W), given labels as int64 (N,) in 0..K-1, stable ids, class names."""

    images: Tensor
    labels: Tensor
    ids: tuple[str, ...]
    classes: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def shape(self) -> tuple[int, ...]:
        """One picture's shape: (C, H, W)."""
        return tuple(self.images.shape[1:])

    def relabelled(self, labels: Tensor) -> "NoisyData":
        return replace(self, labels=labels)


@dataclass(frozen=True)
class Truth:
    """True labels (N,), for measuring only. Lives beside the data, never inside it."""

    labels: Tensor


@dataclass(frozen=True)
class Held:
    """Pictures with trusted labels that no training sees: a test set."""

    images: Tensor
    labels: Tensor


@dataclass(frozen=True)
class Collection:
    """What a data source gives: rows to train on, what is known of them, and how to look at them.

    `mean` and `std` are per channel, of pixels scaled to [0, 1]. `mirror` says whether a mirrored picture is still the
    same thing (a mirrored cat is a cat, a mirrored digit is not a digit).
    """

    name: str
    train: NoisyData
    truth: Truth | None
    test: Held | None
    mean: tuple[float, ...]
    std: tuple[float, ...]
    mirror: bool = True


def checked(data: NoisyData, place: str) -> NoisyData:
    """The data, or a `ToolError` that names what is wrong with it; `place` is the file or source it came from."""
    images, labels, classes = data.images, data.labels, len(data.classes)
    if len(images) != len(labels) or len(labels) != len(data.ids):
        raise ToolError(f"{place}: {len(images)} pictures, {len(labels)} labels, {len(data.ids)} ids; the counts must agree")
    if len(labels) == 0:
        raise ToolError(f"{place}: it has no samples")
    if classes < 2:
        raise ToolError(f"{place}: it has {classes} class; a classifier needs at least two")
    outside = torch.nonzero((labels < 0) | (labels >= classes)).flatten()
    if len(outside):
        row = int(outside[0])
        raise ToolError(
            f"{place}: row {row} has label {int(labels[row])}, outside 0..{classes - 1} ({len(outside)} such rows); "
            f"number the classes from 0 or give their names"
        )
    counts = np.bincount(labels.numpy(), minlength=classes)
    empty = np.flatnonzero(counts == 0)
    if len(empty):
        names = ", ".join(f'"{data.classes[k]}"' for k in empty[:5])
        raise ToolError(
            f"{place}: no sample has the label {names}{' ...' if len(empty) > 5 else ''} ({len(empty)} of {classes} classes "
            f"are empty); remove these classes or add samples"
        )
    return data


def channel_statistics(images: Tensor, at_most: int = 20_000) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Mean and standard deviation per channel of pixels in [0, 1], over evenly spaced pictures."""
    step = max(1, len(images) // at_most)
    pixels = images[::step].to(torch.float64).div_(255).transpose(0, 1).flatten(1)
    mean, std = pixels.mean(1), pixels.std(1).clamp_min(1e-3)
    return tuple(mean.tolist()), tuple(std.tolist())
