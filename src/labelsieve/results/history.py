"""How each sample's scores moved over training, in bounded memory: full detail at first, every second snapshot dropped when full.

Of each opinion a float16 table (S, R, N) and its epochs, S within a bound. Beside them what was believed of every given label
in the last five verdicts, (N,) each, and by the second voice (the prototypes) in the first.
"""

from collections.abc import Mapping

import numpy as np
import torch
from torch import Tensor

from labelsieve.methods.contract import Verdict
from labelsieve.methods.epochs import Epoch

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
        self.epochs.append(epoch)
        for name, chances in opinions.items():
            self.opinions.setdefault(name, []).append(_snapshot(chances))

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
