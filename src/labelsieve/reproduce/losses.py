"""Loss distributions class by class, as in the paper's first figure, at the end of the warm-up.

Densities of clean and of wrongly labelled samples, their mean over classes with a 95 % band, and for each class the
two-sample Kolmogorov-Smirnov test of its losses against those of the whole set.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import gaussian_kde, ks_2samp

from labelsieve.results.early import EarlyLosses

KINDS = ("clean", "noisy")
BAND = (2.5, 97.5)  # percentiles over classes
GRID = 200
FEWEST = 5  # samples of a class and kind, below which there is nothing to test or to draw
LEVEL = 0.05


@dataclass(frozen=True)
class Tested:
    """One class, one kind, one network: is its loss distribution that of the whole set? `statistic` is the largest gap."""

    network: int
    name: str
    kind: str
    samples: int
    statistic: float
    p_value: float


@dataclass(frozen=True, eq=False)
class Density:
    """Mean density over classes and the band that holds 95 % of them, at `loss` (G,)."""

    kind: str
    loss: np.ndarray
    mean: np.ndarray
    low: np.ndarray
    high: np.ndarray
    classes: int


def of_kind(early: EarlyLosses, network: int, kind: str) -> tuple[np.ndarray, np.ndarray]:
    """Losses (M,) and given labels (M,) of one network's clean or noisy samples."""
    assert early.wrong is not None
    chosen = early.wrong[network] == (kind == "noisy")
    return early.loss[network][chosen].astype(np.float64), early.given[network][chosen]


def class_tests(early: EarlyLosses) -> list[Tested]:
    """Every class against all samples of its kind, itself among them, as the paper does. Classes go by the given label."""
    found = []
    for network in range(len(early.loss)):
        for kind in KINDS:
            losses, given = of_kind(early, network, kind)
            for k, name in enumerate(early.classes):
                own = losses[given == k]
                if len(own) >= FEWEST:
                    result = ks_2samp(own, losses)
                    found.append(Tested(network, name, kind, len(own), float(result.statistic), float(result.pvalue)))
    return found


def share_that_differs(tested: Sequence[Tested], kind: str) -> float | None:
    """The share of classes with p < 0.05, over networks and classes together.

    Each is a test by itself, as the paper counts them: where no class differs, 5 % would by chance, and fewer of a few large
    classes, for each is part of what it is held against.
    """
    values = [one.p_value < LEVEL for one in tested if one.kind == kind]
    return sum(values) / len(values) if values else None


def densities(early: EarlyLosses, network: int = 0) -> list[Density]:
    """By kind, of one network; a class with too few samples or no spread is left out."""
    top = float(np.quantile(early.loss[network], 0.995)) or 1.0
    grid = np.linspace(0, top, GRID)
    found = []
    for kind in KINDS:
        losses, given = of_kind(early, network, kind)
        each = [_density(losses[given == k], grid) for k in range(len(early.classes))]
        curves = np.array([one for one in each if one is not None])
        if len(curves):
            low, high = np.percentile(curves, BAND, axis=0)
            found.append(Density(kind, grid, curves.mean(0), low, high, len(curves)))
    return found


def _density(losses: np.ndarray, grid: np.ndarray) -> np.ndarray | None:
    """By Gaussian kernels (Scott's width), mirrored at 0, for no loss is below it."""
    if len(losses) < FEWEST or np.ptp(losses) == 0:
        return None
    kernel = gaussian_kde(losses)
    found: np.ndarray = kernel(grid) + kernel(-grid)
    return found
