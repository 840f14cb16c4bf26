"""What a verdict knows of each label, as columns of the tables that people get."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from labelsieve.methods.contract import Method, Verdict
from labelsieve.methods.parts.cleaners import Judge
from labelsieve.methods.parts.evidence import Evidence
from labelsieve.results.history import ScoreHistory

TOP = 5  # classes whose probabilities are kept for each sample
CHUNK = 8192


@dataclass(frozen=True, eq=False)
class Similarity:
    """The prototypes' scores, (2, N) for the two networks: to the given class, to the nearest, and which that is."""

    given: np.ndarray
    best: np.ndarray
    nearest: np.ndarray


def similarity(verdict: Verdict, method: Method) -> Similarity | None:
    """None where no prototypes have judged. In pieces, for (N, K) may be large."""
    judges = [method.prototypes(r) for r in range(len(verdict.seen))]
    found = [None if judge is None else _of_one(judge, seen, method.facts.device) for judge, seen in zip(judges, verdict.seen)]
    parts = [part for part in found if part is not None]
    if not parts:
        return None
    given, best, nearest = (torch.stack(columns).cpu().numpy() for columns in zip(*parts))
    return Similarity(given, best, nearest)


def _of_one(judge: Judge, seen: Evidence, device: torch.device) -> tuple[Tensor, Tensor, Tensor] | None:
    found = []
    for some, own in zip(seen.features.split(CHUNK), seen.labels.split(CHUNK)):
        scores = judge.classify(some.to(device, torch.float32))
        if scores is None:
            return None
        scores = scores.to(own.device)
        best, nearest = scores.max(1)
        found.append((scores.gather(1, own.unsqueeze(1)).squeeze(1), best, nearest))
    given, bests, nearests = (torch.cat(column) for column in zip(*found))
    return given, bests, nearests


def agreement(verdict: Verdict) -> np.ndarray:
    """Where all networks predict the same class: (N,) bool. One network agrees with itself."""
    first, *others = (seen.predicted for seen in verdict.seen)
    alike = torch.ones_like(first, dtype=torch.bool)
    for other in others:
        alike &= first == other
    found: np.ndarray = alike.cpu().numpy()
    return found


def top_classes(probs: np.ndarray) -> dict[str, np.ndarray]:
    """The most probable classes of each sample and their shares, (N, at most TOP), best first."""
    pieces = (probs[first : first + CHUNK] for first in range(0, max(len(probs), 1), CHUNK))
    order = np.concatenate([np.argsort(-some, axis=1, kind="stable")[:, :TOP].astype(np.int32) for some in pieces])
    return {"top_classes": order, "top_probs": np.take_along_axis(probs, order, 1).astype(np.float32)}


def trend(history: ScoreHistory) -> dict[str, np.ndarray]:
    """The score at the first division, and how far a straight line through all of its values goes from there, (N,)."""
    table = history.counting
    if table is None:
        return {}
    scores = table.float().mean(1).numpy()  # (S, N)
    epochs = np.array(history.epochs, np.float64)
    away = epochs - epochs.mean()
    spread = (away**2).sum()
    slope = away @ scores / spread if spread else np.zeros(scores.shape[1])
    return {"score_first": scores[0], "score_trend": slope * (epochs[-1] - epochs[0])}


def columns(verdict: Verdict, similar: Similarity | None, history: ScoreHistory) -> Mapping[str, np.ndarray]:
    """Evidence as issues.csv names it, (N,): means over all networks."""

    def mean(tensors: Sequence[Tensor]) -> np.ndarray:
        found: np.ndarray = torch.stack(list(tensors)).mean(0).cpu().numpy()
        return found

    found = {f"chance_by_{name}": mean(chances) for name, chances in verdict.opinions.items()}
    found["loss"] = mean([seen.losses for seen in verdict.seen])
    if similar is not None:
        found |= {"similarity_given": similar.given.mean(0), "similarity_best": similar.best.mean(0)}
    return found | trend(history)
