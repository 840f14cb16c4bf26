"""Cleaners: from `Evidence` to q(z_i = 0), the chance that label i is clean; and those that users register by name.

`MixtureCleaner` judges by the loss, `PrototypeCleaner` (CPC) and `ContrastiveCleaner` by class prototypes. Cleaners see
tensors, never pictures or networks, so they work alone on anybody's embeddings. A user's own takes the place of prototypes.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any, Protocol

import torch
from torch import Tensor

from labelsieve.errors import UsageError, suggest
from labelsieve.methods import CLEANERS
from labelsieve.methods.net import as_it_is, layers_drawing_from
from labelsieve.methods.parts.contrastive import ContrastiveCleaner
from labelsieve.methods.parts.evidence import AXES, Evidence
from labelsieve.methods.parts.mixture import MixtureCleaner
from labelsieve.methods.parts.prototypes import PrototypeCleaner
from labelsieve.methods.parts.sgd import Prepare, plainly
from labelsieve.methods.parts.streams import WEIGHTS, seeded

__all__ = ["Cleaner", "ContrastiveCleaner", "Evidence", "Judge", "MixtureCleaner", "PrototypeCleaner"]


class Cleaner(Protocol):
    """Gives q(z_i = 0), the chance that label i is clean."""

    def learn(self, seen: Evidence, clean: Tensor | None = None) -> None:
        """May change state. `clean` (N,) is a teacher's partition, for cleaners that learn from one."""

    def judge(self, seen: Evidence) -> Tensor:
        """q (N,) in [0, 1]; never changes state."""

    def state_dict(self) -> dict[str, Tensor]:
        """All that `learn` changed, as tensors."""

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """Take up where another cleaner of the same settings stood."""


class Judge(Cleaner, Protocol):
    """A cleaner by prototypes, or in their place: its learning rate drops with the network's, and most can classify."""

    lr: float
    prepare: Prepare
    inner: Callable[..., Tensor]  # the function of tensors that most of a step is

    @property
    def cosine(self) -> float:
        """0 for plain products of embeddings and prototypes, else the scale of their cosine."""

    def classify(self, features: Tensor) -> Tensor | None:
        """Scores (N, K) of features (N, D); None from a cleaner that judges given labels only."""


Make = Callable[..., Cleaner]
REGISTERED: dict[str, Make] = {}
VERBS = ("learn", "judge", "state_dict", "load_state_dict")


def register_cleaner(name: str, make: Make) -> None:
    """Make a cleaner of yours known by a name, for the setting `cleaner` of runs and fits begun from Python.

    `make(seed=...)` is called once for each of the two networks and gives an object with the verbs of
    `labelsieve.methods.parts.cleaners.Cleaner`. Every epoch after the warm-up it learns from its network's evidence and the
    partition (N,) that the peer's mixture makes (`cleaning.prototype_teacher=own`: its own network's), and judges; after
    `cleaning.prototype_warmup` of all epochs its chances divide, at `cleaning.tau`. Its numbers stand where those of
    prototypes do (`auc_prototype`, `by_prototype`). The mixture is one for each class where the name ends in -awr. Whoever
    resumes such a run must have registered it too. Registered again, a name means the newer one. What it draws from torch's own
    generator it draws by the run's seed, the epoch and the network.
    """
    if name in CLEANERS:
        raise UsageError(f'a cleaner "{name}" is known already; choose another name')
    if not callable(make):
        raise UsageError(f'cleaner "{name}": {make!r} cannot be called; give a function, as in lambda seed: MyCleaner()')
    REGISTERED[name] = make


def check_cleaner(name: str) -> None:
    """A `UsageError` for a name that no cleaner has."""
    known = (*CLEANERS, *REGISTERED)
    if name not in known:
        raise UsageError(
            f'cleaner "{name}" is not known{suggest(name, known)}; there are: {", ".join(known)}; '
            f"one of your own comes through labelsieve.register_cleaner, in Python"
        )


