"""`label_score`: one number for each given label, from what networks and prototypes said of it in the latest verdicts.

The geometric mean of three opinions: the label's softmax share and its share in a softmax over the prototypes' scores, both over
the last five verdicts and as means of both networks, and the latter in the first division, before any label could be learnt
by heart in mixed training. One firm doubt counts for more than in a plain mean: networks half believe labels that went to a
neighbouring class, prototypes do not. LOG.md says against what it was chosen (`studies/scores_study.py`).
"""

import numpy as np
import torch
from torch import Tensor

from labelsieve.methods.contract import Verdict
from labelsieve.methods.epochs import Epoch
from labelsieve.results.history import ScoreHistory

LEAST = 1e-4  # a share below it says no more than it: half of the precision that shares are remembered with


def label_score(verdict: Verdict, history: ScoreHistory) -> np.ndarray:
    """(N,) in [0, 1], low = suspicious. `history` holds this verdict's beliefs already, or none at all (a slim checkpoint)."""
    recent = [shares.float() for shares in history.recent] or [geometric_mean(torch.stack(verdict.beliefs))]
    late = geometric_mean(torch.stack(recent))  # of all voices already
    opinions = (late,) if history.past is None else (late, late, history.past.float())
    score: np.ndarray = geometric_mean(torch.stack(opinions)).clamp(0, 1).numpy()
    return score


def remember(history: ScoreHistory, epoch: Epoch) -> None:
    """Into the history with what this epoch said of all samples; a warm-up epoch says nothing, a draw is not every sample."""
    verdict = epoch.verdict
    if verdict is None or verdict.rows:
        return
    history.add(epoch.index, verdict.opinions)
    history.remember(geometric_mean(torch.stack(verdict.beliefs)), verdict.beliefs[1] if len(verdict.beliefs) > 1 else None)


def geometric_mean(shares: Tensor) -> Tensor:
    """(J, N) -> (N,)."""
    return (shares + LEAST).log().mean(0).exp() - LEAST
