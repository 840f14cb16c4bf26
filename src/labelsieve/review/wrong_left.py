"""How many wrong labels are left: scores and the answers so far go in; an expected number with an interval comes out.

What a person finds at one score says most about labels with a score near it. So labels are put into groups of like rank, each
with the share that the run expects to be wrong; how far the truth is off that share (in log-odds) is a level common to all
groups and a random walk from group to group. Answers bind it where they are many, and it is free to drift where there are
none. The posterior is taken as normal around its peak (Laplace), and drawn from.
"""

from dataclasses import dataclass

import numpy as np

GROUPS = 24  # at most; of the listed issues two thirds, of the other rows one third
LEAST = 25  # rows in a group, where there are enough
LEVEL, STEP = 1.5, 0.5  # standard deviations: of the common level, and of one step between neighbouring groups
FLOOR = 0.001  # no group is sure
DRAWS = 2000
COVER = 0.9  # of the interval
ONE_IN = 20  # "stop here": fewer than one in so many of the next are wrong
NEXT = 100  # so many are meant by "the next"
ENOUGH = 30  # answers before anything is advised


@dataclass(frozen=True, eq=False)
class Groups:
    """`of` (N,) is the group of each row, rows most suspicious first; `expected` (G,) the share expected to be wrong."""

    of: np.ndarray
    expected: np.ndarray


@dataclass(frozen=True)
class Left:
    """Wrong labels among the rows nobody has decided: expected, and the interval. `next_share` is of the next rows."""

    expected: float
    low: float
    high: float
    next_share: float
    next_high: float
    stop: bool


def grouped(chance: np.ndarray, is_issue: np.ndarray) -> Groups:
    """Groups along the list: `chance` (N,) to be wrong, as the run sees it, and which rows it lists as issues."""
    of = np.zeros(len(chance), np.int32)
    first = 0
    for rows, share in ((np.flatnonzero(is_issue), 2 / 3), (np.flatnonzero(~is_issue), 1 / 3)):
        if len(rows):
            count = int(np.clip(len(rows) // LEAST, 1, round(GROUPS * share)))
            of[rows] = first + np.arange(len(rows)) * count // len(rows)
            first += count
    sizes = np.bincount(of, minlength=max(first, 1))
    means = np.bincount(of, chance, minlength=len(sizes)) / np.maximum(sizes, 1)
    return Groups(of, np.clip(means, FLOOR, 1 - FLOOR))


def wrong_left(groups: Groups, answered: np.ndarray, wrong: np.ndarray, rng: np.random.Generator) -> Left:
    """`answered` (N,) says which rows a person decided, `wrong` (N,) which of these were wrong."""
    count = len(groups.expected)
    tried = np.bincount(groups.of[answered], minlength=count)
    found = np.bincount(groups.of[answered & wrong], minlength=count)
    total = np.bincount(groups.of, minlength=count)
    shares = _sigmoid(_draws(groups.expected, tried, found, rng))  # (DRAWS, G)
    left = rng.binomial(total - tried, shares).sum(1)
    low, high = np.quantile(left, [(1 - COVER) / 2, (1 + COVER) / 2])
    ahead = np.bincount(groups.of[np.flatnonzero(~answered)[:NEXT]], minlength=count)
    following = shares @ ahead / max(ahead.sum(), 1)
    limit = float(np.quantile(following, COVER))
    stop = bool(answered.sum() >= ENOUGH and ahead.sum() and limit < 1 / ONE_IN)
    return Left(float(left.mean()), float(low), float(high), float(following.mean()), limit, stop)


def _draws(expected: np.ndarray, tried: np.ndarray, found: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Log-odds of the shares after the answers: (DRAWS, G)."""
    count = len(expected)
    start = np.log(expected / (1 - expected))
    walk = np.minimum.outer(np.arange(count), np.arange(count)) * STEP**2
    inverse = np.linalg.inv(walk + LEVEL**2 + 1e-6 * np.eye(count))
    peak = np.zeros(count)
    for _ in range(50):  # Newton; the posterior has one peak
        share = _sigmoid(start + peak)
        bend = inverse + np.diag(tried * share * (1 - share))
        move = np.linalg.solve(bend, found - tried * share - inverse @ peak)
        peak = peak + np.clip(move, -2, 2)
        if np.abs(move).max() < 1e-6:
            break
    share = _sigmoid(start + peak)
    lower = np.linalg.cholesky(inverse + np.diag(tried * share * (1 - share)))
    spread = np.linalg.solve(lower.T, rng.standard_normal((count, DRAWS)))
    return np.asarray(start + peak + spread.T)


def _sigmoid(values: np.ndarray) -> np.ndarray:
    return np.asarray(1 / (1 + np.exp(-np.clip(values, -50, 50))))
