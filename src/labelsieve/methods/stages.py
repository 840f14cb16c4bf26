"""The stages of an epoch: warm up, gather evidence, divide, train. They plan an epoch's rows and draws, then run its steps.

Everything random is drawn here, from streams named by (purpose, epoch, network, chunk), so an epoch draws the same
whatever ran before it and whatever device runs it. `Engine` is how pictures and steps reach a device.
"""

import math
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from labelsieve.methods.learner import Learner
from labelsieve.methods.parts import streams
from labelsieve.methods.parts.cleaners import ContrastiveCleaner, PrototypeCleaner
from labelsieve.methods.parts.dropout import layers_drawing_from
from labelsieve.methods.parts.evidence import Evidence
from labelsieve.methods.parts.mixmatch import mixing_shares, ramp
from labelsieve.methods.parts.subsets import cycled
from labelsieve.methods.recipe import Recipe
from labelsieve.methods.steps import mixed_step, warm_up_step

CHUNK = 32  # steps whose views are made in one go; part of a run's identity, like the stream names
LOOK = 4096  # samples whose weak views are looked at in one go; likewise
Step = Callable[..., Tensor]


class Engine(Protocol):
    """What the stages need of a device."""

    def weak(self, rows: Tensor, generator: torch.Generator) -> Tensor:
        """Weak views of the training pictures `rows` (M,), as bytes (M, C, H, W)."""

    def strong(self, rows: Tensor, generator: torch.Generator) -> Tensor:
        """Strong views of the same."""

    def prepare(self, learner: Learner, step: Step, *fixed: object) -> Step:
        """The step with its first arguments fixed, in the fastest form the device has."""

    def gather(self, learner: Learner, rows: Tensor | None = None) -> Evidence:
        """One plain pass over the training pictures, or those at `rows` (M,), in eval mode."""

    def features(self, learner: Learner, views: Tensor) -> Tensor:
        """What the network sees in views (M, C, H, W), in eval mode: (M, D)."""

    def place(self, tensor: Tensor) -> Tensor:
        """The tensor on the device."""

    def given(self) -> Tensor:
        """The given labels (N,), on the device."""

    def given_here(self) -> Tensor:
        """The same on the host, where they came from: read back, they would wait for all steps that are queued."""


@dataclass(frozen=True)
class Division:
    """One network's training set: `w` (M,) is the chance that a label is clean, `clean` (M,) those taken as labelled.

    `rows` (M,) are the samples they belong to, on the host; None: all of them, in order.
    """

    w: Tensor
    clean: Tensor
    rows: Tensor | None = None


def drawn(learner: Learner, recipe: Recipe, epoch: int, engine: Engine, batch: int) -> Tensor | None:
    """The rows (M,) that this network sees in this epoch, on the host; None: every row."""
    return recipe.sampler.rows(engine.given_here(), batch, _stream(recipe, epoch, learner, streams.DRAW))


def weak_features(learner: Learner, recipe: Recipe, epoch: int, engine: Engine, rows: Tensor | None = None) -> Tensor:
    """Features (M, D) of a weak view of every training picture, or of those at `rows` (M,): ruling 3's alternative."""
    rows = torch.arange(len(engine.given_here())) if rows is None else rows
    generator = _stream(recipe, epoch, learner, streams.WEAK_FEATURES)
    return torch.cat([engine.features(learner, engine.weak(some, generator)) for some in rows.split(LOOK)])


