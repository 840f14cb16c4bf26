"""What the latest division knows of each label, as columns: an epoch, the learners and the scores' history go in."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from labelsieve.methods.algorithm import Epoch
from labelsieve.methods.learner import Learner
from labelsieve.results.history import ScoreHistory

TOP = 5  # classes whose probabilities are kept for each sample
CHUNK = 8192


@dataclass(frozen=True, eq=False)
class Similarity:
    """The prototypes' scores, (2, N) for the two networks: to the given class, to the nearest, and which that is."""

    given: np.ndarray
    best: np.ndarray
    nearest: np.ndarray


def similarity(epoch: Epoch, learners: Sequence[Learner]) -> Similarity | None:
    """None where no prototypes have judged. In pieces, for (N, K) may be large."""
    if not epoch.by_prototype:
        return None
    found = [_of_one(learner, seen.features, seen.labels) for learner, seen in zip(learners, epoch.seen)]
    parts = [part for part in found if part is not None]
    if not parts:
        return None
    given, best, nearest = (torch.stack(columns).cpu().numpy() for columns in zip(*parts))
    return Similarity(given, best, nearest)


def _of_one(learner: Learner, features: Tensor, labels: Tensor) -> tuple[Tensor, Tensor, Tensor] | None:
    assert learner.judge is not None
    found = []
    for some, own in zip(features.split(CHUNK), labels.split(CHUNK)):
        scores = learner.judge.classify(some.to(learner.mean.device, torch.float32))
        if scores is None:
            return None
        scores = scores.to(own.device)
        best, nearest = scores.max(1)
        found.append((scores.gather(1, own.unsqueeze(1)).squeeze(1), best, nearest))
    given, bests, nearests = (torch.cat(column) for column in zip(*found))
    return given, bests, nearests


def mean_probs(epoch: Epoch) -> np.ndarray:
    """Mean softmax of both networks: (N, K). In pieces, for a stack of both would be a second copy of them."""
    pieces = zip(*(seen.probs.split(CHUNK) for seen in epoch.seen))
    found: np.ndarray = torch.cat([torch.stack(piece).mean(0).cpu() for piece in pieces]).numpy()
    return found


def agreement(epoch: Epoch) -> np.ndarray:
    """Where both networks predict the same class: (N,) bool."""
    first, second = (seen.predicted for seen in epoch.seen)
    found: np.ndarray = (first == second).cpu().numpy()
    return found


def top_classes(probs: np.ndarray) -> dict[str, np.ndarray]:
    """The most probable classes of each sample and their shares, (N, at most TOP), best first."""
    pieces = (probs[first : first + CHUNK] for first in range(0, max(len(probs), 1), CHUNK))
    order = np.concatenate([np.argsort(-some, axis=1, kind="stable")[:, :TOP].astype(np.int32) for some in pieces])
    return {"top_classes": order, "top_probs": np.take_along_axis(probs, order, 1).astype(np.float32)}


def trend(history: ScoreHistory) -> dict[str, np.ndarray]:
    """The score at the first division, and how far a straight line through all of its values goes from there, (N,)."""
    if not history.epochs:
        return {}
    scores = torch.stack(history.by_prototype).float().mean(1).numpy()  # (S, N)
    epochs = np.array(history.epochs, np.float64)
    away = epochs - epochs.mean()
    spread = (away**2).sum()
    slope = away @ scores / spread if spread else np.zeros(scores.shape[1])
    return {"score_first": scores[0], "score_trend": slope * (epochs[-1] - epochs[0])}


def columns(epoch: Epoch, similar: Similarity | None, history: ScoreHistory) -> Mapping[str, np.ndarray]:
    """Evidence as issues.csv names it, (N,): means over both networks."""

    def mean(tensors: Sequence[Tensor]) -> np.ndarray:
        found: np.ndarray = torch.stack(list(tensors)).mean(0).cpu().numpy()
        return found

    found = {"chance_by_loss": mean(epoch.by_loss), "loss": mean([seen.losses for seen in epoch.seen])}
    if epoch.by_prototype:
        found["chance_by_prototype"] = mean(epoch.by_prototype)
    if similar is not None:
        found |= {"similarity_given": similar.given.mean(0), "similarity_best": similar.best.mean(0)}
    return found | trend(history)
