"""What is wrong with a sample itself rather than with its label: like nothing else in the set, a near copy, a poor picture.

These are few and marked in the list beside the labels; they change neither the order of the list nor any estimate.
"""

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from labelsieve.data.noisy_data import Held, NoisyData
from labelsieve.data.pictures.looks import KINDS as POOR
from labelsieve.data.pictures.looks import near_copies, of_arrays, poor, thumbs
from labelsieve.issues.rules import NEAR_COPY, OFF_TOPIC, TEST
from labelsieve.results.likeness import main_axes, nearest, spread, unit

COMPARED = 10_000  # samples, evenly spaced, to which each one's distance is measured
AROUND, LEAST = 50, 100  # neighbours, and samples below which nothing stands out for sure
# Measured (RESULTS.md): pictures of other things planted among clothes and pets are above, few others are.
OUTLYING = 3.1
TINY, DIMENSIONS = 0.05, 16  # part of the usual distance to the nearest at which vectors of so many numbers are copies
POOL = 50_000  # vectors among which copies are looked for


@dataclass(frozen=True)
class SampleIssues:
    """(N,) each: the kind or "", and of near copies which sample it copies; `test:ID` is one of the test set."""

    kind: tuple[str, ...]
    copy_of: tuple[str, ...]


def sample_issues(data: NoisyData, test: Held | None) -> SampleIssues:
    """The gravest of each sample: blank, a near copy, too dark or bright, blurred, off topic.

    Off topic are vectors only, a backbone's features among them: networks that learnt from these labels alone know little of what
    is unlike all of them. With 3,000 pictures of CIFAR-10, 2 of 22 that theirs set apart were of other things.
    """
    looks, count = looks_of(data), len(data)
    if looks is None:
        copy_of = near_vectors(data, test)
        kinds = np.full(count, "", object)
    else:
        tested = None if test is None else looks_of(test)
        copy_of = copies(data, looks, test, tested)
        kinds = poor(looks).astype(object)
    copied = np.array([bool(name) for name in copy_of]) & (kinds != POOR[0])
    kinds = np.where(copied, NEAR_COPY, kinds)
    if data.are_vectors:
        kinds = np.where((kinds == "") & off_topic(data.images, data.labels.numpy()), OFF_TOPIC, kinds)
    return SampleIssues(tuple(kinds.tolist()), tuple(name if is_copy else "" for name, is_copy in zip(copy_of, copied)))


def looks_of(samples: NoisyData | Held) -> NDArray[np.uint8] | None:
    """(N, LOOK) of pictures, or of what features were made of; None of plain vectors."""
    if samples.looks is not None:
        return samples.looks.numpy()
    return of_arrays(samples.images) if samples.images.ndim == 4 and samples.images.dtype == torch.uint8 else None


def copies(data: NoisyData, looks: NDArray[np.uint8], test: Held | None, tested: NDArray[np.uint8] | None) -> list[str]:
    """(N,) of each sample that occurs again in the test set or under another label, which one that is; "" of all others."""
    of, count = [""] * len(data), len(data)
    both = looks if tested is None else np.concatenate((looks, tested))
    labels = data.labels.tolist()
    for group in near_copies(thumbs(both)):
        held = [row - count for row in group if row >= count]
        here = [row for row in group if row < count]
        other = next((row for row in here if labels[row] != labels[here[0]]), None)
        for row in here:  # there may be a hundred thousand of a placeholder, so none is compared with all
            if other is not None:
                of[row] = data.ids[other if labels[row] == labels[here[0]] else here[0]]
            elif test is not None and held:
                of[row] = test_name(test, held[0])
    return of


def test_name(test: Held, row: int) -> str:
    return f"{TEST}{test.ids[row] if test.ids else row}"


def near_vectors(data: NoisyData, test: Held | None) -> list[str]:
    """The same of vectors, by distances far below the usual one from a sample to its nearest.

    Candidates are the nearest along the main axes, where no two are farther apart than they are.
    """
    of, count = [""] * len(data), len(data)
    if not data.are_vectors or count < LEAST or data.shape[0] < DIMENSIONS:
        return of
    held = spread(0 if test is None else len(test.labels), POOL)
    parts = [data.images] if test is None else [data.images, test.images[torch.from_numpy(held)]]
    values = torch.cat(parts).float()
    axes, labels = main_axes(values), data.labels.numpy()
    near, far = _exact(values, *nearest(axes[:count], spread(count, POOL), 5))
    reach = TINY * float(np.median(far.min(1)))
    for row in np.flatnonzero(far.min(1) <= reach).tolist():
        others = near[row][(far[row] <= reach) & (labels[near[row]] != labels[row])]
        of[row] = data.ids[int(others[0])] if len(others) else ""
    if test is not None and len(held):
        near, far = _exact(values, *nearest(axes, np.arange(count, len(values)), 1))
        for row in np.flatnonzero(far[:count, 0] <= reach).tolist():
            of[row] = of[row] or test_name(test, int(held[near[row, 0] - count]))
    return of


def _exact(values: Tensor, near: NDArray[np.int64], along: NDArray[np.float32]) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """The neighbours (M, k) of the first M rows with their whole distances, in place of those `along` some axes."""
    far = np.empty_like(along)
    for first in range(0, len(near), 1024):
        some = torch.from_numpy(near[first : first + 1024])
        own = values[first : first + len(some), None]
        far[first : first + len(some)] = (values[some] - own).norm(dim=2).numpy()
    return near, far


def off_topic(values: Tensor, labels: NDArray[np.int64]) -> NDArray[np.bool_]:
    """(N,) where a sample is far from all others, measured by how far those are, and its nearest are of many classes.

    Not by the neighbours' own distances: what lies at the edge of a class has neighbours there. And not along main axes, which
    are those of the set's own classes: what is like none of them differs in the others.
    """
    count = len(labels)
    if count < LEAST:
        return np.zeros(count, bool)
    pool = spread(count, COMPARED)
    near, far = nearest(unit([values]), pool, min(AROUND, len(pool) // 4))
    apart = far.mean(1)
    middle, high = np.quantile(apart, (0.5, 0.9))
    if high - middle < 1e-6:
        return np.zeros(count, bool)
    around = np.sort(labels[near], axis=1)
    return (apart - middle) / ((high - middle) / NINETIETH) + mixture(around) > OUTLYING


NINETIETH = 1.2816  # of a normal variable, in standard deviations


def mixture(around: NDArray[np.int64]) -> NDArray[np.float64]:
    """(N,) how much smaller the largest class among neighbours is than usual; `around` (N, k) are their labels in order."""
    count, k = around.shape
    ends = np.concatenate((around[:, 1:] != around[:, :-1], np.ones((count, 1), bool)), 1)
    place = np.where(ends, np.arange(1, k + 1), 0)
    before = np.concatenate((np.zeros((count, 1), int), np.maximum.accumulate(place, 1)[:, :-1]), 1)
    largest = np.where(ends, place - before, 0).max(1) / k
    return np.median(largest) - largest
