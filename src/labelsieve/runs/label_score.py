"""`label_score`: how the chances moved over training and what the networks say at its end go in, one number a label comes out.

The mean of two opinions: the clean chance by prototype and by loss, averaged over all divisions (later ones weigh more), and
the share that the networks give to the label now. `benchmark/scores_study.py` chose it; RESULTS.md has the table.
"""

from collections.abc import Sequence

import numpy as np
import torch

from labelsieve.method.algorithm import Epoch
from labelsieve.runs.history import ScoreHistory


def label_score(epoch: Epoch, history: ScoreHistory) -> np.ndarray:
    """(N,) in [0, 1], low = suspicious. `history` holds this epoch's division already, or none at all."""
    past = chances_over_time(history.epochs, [history.by_loss, history.by_prototype] if epoch.by_prototype else [history.by_loss])
    if past is None:
        now = [torch.stack(list(chances)) for chances in (epoch.by_loss, epoch.by_prototype) if chances]
        past = torch.stack(now).float().mean((0, 1))
    labels = epoch.seen[0].labels.unsqueeze(1)
    share = torch.stack([seen.probs.gather(1, labels).squeeze(1) for seen in epoch.seen]).mean(0)
    score: np.ndarray = ((torch.nan_to_num(past).cpu() + torch.nan_to_num(share.float()).cpu()) / 2).clamp(0, 1).numpy()
    return score


def chances_over_time(epochs: Sequence[int], tables: Sequence[Sequence[torch.Tensor]]) -> torch.Tensor | None:
    """(N,): the mean over tables (S, 2, N) and networks, a division weighing more the later it was; None where there is none."""
    if not epochs:
        return None
    first = min(epochs)
    weights = [epoch - first + 1 for epoch in epochs]
    total = torch.zeros(tables[0][0].shape[1])
    for table in tables:
        for weight, chances in zip(weights, table):
            total += weight * torch.nan_to_num(chances.float()).mean(0)
    return total / (sum(weights) * len(tables))
