"""How each sample's scores moved over training, in bounded memory: full detail at first, every second snapshot dropped when full.

By-loss and by-prototype chances (2, N) go in each epoch; (S, 2, N) float16 tables and their epochs come out, S within a bound.
Beside them what was believed of every given label in the last five divisions, (N,) each, and by the prototypes in the first.
"""

from collections.abc import Mapping

import torch
from torch import Tensor

RECENT = 5


class ScoreHistory:
    """Keeps every `stride`-th epoch; when `room` snapshots are kept, the stride doubles and every second one goes."""

    def __init__(self, samples: int, mib: int) -> None:
        per_snapshot = samples * 2 * 2 * 2  # two tables, two networks, two bytes
        self.room = max(4, min(64, mib * 2**20 // max(per_snapshot, 1))) // 2 * 2
        self.stride = 1
        self.epochs: list[int] = []
        self.by_loss: list[Tensor] = []
        self.by_prototype: list[Tensor] = []
        self.recent: list[Tensor] = []  # shares of the given label, (N,), the newest last
        self.first: Tensor | None = None  # the prototypes' own ones when the warm-up was over, (N,)
        self.divisions = 0  # so far

    def remember(self, shares: Tensor, by_prototypes: Tensor | None = None) -> None:
        self.recent = [*self.recent, shares.half()][-RECENT:]
        if self.divisions == 0 and by_prototypes is not None:
            self.first = by_prototypes.half()
        self.divisions += 1

    @property
    def past(self) -> Tensor | None:
        """What the prototypes gave in the first division, once it is none of the recent ones."""
        return self.first if self.divisions > RECENT else None

    def add(self, epoch: int, by_loss: tuple[Tensor, ...], by_prototype: tuple[Tensor, ...]) -> None:
        if not by_loss or epoch % self.stride:
            return
        if len(self.epochs) == self.room:
            self.stride *= 2
            keep = [i for i, old in enumerate(self.epochs) if old % self.stride == 0]
            self.epochs = [self.epochs[i] for i in keep]
            self.by_loss = [self.by_loss[i] for i in keep]
            self.by_prototype = [self.by_prototype[i] for i in keep]
            if epoch % self.stride:
                return
        self.epochs.append(epoch)
        self.by_loss.append(_snapshot(by_loss))
        self.by_prototype.append(_snapshot(by_prototype or by_loss))

    def state_dict(self) -> dict[str, Tensor]:
        recent = {"recent": torch.stack(self.recent), "divisions": torch.tensor(self.divisions)} if self.recent else {}
        recent |= {} if self.first is None else {"first": self.first}
        if not self.epochs:
            return recent | {"stride": torch.tensor(self.stride)}
        return recent | {
            "stride": torch.tensor(self.stride),
            "epochs": torch.tensor(self.epochs),
            "by_loss": torch.stack(self.by_loss),
            "by_prototype": torch.stack(self.by_prototype),
        }

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        if not state:  # a slim checkpoint has none
            return
        self.stride = int(state["stride"])
        self.recent = list(state["recent"]) if "recent" in state else []
        self.first = state.get("first")
        self.divisions = int(state["divisions"]) if "divisions" in state else len(self.recent)
        if "epochs" in state:
            self.epochs = state["epochs"].tolist()
            self.by_loss = list(state["by_loss"])
            self.by_prototype = list(state["by_prototype"])


def _snapshot(chances: tuple[Tensor, ...]) -> Tensor:
    return torch.stack([chance.cpu().half() for chance in chances])
