"""How each sample's scores moved over training, in bounded memory: full detail at first, every second snapshot dropped when full.

Of each opinion a float16 table (S, R, N) and its epochs, S within a bound. Beside them what was believed of every given label
in the last five verdicts, (N,) each, and by the second voice (the prototypes) in the first.
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
