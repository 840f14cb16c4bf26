"""What a run gives to people: scores.npz, the issues and the model, by the latest division, the networks and past scores.

The history of scores is bounded: full detail at first, every second snapshot dropped when it is full. Of each opinion it is a
float16 table (S, R, N) and its epochs; beside them what was believed of every given label in the last five verdicts, (N,) each,
and by the second voice (the prototypes) in the first.
"""

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
from labelsieve.issues.table import Columns, LabelIssues, can_write_parquet, rank
from labelsieve.issues.table import write_parquet as write_columns
from labelsieve.methods.contract import Method, Verdict
from labelsieve.methods.epochs import Epoch
from labelsieve.methods.parts.cleaners import Judge
from labelsieve.methods.parts.estimate import NoiseEstimate
from labelsieve.methods.parts.evidence import Evidence
from labelsieve.methods.parts.heads import HeldOut, label_share
from labelsieve.runs import atomic
from labelsieve.runs.features import backbone_of, is_frozen
from labelsieve.runs.findings import Findings
from labelsieve.runs.folder import RunFolder
from labelsieve.version import __version__

RECENT = 5
LEAST = 1e-4  # a share below it says no more than it: half of the precision that shares are remembered with


class ScoreHistory:
    """Keeps every `stride`-th epoch; when `room` snapshots are kept, the stride doubles and every second one goes."""

    def __init__(self, samples: int, mib: int) -> None:
        per_snapshot = samples * 2 * 2 * 2  # two tables, two networks, two bytes
        self.room = max(4, min(64, mib * 2**20 // max(per_snapshot, 1))) // 2 * 2
        self.stride = 1
        self.epochs: list[int] = []
        self.opinions: dict[str, list[Tensor]] = {}  # by name, in order: the one that counts last
        self.recent: list[Tensor] = []  # shares of the given label, (N,), the newest last
        self.first: Tensor | None = None  # the second voice's when the warm-up was over, (N,)
        self.divisions = 0  # so far

    def remember(self, shares: Tensor, second: Tensor | None = None) -> None:
        self.recent = [*self.recent, shares.half()][-RECENT:]
        if self.divisions == 0 and second is not None:
            self.first = second.half()
        self.divisions += 1

    @property
    def past(self) -> Tensor | None:
        """What the second voice gave in the first verdict, once it is none of the recent ones."""
        return self.first if self.divisions > RECENT else None

    def add(self, epoch: int, opinions: Mapping[str, tuple[Tensor, ...]]) -> None:
        if epoch % self.stride:
            return
        if len(self.epochs) == self.room:
            self.stride *= 2
            keep = [i for i, old in enumerate(self.epochs) if old % self.stride == 0]
            self.epochs = [self.epochs[i] for i in keep]
            self.opinions = {name: [table[i] for i in keep] for name, table in self.opinions.items()}
            if epoch % self.stride:
                return
        if self.opinions.keys() != opinions.keys():  # another cleaner goes on with the run (studies/branches.py)
            self.epochs, self.opinions = [], {name: [] for name in opinions}
        self.epochs.append(epoch)
        for name, chances in opinions.items():
            self.opinions[name].append(_snapshot(chances))

    @property
    def counting(self) -> Tensor | None:
        """The table (S, R, N) of the opinion that counts."""
        return torch.stack(list(self.opinions.values())[-1]) if self.epochs else None

    def state_dict(self) -> dict[str, Tensor]:
        recent = {"recent": torch.stack(self.recent), "divisions": torch.tensor(self.divisions)} if self.recent else {}
        recent |= {} if self.first is None else {"first": self.first}
        if not self.epochs:
            return recent | {"stride": torch.tensor(self.stride)}
        return (
            recent
            | {
                "stride": torch.tensor(self.stride),
                "epochs": torch.tensor(self.epochs),
            }
            | {f"by_{name}": torch.stack(table) for name, table in self.opinions.items()}
        )

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        if not state:  # a slim checkpoint has none
            return
        self.stride = int(state["stride"])
        if self.stride < 1:
            raise ValueError("the history's stride")
        self.recent = list(state["recent"]) if "recent" in state else []
        self.first = state.get("first")
        self.divisions = int(state["divisions"]) if "divisions" in state else len(self.recent)
        if "epochs" in state:
            self.epochs = state["epochs"].tolist()
            names = sorted((name for name in state if name.startswith("by_")), key=lambda name: (name != "by_loss", name))
            if len(names) == 2 and torch.equal(state[names[0]], state[names[1]]):  # of mixtures alone it was kept twice once
                del names[1]
            self.opinions = {name.removeprefix("by_"): list(state[name]) for name in names}


def _snapshot(chances: tuple[Tensor, ...]) -> Tensor:
    return torch.stack([chance.cpu().half() for chance in chances])


def label_score(verdict: Verdict, history: ScoreHistory) -> np.ndarray:
    """One number for each given label, (N,) in [0, 1], low = suspicious.

    The geometric mean of three opinions: the label's softmax share and its share in a softmax over the prototypes' scores, both
    over the last five verdicts and as means of both networks, and the latter in the first division, before mixed training could
    memorise any label. One firm doubt counts for more than in a plain mean: networks half believe labels that went to a
    neighbouring class, prototypes do not. studies/LOG.md says against what it was chosen (`studies/scores_study.py`).
    `history` holds this verdict's beliefs already, or none at all (a slim checkpoint).
    """
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
