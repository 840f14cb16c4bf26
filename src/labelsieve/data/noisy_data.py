"""The spine: N rows of pictures or vectors and given labels. The row's index is the only join key.

What is true (`Truth`) is kept in another object, so that nothing which trains or cleans can reach it: the
method is handed a `NoisyData`, and a `NoisyData` has no true labels to give.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import torch
from torch import Tensor

from labelsieve.errors import ToolError

MEMORY = "memory"  # the name of what a program handed over, and is in no file


@dataclass(frozen=True)
class NoisyData:
    """Pictures as uint8 (N, C, H, W), given labels as int64 (N,) in 0..K-1, stable ids, class names.

    Vectors stand where pictures stand, as float32 (N, D). Where they are features of pictures, `looks` uint8 (N, LOOK) say what
    these are like (`data/pictures/looks.py`).
    """

    images: Tensor
    labels: Tensor
    ids: tuple[str, ...]
    classes: tuple[str, ...]
    looks: Tensor | None = None

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def shape(self) -> tuple[int, ...]:
        """One picture's shape, (C, H, W), or one vector's, (D,)."""
        return tuple(self.images.shape[1:])

    @property
    def are_vectors(self) -> bool:
        return self.images.ndim == 2

    @property
    def things(self) -> str:
        """What to call the samples when one speaks of them."""
        return "vectors" if self.are_vectors else "pictures"

    def relabelled(self, labels: Tensor) -> "NoisyData":
        return replace(self, labels=labels)

    def rows(self, index: Tensor) -> "NoisyData":
        """The rows at `index` (M,), with their own ids; the classes stay."""
        ids = tuple(self.ids[i] for i in index.tolist())
        looks = None if self.looks is None else self.looks[index]
        return replace(self, images=self.images[index], labels=self.labels[index], ids=ids, looks=looks)


@dataclass(frozen=True)
class Truth:
    """True labels (N,), for measuring only. Lives beside the data, never inside it."""

    labels: Tensor


@dataclass(frozen=True)
class Held:
    """Pictures with trusted labels that no training sees: a test set. `ids` (M,) where they have names, `looks` as above."""

    images: Tensor
    labels: Tensor
    ids: tuple[str, ...] = ()
    looks: Tensor | None = None

    def rows(self, index: Tensor) -> "Held":
        """The pictures at `index` (M,)."""
        ids = tuple(self.ids[i] for i in index.tolist()) if self.ids else ()
        return Held(self.images[index], self.labels[index], ids, None if self.looks is None else self.looks[index])


@dataclass(frozen=True)
class Collection:
    """What a data source gives: rows to train on, what is known of them, and how to look at them.

    `mean` and `std` are per channel, of pixels scaled to [0, 1]; of vectors per dimension, as they are. `mirror`
    says whether a mirrored picture is still the same thing (a mirrored cat is a cat, a mirrored digit is not a
    digit). `groups` (K,) gives each class the number of its superclass, where the data set has superclasses.
    `paths` (N,) says where each training row's picture lies, where it is a file. `also` are further test sets by name.
    `white` is the value that became 255 in pictures of 16 bits, where there were some.
    """

    name: str
    train: NoisyData
    truth: Truth | None
    test: Held | None
    mean: tuple[float, ...]
    std: tuple[float, ...]
    mirror: bool = True
    groups: tuple[int, ...] | None = None
    paths: tuple[str, ...] | None = None
    also: Mapping[str, Held] = field(default_factory=dict)
    white: int | None = None


@dataclass(frozen=True)
class Loaded:
    """A file of arrays as it was read: the collection, its validation rows, and what should be said of it."""

    collection: Collection
    val: Held | None = None
    notes: tuple[str, ...] = ()


def checked(data: NoisyData, place: str) -> NoisyData:
    """The data, or a `ToolError` that names what is wrong with it; `place` is the file or source."""
    images, labels, classes = data.images, data.labels, len(data.classes)
    if len(images) != len(labels) or len(labels) != len(data.ids):
        # Where none were given, as many were made as there are labels.
        named = "" if len(data.ids) == len(labels) else f", {len(data.ids)} ids"
        raise ToolError(f"{place}: {len(images)} {data.things}, {len(labels)} labels{named}; the counts must agree")
    if len(labels) == 0:
        raise ToolError(f"{place}: it has no samples")
    if classes < 2:
        raise ToolError(f"{place}: it has {classes} class(es); a classifier needs at least two")
    for what, names in (("class name", data.classes), ("id", data.ids)):
        if len(set(names)) != len(names):
            twice = Counter(names).most_common(1)[0][0]
            raise ToolError(f'{place}: the {what} "{twice}" occurs more than once; make each {what} unique')
    _check_range(labels, classes, place)
    counts = np.bincount(labels.numpy(), minlength=classes)
    empty = np.flatnonzero(counts == 0)
    if len(empty):
        listed = ", ".join(f'"{data.classes[k]}"' for k in empty[:5]) + (" ..." if len(empty) > 5 else "")
        raise ToolError(
            f"{place}: no sample has the label {listed} ({len(empty)} of {classes} classes are empty); "
            f"remove these classes or add samples"
        )
    return data


def checked_held(held: Held, data: NoisyData, place: str) -> Held:
    """The test set, or a `ToolError` where it does not fit the training rows. Classes may be empty."""
    images, labels = held.images, held.labels
    what = data.things
    if len(images) != len(labels) or len(labels) == 0:
        raise ToolError(f"{place}: {len(images)} test {what}, {len(labels)} test labels; they must agree and be at least one")
    if images.shape[1:] != data.images.shape[1:]:
        same = "number of dimensions" if data.are_vectors else "channels, height and width"
        raise ToolError(
            f"{place}: test {what} have the shape {tuple(images.shape[1:])}, "
            f"training {what} {tuple(data.images.shape[1:])}; give both the same {same}"
        )
    _check_range(labels, len(data.classes), f"{place}, test set")
    return held


def checked_truth(truth: Truth, data: NoisyData, place: str) -> Truth:
    """The true labels, or a `ToolError` where they do not fit the rows."""
    if len(truth.labels) != len(data):
        raise ToolError(f"{place}: {len(truth.labels)} true labels for {len(data)} rows; give one for each row")
    _check_range(truth.labels, len(data.classes), f"{place}, true labels")
    return truth


def _check_range(labels: Tensor, classes: int, place: str) -> None:
    outside = torch.nonzero((labels < 0) | (labels >= classes)).flatten()
    if len(outside):
        row = int(outside[0])
        raise ToolError(
            f"{place}: row {row} has label {int(labels[row])}, outside 0..{classes - 1} "
            f"({len(outside)} such rows); number the classes from 0 or give their names"
        )


def channel_statistics(images: Tensor, at_most: int = 20_000) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Mean and standard deviation per channel of pixels in [0, 1], over evenly spaced pictures."""
    step = -(-len(images) // at_most)
    # Through a histogram: exact, and without a copy of the pictures as floats.
    counts = [torch.bincount(images[::step, c].flatten(), minlength=256) for c in range(images.shape[1])]
    shares = torch.stack(counts).to(torch.float64)
    shares /= shares.sum(1, keepdim=True)
    values = torch.arange(256, dtype=torch.float64) / 255
    mean = shares @ values
    std = (shares * (values - mean[:, None]) ** 2).sum(1).sqrt().clamp_min(1e-3)
    return tuple(mean.tolist()), tuple(std.tolist())


def vector_statistics(values: Tensor) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Mean and standard deviation per dimension of vectors (N, D); 1 where a dimension is the same in all."""
    mean, std = values.double().mean(0), values.double().std(0, correction=0)
    return tuple(mean.tolist()), tuple(torch.where(std > 0, std, torch.ones_like(std)).tolist())