def own_cleaner(name: str, seed: int) -> Judge:
    """The registered cleaner, newly made; one made of ours stays itself, for it classifies too. Torch draws by the seed."""
    check_cleaner(name)
    try:
        with layers_drawing_from(seeded(seed, WEIGHTS), torch.device("cpu")):
            made = REGISTERED[name](seed=seed)
    except TypeError as error:
        said = " ".join(str(error).split())[:300]
        raise UsageError(
            f'cleaner "{name}": its builder is called as in build(seed=0), and says: {said}; '
            f"one that needs no seed is lambda seed: MyCleaner()"
        ) from None
    missing = [verb for verb in VERBS if not callable(getattr(made, verb, None))]
    if missing:
        raise UsageError(f'cleaner "{name}": {type(made).__name__} has no {" and no ".join(missing)}; a cleaner has all of these')
    if not isinstance(made, (PrototypeCleaner, ContrastiveCleaner)):
        return OwnCleaner(name, made)
    made.learn = partial(_taught, name, made.learn)  # type: ignore[method-assign]
    made.judge = partial(_chances, name, made.judge)  # type: ignore[method-assign]
    return made


def _taught(name: str, learn: Callable[..., None], seen: Evidence, *more: Any) -> None:
    with _left_alone(name, "learn", seen):
        learn(seen, *more)


def _chances(name: str, judge: Callable[[Evidence], Any], seen: Evidence) -> Tensor:
    """What `judge` says of the labels, or a `UsageError`: other numbers would weigh labels without a word."""
    with _left_alone(name, "judge", seen):
        found = judge(seen)
    given = tuple(found.shape) if isinstance(found, Tensor) else type(found).__name__
    if given != (len(seen),):
        raise UsageError(f'cleaner "{name}": judge gave {given}; it must give a tensor ({len(seen)},), a chance a label')
    chances = found.detach().to(seen.labels.device, torch.float32)
    if not bool(((chances >= 0) & (chances <= 1)).all()):  # false for what is no number, too
        low, high = float(chances.min()), float(chances.max())
        raise UsageError(
            f'cleaner "{name}": judge gave values from {low:g} to {high:g}; chances that labels are clean '
            f"lie between 0 and 1, as torch.sigmoid makes them of scores"
        )
    return chances


@contextmanager
def _left_alone(name: str, verb: str, seen: Evidence) -> Iterator[None]:
    """A `UsageError` where evidence was changed in place: networks, measures and scores.npz go by the same tensors."""
    columns = {column: getattr(seen, column) for column in AXES}
    before = {column: values._version for column, values in columns.items()}
    yield
    changed = [column for column, values in columns.items() if values._version != before[column]]
    if changed:
        raise UsageError(
            f'cleaner "{name}": {verb} changed seen.{changed[0]} in place, and the run reads it afterwards; '
            f"work on seen.{changed[0]}.clone(), or use functions whose names do not end in _"
        )


class OwnCleaner:
    """A cleaner of the user's where prototypes would be: it judges labels, and what it gives is looked at. It cannot classify."""

    cosine = 0.0

    def __init__(self, name: str, cleaner: Cleaner) -> None:
        self.name = name
        self.cleaner = cleaner
        self.prepare = plainly
        self.inner: Callable[..., Any] = as_it_is  # engines put faster forms into both

    @property
    def lr(self) -> float:
        """The cleaner's own learning rate, if it has one: it drops with the network's."""
        return float(getattr(self.cleaner, "lr", 0.0))

    @lr.setter
    def lr(self, value: float) -> None:
        if hasattr(self.cleaner, "lr"):
            self.cleaner.lr = value

    def learn(self, seen: Evidence, clean: Tensor | None = None) -> None:
        _taught(self.name, self.cleaner.learn, seen, clean)

    def judge(self, seen: Evidence) -> Tensor:
        return _chances(self.name, self.cleaner.judge, seen)

    def classify(self, features: Tensor) -> None:
        """It judges labels only."""

    def state_dict(self) -> dict[str, Tensor]:
        """Under names that no part of ours has; copies, for two names may share a tensor."""
        state = self.cleaner.state_dict()
        if not isinstance(state, Mapping):
            raise UsageError(
                f'cleaner "{self.name}": its state_dict gave {type(state).__name__}; it must give a dict, if an empty one'
            )
        for name, value in state.items():
            if not isinstance(value, Tensor):
                raise UsageError(
                    f'cleaner "{self.name}": "{name}" in its state_dict is {type(value).__name__}; checkpoints hold tensors only'
                )
        return {f"own.{name}": value.detach().clone() for name, value in state.items()}

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        self.cleaner.load_state_dict({name.removeprefix("own."): value for name, value in state.items()})