def warm_up(learner: Learner, recipe: Recipe, epoch: int, engine: Engine) -> Tensor:
    """Alg. 1 line 2: one epoch of cross-entropy on weak views. Loss terms of every step: (steps, 1)."""
    learner.network.train()
    step = engine.prepare(learner, warm_up_step, learner, recipe)
    labels = engine.given()
    batch = recipe.warmup_batch
    rows = drawn(learner, recipe, epoch, engine, batch)
    rows = torch.arange(len(labels)) if rows is None else rows
    order = cycled(rows, -(-len(rows) // batch) * batch, _stream(recipe, epoch, learner, streams.WARM_UP_ORDER))
    terms = []
    with _layers_draw(recipe, epoch, learner):
        for chunk, some in enumerate(order.split(CHUNK * batch)):
            views = engine.weak(some, _stream(recipe, epoch, learner, streams.WARM_UP_VIEWS, chunk))
            given = labels[engine.place(some)]
            terms += [step(x, y) for x, y in zip(views.split(batch), given.split(batch))]
    return torch.stack(terms)


def train(
    learner: Learner,
    peer: Learner,
    division: Division,
    prior: Tensor,
    recipe: Recipe,
    epoch: int,
    engine: Engine,
) -> Tensor:
    """Alg. 1 line 24, stage 2: one epoch of mixed steps on the peer's division. Loss terms of every step: (steps, 3)."""
    learner.network.train()
    peer.network.eval()
    step = engine.prepare(learner, mixed_step, learner, peer, recipe, prior)
    plan = epoch_plan(learner, division, recipe, epoch)
    labels, w = engine.given(), engine.place(division.w)
    if division.rows is not None:
        labels = labels[engine.place(division.rows)]
    terms = []
    with _layers_draw(recipe, epoch, learner):
        for chunk, first in enumerate(range(0, plan.steps, CHUNK)):
            some = slice(first, min(first + CHUNK, plan.steps))
            for inputs in _inputs(plan, some, labels, w, division.rows, recipe, epoch, learner, chunk, engine):
                terms.append(step(*inputs))
    return torch.stack(terms)


@dataclass(frozen=True)
class EpochPlan:
    """Which rows of the division meet in which step: rows (S, B), the pairing (S, 4B), shares and lambda_u (S,)."""

    steps: int
    labelled: Tensor
    unlabelled: Tensor
    partners: Tensor
    shares: Tensor
    lambdas: Tensor


def epoch_plan(learner: Learner, division: Division, recipe: Recipe, epoch: int) -> EpochPlan:
    clean = division.clean.cpu()  # there already, or the host would wait for all that is queued
    x, u = torch.nonzero(clean).flatten(), torch.nonzero(~clean).flatten()
    if len(x) == 0:  # nothing is clean: the likeliest batch keeps the network moving (ruling 9)
        x = division.w.cpu().argsort(descending=True, stable=True)[: recipe.batch]
    if len(u) == 0:
        u = torch.arange(len(clean))
    batch = recipe.batch
    steps = math.ceil(len(x) / batch)
    generator = _stream(recipe, epoch, learner, streams.PLAN)
    labelled = cycled(x, steps * batch, generator).view(steps, batch)
    unlabelled = cycled(u, steps * batch, generator).view(steps, batch)
    partners = torch.stack([torch.randperm(4 * batch, generator=generator) for _ in range(steps)])
    shares = mixing_shares(steps, recipe.beta, generator)
    progress = [ramp(epoch + i / steps, recipe.warmup, recipe.ramp_epochs) for i in range(steps)]
    lambdas = recipe.lambda_u * torch.tensor(progress)
    return EpochPlan(steps, labelled, unlabelled, partners, shares, lambdas)


def _inputs(
    plan: EpochPlan,
    some: slice,
    labels: Tensor,
    w: Tensor,
    samples: Tensor | None,
    recipe: Recipe,
    epoch: int,
    learner: Learner,
    chunk: int,
    engine: Engine,
) -> Iterator[tuple[Tensor, ...]]:
    """The inputs of some steps, their views made in bulk: each step's pictures stand together as x1, x2, u1, u2."""
    x, u = plan.labelled[some], plan.unlabelled[some]
    rows = torch.stack((x, x, u, u), 1).flatten()
    rows = rows if samples is None else samples[rows]
    weak = engine.weak(rows, _stream(recipe, epoch, learner, streams.WEAK, chunk))
    strong = engine.strong(rows, _stream(recipe, epoch, learner, streams.STRONG, chunk)) if recipe.strong_views else weak
    placed = engine.place(x)
    partners, shares, lambdas = (engine.place(t[some]) for t in (plan.partners, plan.shares, plan.lambdas))
    size = 4 * recipe.batch
    return zip(weak.split(size), strong.split(size), labels[placed], w[placed], partners, shares, lambdas)


def _stream(recipe: Recipe, epoch: int, learner: Learner, purpose: int, chunk: int = 0) -> torch.Generator:
    return streams.seeded(recipe.seed, purpose, epoch, learner.number, chunk)


def cleaner_draws(recipe: Recipe, epoch: int, learner: Learner) -> AbstractContextManager[None]:
    """Inside, a user's cleaner that draws from torch's own generator does so by epoch and network; ours never do."""
    if type(learner.judge) in (PrototypeCleaner, ContrastiveCleaner):
        return nullcontext()
    return layers_drawing_from(_stream(recipe, epoch, learner, streams.CLEANER), learner.mean.device)


def _layers_draw(recipe: Recipe, epoch: int, learner: Learner) -> AbstractContextManager[None]:
    return layers_drawing_from(_stream(recipe, epoch, learner, streams.LAYERS), learner.mean.device)
