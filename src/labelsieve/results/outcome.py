"""What a run gives to people: scores.npz, the issues and the model, from the latest division and the networks."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import save as as_bytes
from torch import Tensor

from labelsieve.config.schema import Config
from labelsieve.data.noisy_data import Collection, NoisyData
from labelsieve.issues.reading import Columns, can_write_parquet
from labelsieve.issues.reading import write_parquet as write_columns
from labelsieve.issues.table import LabelIssues, rank
from labelsieve.methods.contract import Method, Verdict
from labelsieve.methods.parts.cleaners import Judge
from labelsieve.methods.parts.estimate import NoiseEstimate
from labelsieve.methods.parts.evidence import Evidence
from labelsieve.methods.parts.heads import HeldOut, label_share
from labelsieve.results.history import ScoreHistory, label_score
from labelsieve.runs import atomic
from labelsieve.runs.features import backbone_of, is_frozen
from labelsieve.runs.findings import Findings
from labelsieve.runs.folder import RunFolder
from labelsieve.version import __version__

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


@dataclass(frozen=True, eq=False)
class Outcome:
    """What a run found, as it stands: the verdict, the list that is ranked by it, and what reports and cautions read."""

    verdict: Verdict
    issues: LabelIssues
    found: Findings


def label_issues(
    verdict: Verdict,
    data: NoisyData,
    method: Method,
    history: ScoreHistory,
    paths: Sequence[str] | None,
    noise: NoiseEstimate,
    held: HeldOut | None = None,
) -> LabelIssues:
    """Ranked by `label_score`; the threshold is the one that divides. What is pinned is surely right: 1.

    Where there are `held`-out opinions, they rank and suggest alone: a network that trained on a label is no judge of it.

    No more are issues than are estimated to be wrong, by whoever knows best.
    """
    agree = agreement(verdict)
    if held is None:
        probs, chances = verdict.shares.numpy(), label_score(verdict, history)[None]
    else:
        probs, chances = held.probs.numpy(), label_share(held.probs, data.labels).numpy()[None]
        agree = agree & held.agree.numpy()
    if method.facts.pinned is not None:
        chances = np.where(method.facts.pinned.cpu().numpy(), 1.0, chances)
    return rank(
        data.ids,
        data.classes,
        data.labels.numpy(),
        probs,
        chances,
        verdict.threshold,
        agree=agree,
        paths=paths,
        evidence=columns(verdict, similarity(verdict, method), history),
        most=1.0 if noise.by == "division" else noise.share,
    )


def write_issues(folder: RunFolder, issues: LabelIssues) -> None:
    """issues.csv, and the same as issues.parquet where pyarrow is installed."""

    def write(draft: Path) -> None:
        with draft.open("w", encoding="utf-8", newline="") as file:
            file.writelines(issues.csv_lines())

    atomic.write_file(folder.issues, write)
    write_parquet(folder, issues.columns)


def write_parquet(folder: RunFolder, columns: Columns) -> None:
    if can_write_parquet():
        atomic.write_file(folder.issues_parquet, lambda draft: write_columns(columns, draft))


def scores_of(
    verdict: Verdict,
    data: NoisyData,
    method: Method,
    history: ScoreHistory,
    noise: NoiseEstimate,
    held: HeldOut | None = None,
) -> dict[str, np.ndarray]:
    """What scores.npz holds, row i for sample i: (R, N) for R networks, (N,) or (N, 5) for all, (S, R, N) over time.

    `estimate` (3,) is the share of wrong labels with its interval.
    """

    def each(tensors: Sequence[torch.Tensor]) -> np.ndarray:
        return torch.stack(list(tensors)).cpu().numpy()

    first, *others = verdict.opinions
    arrays = {
        "ids": np.array(data.ids),
        "given": data.labels.numpy(),
        "classes": np.array(data.classes),
        "loss": each([seen.losses for seen in verdict.seen]),
        f"by_{first}": each(verdict.opinions[first]),
        "suggested": each([seen.predicted for seen in verdict.seen]),
        "confidence": each([seen.probs.max(1).values for seen in verdict.seen]),
    }
    arrays |= {"networks_agree": agreement(verdict), **top_classes(verdict.shares.numpy())}
    if held is not None:
        arrays |= {**top_classes(held.probs.numpy()), "said_by_heads": held.said.numpy().astype(np.int32)}
    arrays |= {"estimate": np.array([noise.share, noise.low, noise.high]), "estimated_by": np.array(noise.by)}
    arrays |= {f"by_{name}": each(verdict.opinions[name]) for name in others}
    similar = similarity(verdict, method)
    if similar is not None:
        arrays |= {"similarity_given": similar.given, "similarity_best": similar.best, "nearest": similar.nearest}
    kept = {name: value.numpy() for name, value in history.state_dict().items() if name != "stride"}
    return arrays | {f"history_{name}": value for name, value in kept.items()}


def write_model(
    folder: RunFolder,
    config: Config,
    method: Method,
    collection: Collection,
    chosen: Mapping[str, torch.Tensor] | None = None,
) -> None:
    """All networks and their prototypes, with all that is needed to look at new pictures; as they are, or `chosen` ones."""
    weights = as_bytes(model_tensors(method) if chosen is None else dict(chosen))
    atomic.write_bytes(folder.model, weights)
    facts = model_facts(config, method, collection) | {"sha256": hashlib.sha256(weights).hexdigest()}
    folder.write_json(folder.model_facts, facts)


def model_tensors(method: Method) -> dict[str, torch.Tensor]:
    """What looking needs of a method's state, on the host."""
    tensors: dict[str, torch.Tensor] = {}
    for r, eye in enumerate(method.model):
        tensors |= {f"{r}.network.{name}": value for name, value in eye.network.state_dict().items()}
        judge = method.prototypes(r)
        state = {} if judge is None else judge.state_dict()
        tensors |= {f"{r}.judge.{k}": v for k, v in state.items() if k.startswith(("projector.", "prototypes"))}
    return {name: value.detach().cpu().contiguous() for name, value in tensors.items()}


def model_facts(config: Config, method: Method, collection: Collection) -> dict[str, Any]:
    """What model.json says of the tensors."""
    seen = {"backbone": backbone_of(config).facts()} if is_frozen(config) else {}
    return seen | {
        "labelsieve": __version__,
        "network": config.network,
        "networks": len(method.model),
        "shape": list(collection.train.shape),
        "fit": config.pictures.fit,
        "white": config.pictures.white,
        "crop": config.views.crop,
        "classes": list(collection.train.classes),
        "mean": list(collection.mean),
        "std": list(collection.std),
        "cleaner": config.cleaner,
        "cosine": 0.0 if (judge := method.prototypes(0)) is None else judge.cosine,
    }
