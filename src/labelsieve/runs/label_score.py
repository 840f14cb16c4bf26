"""`label_score`: what networks and prototypes said of every given label in the latest divisions goes in, one number a label out.

The mean of two opinions over both networks and the last five divisions: the softmax share of the given label, and its share in a
softmax over the prototypes' scores. `benchmark/scores_study.py` and LOG.md say against what it was chosen.
"""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from labelsieve.method.algorithm import Epoch
from labelsieve.method.learner import Learner
from labelsieve.runs.history import ScoreHistory

CHUNK = 8192


def label_score(epoch: Epoch, learners: Sequence[Learner], history: ScoreHistory) -> np.ndarray:
    """(N,) in [0, 1], low = suspicious. `history` holds this epoch's shares already, or none at all (a slim checkpoint)."""
    recent = [shares.float() for shares in history.recent] or [shares_of_given(epoch, learners)]
    score: np.ndarray = torch.stack(recent).mean(0).clamp(0, 1).numpy()
    return score


def shares_of_given(epoch: Epoch, learners: Sequence[Learner]) -> Tensor:
    """(N,) on the host: how much of their belief networks and prototypes, where there are any, give to the label."""
    labels = epoch.seen[0].labels.unsqueeze(1)
    shares = [seen.probs.gather(1, labels).squeeze(1) for seen in epoch.seen]
    if epoch.by_prototype:
        shares += [_by_prototypes(learner, seen.features, labels) for learner, seen in zip(learners, epoch.seen)]
    return torch.nan_to_num(torch.stack([share.float() for share in shares])).mean(0).cpu()


def _by_prototypes(learner: Learner, features: Tensor, labels: Tensor) -> Tensor:
    """In pieces, for (N, K) may be large."""
    assert learner.judge is not None
    device, found = learner.mean.device, []
    for some, own in zip(features.split(CHUNK), labels.split(CHUNK)):  # of large sets they lie on the host, halved
        scores = learner.judge.classify(some.to(device, torch.float32))
        found.append(scores.softmax(1).gather(1, own.to(device)).squeeze(1).to(labels.device))
    return torch.cat(found)
