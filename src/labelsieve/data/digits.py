"""scikit-learn's digits: 1797 grey 8x8 pictures, a fixed quarter as test set."""

from pathlib import Path

import numpy as np
import torch

from labelsieve.data.draws import Draws, stratified_rows
from labelsieve.data.noisy_data import Collection, Held, NoisyData, Truth, channel_statistics, checked
from labelsieve.errors import UsageError

SPLIT_STREAM, SPLIT_SEED = 1, 0
BRIGHTEST = 16


def load_digits(path: Path | None) -> Collection:
    """The collection `digits`. It ships with scikit-learn, so `path` must be None."""
    if path is not None:
        raise UsageError(f'digits come with scikit-learn and take no path; write "digits", not "digits:{path}"')
    from sklearn.datasets import load_digits as bundled  # a second to import, and no other source needs it

    source = bundled()
    labels = source.target.astype(np.int64)
    pixels = np.rint(source.images * (255 / BRIGHTEST)).astype(np.uint8)
    held = np.zeros(len(labels), bool)
    held[stratified_rows(labels, round(len(labels) / 4), Draws(SPLIT_STREAM, SPLIT_SEED))] = True
    images, targets = torch.from_numpy(pixels)[:, None], torch.from_numpy(labels)
    rows, test_rows = torch.from_numpy(np.flatnonzero(~held)), torch.from_numpy(np.flatnonzero(held))
    ids = tuple(f"{row:04d}" for row in rows.tolist())
    names = tuple(str(digit) for digit in range(10))
    train = checked(NoisyData(images[rows], targets[rows], ids, names), "digits")
    mean, std = channel_statistics(train.images)
    test = Held(images[test_rows], targets[test_rows])
    return Collection("digits", train, Truth(train.labels.clone()), test, mean, std, mirror=False)
