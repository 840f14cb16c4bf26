"""`label_score`: what networks and prototypes said of every given label in the latest divisions goes in, one number a label out.

The geometric mean of three opinions: the label's softmax share and its share in a softmax over the prototypes' scores, both over
the last five divisions and as means of both networks, and the latter in the first division, before any label could be learnt
by heart in mixed training. One firm doubt counts for more than in a plain mean: networks half believe labels that went to a
neighbouring class, prototypes do not. LOG.md says against what it was chosen (`studies/scores_study.py`).
"""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from labelsieve.methods.algorithm import Epoch
from labelsieve.methods.learner import Learner
from labelsieve.results.history import ScoreHistory

CHUNK = 8192
TEN = 10  # classes of the sets that the score was chosen on
LEAST = 1e-4  # a share below it says no more than it: half of the precision that shares are remembered with


def label_score(epoch: Epoch, learners: Sequence[Learner], history: ScoreHistory) -> np.ndarray:
    """(N,) in [0, 1], low = suspicious. `history` holds this epoch's shares already, or none at all (a slim checkpoint)."""
    recent = [shares.float() for shares in history.recent] or [geometric_mean(shares_of_given(epoch, learners))]
    late = geometric_mean(torch.stack(recent))  # of two opinions already
    opinions = (late,) if history.past is None else (late, late, history.past.float())
    score: np.ndarray = geometric_mean(torch.stack(opinions)).clamp(0, 1).numpy()
    return score


def remember_division(history: ScoreHistory, epoch: Epoch, learners: Sequence[Learner]) -> None:
    """Into the history with what this epoch said of all samples; a warm-up epoch says nothing, a draw is not every sample."""
    if not epoch.seen or epoch.rows:
        return
    history.add(epoch.index, epoch.by_loss, epoch.by_prototype)
    shares = shares_of_given(epoch, learners)
    history.remember(geometric_mean(shares), shares[1] if len(shares) > 1 else None)


def geometric_mean(shares: Tensor) -> Tensor:
    """(J, N) -> (N,)."""
    return (shares + LEAST).log().mean(0).exp() - LEAST


def shares_of_given(epoch: Epoch, learners: Sequence[Learner]) -> Tensor:
    """(1 or 2, N) on the host: how much of their belief networks and prototypes, where there are any, give to the label."""
    labels = epoch.seen[0].labels.unsqueeze(1)
    opinions = [[seen.probs.gather(1, labels).squeeze(1) for seen in epoch.seen]]
    if epoch.by_prototype:
        parts = zip(learners, epoch.seen, epoch.by_prototype)
        opinions.append([_by_prototypes(learner, seen.features, labels, chances) for learner, seen, chances in parts])
    means = [torch.nan_to_num(torch.stack([share.float() for share in shares])).mean(0) for shares in opinions]
    return torch.stack(means).cpu()


def _by_prototypes(learner: Learner, features: Tensor, labels: Tensor, chances: Tensor) -> Tensor:
    """In pieces, for (N, K) may be large. A cleaner that does not classify has its chances (N,) taken for shares."""
    assert learner.judge is not None
    device, found, classes = learner.mean.device, [], 0
    for some, own in zip(features.split(CHUNK), labels.split(CHUNK)):  # of large sets they lie on the host, halved
        scores = learner.judge.classify(some.to(device, torch.float32))
        if scores is None:
            return chances.to(labels.device)
        classes = scores.shape[1]
        found.append(scores.softmax(1).gather(1, own.to(device)).squeeze(1).to(labels.device))
    return among_ten(torch.cat(found), classes)


def among_ten(shares: Tensor, classes: int) -> Tensor:
    """A class's share against all others (N,), as it would be against nine of them; up to ten classes it stays as it is.

    A prototype learns to be unlike other classes' samples with a weight of 1/K (Eq. 2), so that the more classes there are the
    more of a softmax over all of them is left to those that are out of the question.
    """
    fewer = max(1.0, (classes - 1) / (TEN - 1))
    return shares * fewer / (shares * fewer + 1 - shares)
