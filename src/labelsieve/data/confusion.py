"""Labels that a weak model confuses: wrong labels as people make them, hard samples first, each towards what it looks like.

The model is linear discriminant analysis on coarse pixels or on vectors; each sample is judged by a fit that has not seen it.
"""

from collections.abc import Callable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from labelsieve.data.draws import Draws, IntArray

Floats = NDArray[np.float64]

FOLDS = 5
COARSE = 8  # pixels a side: enough to tell a ship from a frog, not a cat from a dog
SHRINK = 0.1  # of the mean variance, added to every direction
CHUNK = 4096
LEAST = 1e-9  # weight of a sample that the model is sure of: a rate of 1 takes these, too


def confused(samples: Tensor, labels: IntArray, classes: int, count: int, draws: Draws) -> IntArray:
    """Labels (N,) of which exactly `count` are wrong.

    The surer the model is that a label is right, the less likely it is drawn; the wrong class is drawn from what the model
    thinks of the others. A smaller count of the same seed draws a part of a larger one's rows.
    """
    logits = out_of_fold(coarse(samples), labels, classes, draws)
    rows = np.arange(len(labels))
    others = logits.copy()
    others[rows, labels] = -np.inf
    doubt = 1 / (1 + np.exp(np.clip(logits[rows, labels] - _logsumexp(others), -700, 700)))
    # The smallest of exponential variables with these rates: a draw without replacement by weight.
    waits = -np.log1p(-draws.uniform(len(labels))) / np.maximum(doubt, LEAST)
    chosen = np.argsort(waits, kind="stable")[:count]
    shares = np.exp(others - _logsumexp(others)[:, None]).cumsum(1)
    towards = (shares > draws.uniform(len(labels))[:, None] * shares[:, -1:]).argmax(1)
    noisy = labels.copy()
    noisy[chosen] = towards[chosen]
    return noisy


def coarse(samples: Tensor) -> Floats:
    """(N, D): pictures at 8 pixels a side at most, vectors as they are; every dimension by its spread."""
    parts = []
    for some in samples.split(CHUNK):
        if some.ndim == 4:
            side = (min(COARSE, some.shape[2]), min(COARSE, some.shape[3]))
            some = torch.nn.functional.adaptive_avg_pool2d(some.float(), side)
        parts.append(some.flatten(1).double().numpy())
    rows = np.nan_to_num(np.concatenate(parts))
    spread = rows.std(0)
    return (rows - rows.mean(0)) / np.where(spread > 0, spread, 1)


def out_of_fold(rows: Floats, labels: IntArray, classes: int, draws: Draws) -> Floats:
    """(N, K): log-odds of the classes up to a constant, each row by a model of the other folds."""
    fold = np.empty(len(rows), np.int64)
    fold[draws.order(len(rows))] = np.arange(len(rows)) % FOLDS
    logits = np.zeros((len(rows), classes))
    for number in range(FOLDS):
        held = fold == number
        if not held.all():
            logits[held] = _discriminant(rows[~held], labels[~held], classes)(rows[held])
    return logits


def _discriminant(rows: Floats, labels: IntArray, classes: int) -> Callable[[Floats], Floats]:
    counts = np.bincount(labels, minlength=classes)
    means = np.zeros((classes, rows.shape[1]))
    np.add.at(means, labels, rows)
    means /= np.maximum(counts, 1)[:, None]
    within = rows - means[labels]
    spread = within.T @ within / len(rows)
    spread[np.diag_indices_from(spread)] += SHRINK * max(np.trace(spread) / len(spread), 1e-12)
    turned = np.linalg.solve(spread, means.T)
    constant = np.log(np.maximum(counts, 0.5) / len(rows)) - 0.5 * (means.T * turned).sum(0)
    return lambda held: held @ turned + constant


def _logsumexp(logits: Floats) -> Floats:
    """(N,) over the classes."""
    most = logits.max(1)
    found: Floats = most + np.log(np.exp(logits - most[:, None]).sum(1))
    return found
