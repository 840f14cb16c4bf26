"""Algorithm 1, "CPC based DivideMix", as a generator: every epoch is yielded; the caller logs, saves, draws, stops.

Line numbers are the listing's. Ruling 1 (PAPER.md): the prototypes of network r learn from the peer's mixture partition
first and judge afterwards, as section 4.1 says, where the listing's lines 8-9 judge before they learn.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from labelsieve.method.evidence import Evidence
from labelsieve.method.learner import Judge, Learner
from labelsieve.method.recipe import Recipe
from labelsieve.method.stages import Division, Engine, train, warm_up

PEERS = ((0, 1), (1, 0))


class Diverged(Exception):
    """A loss stopped being a number; the weights of this epoch are lost, the ones before it are not."""

    def __init__(self, epoch: int, network: int, step: int, steps: int) -> None:
        super().__init__(f"the loss of network {network + 1} is not finite at epoch {epoch + 1}, step {step + 1} of {steps}")
        self.epoch, self.network, self.step = epoch, network, step


@dataclass(frozen=True)
class Epoch:
    """What an epoch leaves for the caller. In the warm-up there is no division; the last one (`final`) only divides."""

    index: int
    phase: str  # "warm-up", "mixture" or "prototypes" (which of them divided), "final"
    terms: tuple[Tensor, ...] = ()  # each network's loss terms, (steps, 1) or (steps, 3)
    seen: tuple[Evidence, ...] = ()  # each network's evidence, gathered before it trained
    by_loss: tuple[Tensor, ...] = ()  # q(z'_i = 0) by each network's mixture, (N,)
    by_prototype: tuple[Tensor, ...] = ()  # q(z_i = 0) by each network's prototypes, (N,)


def learn(
    learners: Sequence[Learner],
    recipe: Recipe,
    engine: Engine,
    prior: Tensor,
    start: int = 0,
    pinned: Tensor | None = None,
    stop: int | None = None,
) -> Iterator[Epoch]:
    """Train both networks from epoch `start` on (they carry what came before), then divide once more for the record.

    `pinned` (N,) marks labels that are surely right: their chance of being clean is 1, whatever the cleaners say. With `stop`,
    only the epochs before it: a caller may look at the networks there and go on with another recipe.
    """
    for epoch in range(start, recipe.epochs if stop is None else stop):
        for learner in learners:
            learner.set_lr(recipe.lr_at(epoch))
        if epoch < recipe.warmup:
            terms = tuple(finite(warm_up(learner, recipe, epoch, engine), epoch, learner) for learner in learners)  # line 2
            yield Epoch(epoch, "warm-up", terms)
            continue
        seen, by_loss, by_prototype = divide(learners, recipe, engine, pinned)
        phase = "prototypes" if by_prototype and recipe.divides_by_prototypes(epoch) else "mixture"
        chances, threshold = (
            (by_prototype, recipe.tau) if phase == "prototypes" else (by_loss, recipe.mixture_threshold)  # lines 18-23
        )
        terms = ()
        for r, peer in PEERS:
            division = Division(chances[peer], taken(chances[peer], threshold, pinned))
            losses = train(learners[r], learners[peer], division, prior, recipe, epoch, engine)  # line 24
            terms += (finite(losses, epoch, learners[r]),)
        yield Epoch(epoch, phase, terms, seen, by_loss, by_prototype)
    if stop is not None:
        return
    for learner in learners:  # a run taken up here has set no learning rate yet, and the prototypes learn once more
        learner.set_lr(recipe.lr_at(recipe.epochs - 1))
    yield Epoch(recipe.epochs, "final", (), *divide(learners, recipe, engine, pinned))


def divide(
    learners: Sequence[Learner], recipe: Recipe, engine: Engine, pinned: Tensor | None = None
) -> tuple[tuple[Evidence, ...], tuple[Tensor, ...], tuple[Tensor, ...]]:
    """Stage 1: evidence, the chances by loss (lines 5-6), and those by prototypes that learn first (lines 12-15, 8-9)."""
    seen = tuple(engine.gather(learner) for learner in learners)
    for learner, evidence in zip(learners, seen):
        learner.teacher.learn(evidence)
    by_loss = tuple(pin(learner.teacher.judge(evidence), pinned) for learner, evidence in zip(learners, seen))
    jobs = [
        partial(judged, judge, seen[r], taken(by_loss[peer], recipe.mixture_threshold, pinned))
        for r, peer in PEERS
        if (judge := learners[r].judge) is not None
    ]
    return seen, by_loss, tuple(pin(chances, pinned) for chances in engine.together(jobs))


def judged(judge: Judge, seen: Evidence, clean: Tensor) -> Tensor:
    """Ruling 1: the prototypes learn from the peer's partition, then judge."""
    judge.learn(seen, clean)
    return judge.judge(seen)


def pin(chances: Tensor, pinned: Tensor | None) -> Tensor:
    """The chances (N,) with 1 where the label is known to be right, so that w = 1 there and the label stands as it is."""
    return chances if pinned is None else torch.where(pinned, torch.ones_like(chances), chances)


def taken(chances: Tensor, threshold: float, pinned: Tensor | None) -> Tensor:
    """Which labels (N,) count as clean: those strictly above the threshold, and the pinned ones even where it is 1."""
    return chances > threshold if pinned is None else (chances > threshold) | pinned


def finite(terms: Tensor, epoch: int, learner: Learner) -> Tensor:
    """The loss terms on the host, or `Diverged`: the epoch's only look back at what the steps did."""
    terms = terms.cpu()
    bad = torch.nonzero(~torch.isfinite(terms).all(1)).flatten()
    if len(bad):
        raise Diverged(epoch, learner.number, int(bad[0]), len(terms))
    return terms
