"""Estimates how many wrong labels are left, with an interval, from the scores and the answers so far.

What a person finds at one score says most about labels with a score near it. So labels are put into groups of like rank, each
with the share that the run expects to be wrong; how far the truth is off that share (in log-odds) is a level and a random walk
from group to group. Listed issues and the other rows have a level and a walk each. Answers bind it where they are many, and it
is free to drift where there are none. How rough the walk is, the answers say, too: several are weighed by how well they fit.
"""

from dataclasses import dataclass

import numpy as np

GROUPS = 24  # at most; of the listed issues two thirds, of the other rows one third
LEAST = 25  # rows in a group, where there are enough
LEVEL, LEVEL_OF_OTHERS = 1.5, 1.3  # standard deviations of the levels; the latter by runs with known noise (RESULTS.md)
STEPS, STEP_OF_OTHERS = (0.15, 0.4, 1.0, 2.0), 0.2  # the same of a step between neighbouring groups; of issues one of these
LEAST_SHARE, MOST_SHARE = 0.004, 0.95  # what a group is expected to have of wrong labels, whatever the run says
DRAWS = 1000
COVER = 0.9  # of the interval
ONE_IN = 20  # "stop here": fewer than one in so many of the next are wrong
NEXT = 100  # so many are meant by "the next"
ENOUGH = 30  # answers before anything is advised


@dataclass(frozen=True, eq=False)
class Groups:
    """`of` (N,) is the group of each row, rows most suspicious first; `expected` (G,) the share expected to be wrong."""

    of: np.ndarray
    expected: np.ndarray
    listed: int  # groups of issues; those of other rows come after them
    counted: np.ndarray  # (N,) bool: not settled in an earlier round


@dataclass(frozen=True)
class Left:
    """Wrong labels among the rows nobody has decided: expected, and the interval. `next_share` is of the next rows."""

    expected: float
    low: float
    high: float
    next_share: float
    next_high: float
    stop: bool


def grouped(chance: np.ndarray, is_issue: np.ndarray, settled: np.ndarray | None = None) -> Groups:
    """Groups along the list: `chance` (N,) to be wrong, as the run sees it, and which rows it lists as issues.

    Rows `settled` (N,) in an earlier round are in none: people have put their labels right, so they say nothing of the others.
    """
    counted = np.ones(len(chance), bool) if settled is None else ~settled
    of, counts = np.zeros(len(chance), np.int32), [0, 0]
    for part, (chosen, share) in enumerate(((is_issue, 2 / 3), (~is_issue, 1 / 3))):
        rows = np.flatnonzero(chosen & counted)
        if len(rows):
            counts[part] = int(np.clip(len(rows) // LEAST, 1, round(GROUPS * share)))
            of[rows] = sum(counts[:part]) + np.arange(len(rows)) * counts[part] // len(rows)
    sizes = np.bincount(of[counted], minlength=max(sum(counts), 1))
    means = np.bincount(of[counted], chance[counted], minlength=len(sizes)) / np.maximum(sizes, 1)
    return Groups(of, np.clip(means, LEAST_SHARE, MOST_SHARE), counts[0], counted)


def wrong_left(
    groups: Groups, answered: np.ndarray, wrong: np.ndarray, rng: np.random.Generator, unsure: np.ndarray | None = None
) -> Left:
    """`answered` (N,) says which rows a person decided, `wrong` (N,) which of these were wrong.

    Rows a person was `unsure` (N,) of may still be wrong, but do not come next.
    """
    count, answered = len(groups.expected), answered & groups.counted
    still = groups.counted & ~answered
    tried, found, left_over = (np.bincount(groups.of[rows], minlength=count) for rows in (answered, answered & wrong, still))
    shares = _sigmoid(_draws(groups, tried, found, rng))  # (DRAWS, G)
    left = rng.binomial(left_over, shares).sum(1)
    low, high = np.quantile(left, [(1 - COVER) / 2, (1 + COVER) / 2])
    waiting = still if unsure is None else still & ~unsure
    listed = groups.of < groups.listed  # the page shows these first
    coming = np.append(np.flatnonzero(waiting & listed)[:NEXT], np.flatnonzero(waiting & ~listed)[:NEXT])[:NEXT]
    ahead = np.bincount(groups.of[coming], minlength=count)
    following = shares @ ahead / max(len(coming), 1)
    limit = float(np.quantile(following, COVER))
    stop = bool(answered.sum() >= ENOUGH and len(coming) and limit < 1 / ONE_IN)
    return Left(float(left.mean()), float(low), float(high), float(following.mean()), limit, stop)


def _draws(groups: Groups, tried: np.ndarray, found: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Log-odds of the shares after the answers: (DRAWS, G), of each roughness as many as its fit deserves."""
    start = np.log(groups.expected / (1 - groups.expected))
    fits = [_fitted(start, _inverse(groups, step), tried, found) for step in STEPS]
    evidence = np.array([fit[2] for fit in fits])
    weights = np.exp(evidence - evidence.max())
    parts = []
    for (peak, bend, _), count in zip(fits, rng.multinomial(DRAWS, weights / weights.sum())):
        noise = np.linalg.solve(np.linalg.cholesky(bend).T, rng.standard_normal((len(start), count)))
        parts.append(start + peak + noise.T)
    return np.concatenate(parts)


def _inverse(groups: Groups, step: float) -> np.ndarray:
    """Of the covariance of how far groups are off: a level and a walk for the issues, and apart from them for the rest."""
    count = len(groups.expected)
    spread = np.zeros((count, count))
    for first, last, level, size in ((0, groups.listed, LEVEL, step), (groups.listed, count, LEVEL_OF_OTHERS, STEP_OF_OTHERS)):
        places = np.arange(last - first)
        spread[first:last, first:last] = np.minimum.outer(places, places) * size**2 + level**2
    return np.linalg.inv(spread + 1e-6 * np.eye(count))


def _fitted(start: np.ndarray, inverse: np.ndarray, tried: np.ndarray, found: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
    """The posterior as a normal around its peak (Laplace): the peak, its precision, and the log of the fit."""
    peak = np.zeros(len(start))
    for _ in range(60):  # Newton; there is one peak
        share = _sigmoid(start + peak)
        bend = inverse + np.diag(tried * share * (1 - share))
        move = np.linalg.solve(bend, found - tried * share - inverse @ peak)
        peak = peak + np.clip(move, -2, 2)
        if np.abs(move).max() < 1e-6:
            break
    odds = start + peak
    share = _sigmoid(odds)
    bend = inverse + np.diag(tried * share * (1 - share))
    likely = (found * odds - tried * np.logaddexp(0, odds)).sum() - peak @ inverse @ peak / 2
    return peak, bend, float(likely + np.linalg.slogdet(inverse)[1] / 2 - np.linalg.slogdet(bend)[1] / 2)


def _sigmoid(values: np.ndarray) -> np.ndarray:
    return np.asarray(1 / (1 + np.exp(-np.clip(values, -50, 50))))
