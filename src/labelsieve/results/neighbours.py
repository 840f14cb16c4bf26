"""For each issue, of the label or of the sample itself, what a person compares it with: the nearest clean samples of its given
class and of its suggested one, and the samples most like it whatever their labels, for mistakes come in groups.

neighbours.npz holds `of` (M,) samples, and `given`, `suggested` and `alike` (M, k) samples, nearest first, -1 where there are
fewer. It is small and bounded: the most suspicious issues are compared with a spread of all samples.
"""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from labelsieve.issues.table import LabelIssues
from labelsieve.methods.contract import Verdict

NEAREST = 6
ISSUES = 100_000  # so many at most, the most suspicious ones
CANDIDATES = 1024  # clean samples of a class that are looked at, evenly spread over the data
ALL = 20_000  # samples of any label that are looked at: half of them issues, most suspicious first, and a spread of the rest
CHUNK = 2048


def neighbours(verdict: Verdict, issues: LabelIssues) -> dict[str, np.ndarray]:
    """Clean: the networks say what the label says, and the score is in the better half of its class's such samples.

    In short runs no score is high, so the half is told by comparison. Alike by the cosine of all networks' features.
    """
    listed = issues.order[issues.is_marked[issues.order]][:ISSUES]
    of = np.sort(listed)
    clean = ~issues.is_issue & (issues.predicted == issues.given)
    features = [seen.features for seen in verdict.seen]
    pools = {k: _spread(_surest(np.flatnonzero(clean & (issues.given == k)), issues.score)) for k in _classes(issues, of)}
    found = {"of": of.astype(np.int32)}
    for name, labels in (("given", issues.given), ("suggested", issues.predicted)):
        near = np.full((len(of), NEAREST), -1, np.int32)
        for k in np.unique(labels[of]).tolist():
            rows = np.flatnonzero(labels[of] == k)
            near[rows] = _nearest(features, of[rows], pools[k])
        found[name] = near
    return found | {"alike": _nearest(features, of, _of_all(listed, len(issues.given)))}


def _classes(issues: LabelIssues, of: np.ndarray) -> list[int]:
    return np.union1d(issues.given[of], issues.predicted[of]).tolist()


def _of_all(listed: np.ndarray, count: int) -> np.ndarray:
    """Samples of any label: all, or the most suspicious issues and an even spread of the others."""
    first = np.sort(listed[: ALL // 2])
    others = np.setdiff1d(np.arange(count), first)
    return np.union1d(first, _spread(others, ALL - len(first)))


def _surest(rows: np.ndarray, score: np.ndarray) -> np.ndarray:
    """The better half by score; all where that would leave too few to show."""
    if len(rows) < 2 * NEAREST:
        return rows
    return rows[score[rows] >= np.median(score[rows])]


def _spread(rows: np.ndarray, count: int = CANDIDATES) -> np.ndarray:
    """At most `count` of them, evenly spaced."""
    if len(rows) <= count:
        return rows
    return rows[np.linspace(0, len(rows) - 1, count).astype(np.int64)]


def _nearest(features: Sequence[Tensor], rows: np.ndarray, pool: np.ndarray) -> np.ndarray:
    """(len(rows), NEAREST) samples of the pool, nearest first, -1 where it has fewer. No row is its own neighbour."""
    near = np.full((len(rows), NEAREST + 1), -1, np.int32)
    count = min(NEAREST + 1, len(pool))
    if not count:
        return near[:, :NEAREST]
    keys = [_unit(one, pool) for one in features]
    for first in range(0, len(rows), CHUNK):
        some = rows[first : first + CHUNK]
        likeness = sum((_unit(one, some) @ key.T for one, key in zip(features, keys)), torch.zeros((), device=features[0].device))
        near[first : first + CHUNK, :count] = pool[likeness.topk(count, 1).indices.cpu().numpy()]
    last = np.argsort(near == rows[:, None], axis=1, kind="stable")  # itself, where it is there
    return np.take_along_axis(np.where(near == rows[:, None], -1, near), last, 1)[:, :NEAREST]


def _unit(features: Tensor, rows: np.ndarray) -> Tensor:
    some = torch.nan_to_num(features[torch.from_numpy(rows).to(features.device)].float())
    return torch.nn.functional.normalize(some, dim=1)
