"""How many are right among the labels that a judge ranks first, and places in a ranking."""

import numpy as np

from labelsieve.benchmark.against_cleanlab import share_among_first


def head(chance: np.ndarray, right: np.ndarray, share: float) -> float:
    """How many are right of the first so many in a hundred, highest chance first; at least one label is looked at."""
    return share_among_first(-chance, right, count_of(share, len(right)))


def count_of(share: float, size: int) -> int:
    return max(1, round(share * size))


def ranks(score: np.ndarray) -> np.ndarray:
    """Places in [0, 1], the lowest score first; equal scores share the mean of their places."""
    ordered = np.sort(score)
    places = np.searchsorted(ordered, score, "left") + np.searchsorted(ordered, score, "right") - 1
    return places / (2 * max(len(score) - 1, 1))
