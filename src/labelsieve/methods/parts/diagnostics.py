"""How well the cleaners and networks do, measured against true labels. Nothing that trains or cleans imports this."""

import math
from collections.abc import Sequence
from functools import reduce

import torch
from torch import Tensor

from labelsieve.methods.parts.estimate import share_interval

NAMES = ("first", "second")  # what networks are called in measures


def auc(chance: Tensor, clean: Tensor) -> float | None:
    """Area under the ROC curve of the clean chance (N,) against what is really clean (N,); None if only one kind exists.

    By mean ranks, so that ties count half; on the chances' device, where scikit-learn would first copy them to the host.
    """
    values = torch.nan_to_num(chance.double())
    clean = clean.to(values.device).bool()
    ordered = values.sort().values
    ranks = torch.searchsorted(ordered, values) + torch.searchsorted(ordered, values, right=True) + 1
    found = torch.stack((clean.sum(), (ranks.double() / 2 * clean).sum())).tolist()
    count, total, others = found[0], found[1], len(values) - found[0]
    return (total - count * (count + 1) / 2) / (count * others) if count and others else None


def precision_recall(taken: Tensor, right: Tensor) -> tuple[float | None, float | None]:
    """Of the taken (N,) how many are right (N,), and of the right how many are taken; None where there are none."""
    taken, right = taken.cpu().bool(), right.cpu().bool()
    both = int((taken & right).sum())
    return (
        both / int(taken.sum()) if taken.any() else None,
        both / int(right.sum()) if right.any() else None,
    )


def divergence(teacher: Tensor, judge: Tensor) -> float:
    """Appendix A.4: mean over samples of KL(q(z') || q(z)), both Bernoulli."""
    p = teacher.double().clamp(1e-6, 1 - 1e-6)
    q = judge.double().clamp(1e-6, 1 - 1e-6)
    return float((p * (p / q).log() + (1 - p) * ((1 - p) / (1 - q)).log()).mean())


def consistency(teacher: Tensor, judge: Tensor, teacher_threshold: float, tau: float) -> float:
    """Appendix A.4: the share of samples on which both cleaners decide alike."""
    return float(((teacher > teacher_threshold) == (judge > tau)).double().mean())


def accuracy(scores: Tensor, labels: Tensor, top: int = 1) -> float:
    """Percent of rows (N, K) whose highest score, or one of the `top` highest, is the label's."""
    if len(labels) == 0:
        return math.nan
    labels = labels.to(scores.device)
    right = scores.argmax(1) == labels if top == 1 else (scores.topk(top, 1).indices == labels.unsqueeze(1)).any(1)
    return 100 * float(right.double().mean())


def summed(scores: Sequence[Tensor]) -> Tensor:
    """Of all networks, (N, K): what they say together."""
    return reduce(torch.add, scores)


def accuracy_interval(right: int, count: int) -> tuple[float, float]:
    """Percent: what the accuracy may be (95 %) where `right` of `count` were; nan where nothing was counted."""
    low, high = share_interval(right, count)
    return 100 * low, 100 * high
