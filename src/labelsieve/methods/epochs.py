"""The loop: a method's phases are run epoch by epoch, and each epoch is yielded. The caller logs, saves, stops."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from labelsieve.methods.contract import Look, Method, Phase, Verdict
from labelsieve.methods.net import layers_drawing_from
from labelsieve.methods.parts.streams import LAYERS, seeded

CHUNK = 32  # steps whose views are made in one go; part of a run's identity, like the stream names
RECENT = 5  # of the last so many epochs the list of labels remembers what was believed
WARM_UP, FINAL = "warm-up", "final"


class Engine(Look, Protocol):
    """What running a phase needs of a device, beside looks."""

    def view(self, rows: Tensor, kind: str, generator: torch.Generator) -> Tensor:
        """Views (M, C, H, W) of the training samples `rows` (M,): plain, weak or strong."""

    def prepare(self, phase: Phase) -> "Prepared":
        """The phase's step in the fastest form the device has."""

    @property
    def ranks(self) -> "Together":
        """This process among those that train."""


class Together(Protocol):
    """The processes that share each step; mostly one."""

    @property
    def draws(self) -> tuple[int, ...]:
        """By what layers that draw do so otherwise than in the other processes."""

    def agreed(self, phase: Phase) -> Phase:
        """The phase as all of them run it."""

    def settle(self, phase: Phase) -> None:
        """Make nets alike that have gone through a phase."""


class Prepared(Protocol):
    """A step that takes the inputs in the phase's order and returns its terms as one tensor (T,); `terms` are their names."""

    @property
    def terms(self) -> tuple[str, ...]: ...

    def __call__(self, *inputs: Tensor) -> Tensor: ...


class Diverged(Exception):
    """A loss stopped being a number; the weights of this epoch are lost, the ones before it are not."""

    def __init__(self, epoch: int, network: int, step: int, steps: int) -> None:
        super().__init__(f"the loss of network {network + 1} is not finite at epoch {epoch + 1}, step {step + 1} of {steps}")
        self.epoch, self.network, self.step = epoch, network, step


@dataclass(frozen=True, eq=False)
class Trained:
    """What a phase left: each of its steps' loss terms, (S, T)."""

    nets: tuple[int, ...]
    terms: tuple[str, ...]
    values: Tensor


@dataclass(frozen=True, eq=False)
class Epoch:
    """What an epoch leaves for the caller. The last one (`final`) trains nothing and judges all labels."""

    index: int
    phase: str  # the name of its last phase, or "final"
    trained: tuple[Trained, ...] = ()
    verdict: Verdict | None = None  # where labels were judged, before they were trained on


def learn(method: Method, engine: Engine, start: int = 0, stop: int | None = None) -> Iterator[Epoch]:
    """Train from epoch `start` on (the method carries what came before), then judge all labels once more for the record.

    With `stop`, only the epochs before it: a caller may look at the networks there and go on with other settings.
    """
    for epoch in range(start, method.training.epochs if stop is None else stop):
        yield _epoch(method, engine, epoch)
    if stop is None:
        yield Epoch(method.training.epochs, FINAL, (), method.verdict(engine))


def verdict_now(method: Method, look: Look) -> Verdict:
    """A verdict that leaves no trace: what the method learns for it is forgotten."""
    before = {name: value.detach().clone() for name, value in method.state_dict().items()}
    found = method.verdict(look)
    method.load_state_dict(before)
    return found


def _epoch(method: Method, engine: Engine, epoch: int) -> Epoch:
    names, left, verdict = [], [], None
    turns = Counter[int]()
    for found in method.phases(epoch, engine):
        if isinstance(found, Verdict):
            verdict = found
            continue
        first = found.nets[0].number
        names.append(found.name)
        left.append(run(found, engine, method.training.seed, epoch, turns[first]))
        turns[first] += 1
    # Nothing comes back to the host before all phases are queued: it plans the next one while a device runs the last.
    trained = finite(left, epoch)
    phase = names[-1]
    if verdict is None and phase != WARM_UP and epoch >= method.training.epochs - RECENT:
        verdict = verdict_now(method, engine)
    return Epoch(epoch, phase, trained, verdict)


def run(phase: Phase, engine: Engine, seed: int, epoch: int, turn: int = 0) -> Trained:
    """All steps of a phase, queued. `turn` counts the phases that trained the same net before in this epoch."""
    phase = engine.ranks.agreed(phase)
    for net in phase.nets:
        net.train()
    for peer in phase.peers:
        peer.network.eval()
    number = phase.nets[0].number
    step = engine.prepare(phase)
    terms = []
    draws = seeded(seed, LAYERS, epoch, number, turn, *engine.ranks.draws)
    with layers_drawing_from(draws, phase.nets[0].mean.device):
        for chunk, first in enumerate(range(0, phase.steps, CHUNK)):
            some = slice(first, min(first + CHUNK, phase.steps))
            terms += [step(*inputs) for inputs in inputs_of(phase, some, engine, (seed, epoch, number, chunk, turn))]
    engine.ranks.settle(phase)
    return Trained(tuple(net.number for net in phase.nets), step.terms, torch.stack(terms))


def inputs_of(phase: Phase, some: slice, engine: Engine, where: tuple[int, int, int, int, int]) -> Iterator[tuple[Tensor, ...]]:
    """The inputs of some steps, in the phase's order. Their views are made in bulk, and views of the same rows fetched once.

    `where` is (seed, epoch, net, chunk, turn): by these, their purpose, and how many like them came before, views are varied.
    """
    seed, epoch, number, chunk, turn = where
    rows = {id(view.rows): view.rows[some].flatten() for view in phase.views.values()}
    inputs: list[Iterable[Tensor]] = []
    again: dict[int, int] = {}
    for view in phase.views.values():
        count = again.get(view.draws, 0)
        again[view.draws] = count + 1
        further = (turn, count) if turn or count else ()
        generator = seeded(seed, view.draws, epoch, number, chunk, *further)
        inputs.append(engine.view(rows[id(view.rows)], view.kind, generator).split(view.rows.shape[1]))
    inputs.extend(engine.place(tensor[some]) for tensor in phase.tensors.values())
    return zip(*inputs)


def finite(left: Sequence[Trained], epoch: int) -> tuple[Trained, ...]:
    """Each phase's loss terms on the host, or `Diverged`: the epoch's only look back at what the steps did."""
    found = tuple(Trained(each.nets, each.terms, each.values.cpu()) for each in left)
    for each in found:
        bad = torch.nonzero(~torch.isfinite(each.values).all(1)).flatten()
        if len(bad):
            raise Diverged(epoch, each.nets[0], int(bad[0]), len(each.values))
    return found


class Named:
    """A phase's step with its first arguments fixed: inputs come in order, terms go out as one tensor."""

    def __init__(self, phase: Phase) -> None:
        self.step, self.fixed = phase.step, phase.fixed
        self.inputs = (*phase.views, *phase.tensors)
        self.terms: tuple[str, ...] = ()

    def __call__(self, *inputs: Tensor) -> Tensor:
        found = self.step(*self.fixed, **dict(zip(self.inputs, inputs)))
        self.terms = tuple(found)
        return torch.stack([value.detach() for value in found.values()])
