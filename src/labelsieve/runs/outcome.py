"""What a run gives to people: scores.npz, issues.csv and the model, from the latest division and the networks."""

import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from safetensors.torch import save as as_bytes

from labelsieve.data.noisy_data import Collection, NoisyData
from labelsieve.issues.table import LabelIssues, rank
from labelsieve.method.algorithm import Epoch
from labelsieve.method.learner import Learner
from labelsieve.method.recipe import Recipe
from labelsieve.runs import atomic
from labelsieve.runs.config import Config
from labelsieve.runs.folder import RunFolder
from labelsieve.runs.history import ScoreHistory
from labelsieve.version import __version__


def label_issues(epoch: Epoch, data: NoisyData, recipe: Recipe) -> LabelIssues:
    """Ranked by prototypes where they have judged, else by loss."""
    chances = torch.stack(epoch.by_prototype or epoch.by_loss).cpu().numpy()
    threshold = recipe.tau if epoch.by_prototype else recipe.mixture_threshold
    probs = torch.stack([seen.probs for seen in epoch.seen]).mean(0).cpu().numpy()
    return rank(data.ids, data.classes, data.labels.numpy(), probs, chances, threshold)


def write_scores(folder: RunFolder, epoch: Epoch, data: NoisyData, history: ScoreHistory) -> None:
    """Everything per sample, row i for sample i: (2, N) for the two networks, (S, 2, N) for the history."""

    def both(tensors: Sequence[torch.Tensor]) -> np.ndarray:
        return torch.stack(list(tensors)).cpu().numpy()

    arrays = {
        "ids": np.array(data.ids),
        "given": data.labels.numpy(),
        "classes": np.array(data.classes),
        "loss": both([seen.losses for seen in epoch.seen]),
        "by_loss": both(epoch.by_loss),
        "suggested": both([seen.predicted for seen in epoch.seen]),
        "confidence": both([seen.probs.max(1).values for seen in epoch.seen]),
    }
    if epoch.by_prototype:
        arrays["by_prototype"] = both(epoch.by_prototype)
    kept = {name: value.numpy() for name, value in history.state_dict().items() if name != "stride"}
    if not epoch.by_prototype:
        kept.pop("by_prototype", None)
    folder.write_arrays(folder.scores, arrays | {f"history_{name}": value for name, value in kept.items()})


def write_model(folder: RunFolder, config: Config, learners: Sequence[Learner], collection: Collection) -> None:
    """Both networks and their prototypes, with all that is needed to look at new pictures."""
    weights = as_bytes(model_tensors(learners))
    atomic.write_bytes(folder.model, weights)
    facts = model_facts(config, learners, collection) | {"sha256": hashlib.sha256(weights).hexdigest()}
    folder.write_json(folder.model_facts, facts)


def model_tensors(learners: Sequence[Learner]) -> dict[str, torch.Tensor]:
    """What looking needs of both learners' state, on the host."""
    tensors: dict[str, torch.Tensor] = {}
    for learner in learners:
        state = learner.state_dict()
        wanted = {k: v for k, v in state.items() if k.startswith(("network.", "judge.projector.", "judge.prototypes"))}
        tensors |= {f"{learner.number}.{name}": value.detach().cpu().contiguous() for name, value in wanted.items()}
    return tensors


def model_facts(config: Config, learners: Sequence[Learner], collection: Collection) -> dict[str, Any]:
    """What model.json says of the tensors."""
    return {
        "labelsieve": __version__,
        "network": config.network,
        "networks": len(learners),
        "shape": list(collection.train.shape),
        "classes": list(collection.train.classes),
        "mean": list(collection.mean),
        "std": list(collection.std),
        "cleaner": config.cleaner,
        "cosine": 0.0 if learners[0].judge is None else learners[0].judge.cosine,
    }
