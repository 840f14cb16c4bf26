"""Algorithm 1, "CPC based DivideMix", as a generator: every epoch is yielded; the caller logs, saves, draws, stops.

Line numbers are the listing's. Ruling 1 (PAPER.md): the prototypes of network r learn from the peer's mixture partition
first and judge afterwards, as section 4.1 says, where the listing's lines 8-9 judge before they learn; the recipe may say
otherwise in both.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from labelsieve.methods.learner import Learner
from labelsieve.methods.parts.estimate import contradicted
from labelsieve.methods.parts.evidence import Evidence
from labelsieve.methods.parts.prototypes import PrototypeCleaner
from labelsieve.methods.recipe import Recipe
from labelsieve.methods.stages import Division, Engine, cleaner_draws, drawn, train, warm_up, weak_features

PEERS = ((0, 1), (1, 0))
BLOCK = 32_768  # rows that are judged in one go where the set is too large to be gathered whole


class Diverged(Exception):
    """A loss stopped being a number; the weights of this epoch are lost, the ones before it are not."""

    def __init__(self, epoch: int, network: int, step: int, steps: int) -> None:
        super().__init__(f"the loss of network {network + 1} is not finite at epoch {epoch + 1}, step {step + 1} of {steps}")
        self.epoch, self.network, self.step = epoch, network, step


@dataclass(frozen=True)
class Epoch:
    """What an epoch leaves for the caller. In the warm-up there is no division; the last one (`final`) only divides."""

    index: int
    phase: str  # "warm-up", "mixture" or "prototypes" (which of them divided), "plain" (neither had a say), "final"
    terms: tuple[Tensor, ...] = ()  # each network's loss terms, (steps, 1) or (steps, 3)
    seen: tuple[Evidence, ...] = ()  # each network's evidence, gathered before it trained
    by_loss: tuple[Tensor, ...] = ()  # q(z'_i = 0) by each network's mixture, (N,)
    by_prototype: tuple[Tensor, ...] = ()  # q(z_i = 0) by each network's prototypes, (N,)
    rows: tuple[Tensor, ...] = ()  # the samples (M,) that each network judged, where it drew some; none: all, in order


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
            losses = [warm_up(learner, recipe, epoch, engine) for learner in learners]  # line 2
            yield Epoch(epoch, "warm-up", finite(losses, epoch, learners))
            continue
        judged = stage_one(learners, recipe, epoch, engine, pinned)
        if not _mixes(learners, recipe, epoch, judged):
            losses = [warm_up(learner, recipe, epoch, engine) for learner in learners]
            yield Epoch(epoch, "plain", finite(losses, epoch, learners), *judged)
            continue
        phase, divisions = divided(judged, recipe, epoch, pinned)
        for learner in learners:
            learner.has_mixed = True
        # Nothing comes back to the host until both have trained: it plans the second's epoch while a device trains the first.
        losses = [
            train(learners[r], learners[peer], division, prior, recipe, epoch, engine)  # line 24
            for (r, peer), division in zip(PEERS, divisions)
        ]
        yield Epoch(epoch, phase, finite(losses, epoch, learners), *judged)
    if stop is not None:
        return
    for learner in learners:  # a run taken up here has set no learning rate yet, and the prototypes learn once more
        learner.set_lr(recipe.lr_at(recipe.epochs - 1))
    judged = stage_one(learners, recipe, recipe.epochs, engine, pinned)
    yield Epoch(recipe.epochs, "final", (), *(judge_all(learners, engine, pinned) if judged.rows else judged))


class Judged(NamedTuple):
    """What each network makes of its rows: evidence and chances, (M,); `rows` as in `Epoch`."""

    seen: tuple[Evidence, ...]
    by_loss: tuple[Tensor, ...]
    by_prototype: tuple[Tensor, ...]
    rows: tuple[Tensor, ...] = ()


def divided(judged: Judged, recipe: Recipe, epoch: int, pinned: Tensor | None = None) -> tuple[str, list[Division]]:
    """Which of the two divides (lines 18-23), and what each network trains on: what its peer found. The host waits for it."""
    phase = "prototypes" if judged.by_prototype and recipe.divides_by_prototypes(epoch) else "mixture"
    chances, threshold = (
        (judged.by_prototype, recipe.tau) if phase == "prototypes" else (judged.by_loss, recipe.mixture_threshold)
    )
    divisions = []
    for _, peer in PEERS:
        rows = judged.rows[peer] if judged.rows else None
        clean = taken(chances[peer], threshold, at(pinned, rows), recipe.least_clean)
        divisions.append(Division(weighed(chances[peer], clean, threshold, recipe.least_clean), clean.cpu(), rows))
    return phase, divisions


def _mixes(learners: Sequence[Learner], recipe: Recipe, epoch: int, judged: Judged) -> bool:
    """Always, or once the networks have caught up with labels that may all be right, if there is time. What has begun goes on.

    Mixed epochs make networks contradict more labels at first, so that without a memory they would take turns with plain ones.
    Where it was told that plain ones go on to the end (nothing is to catch up with), they do, whatever was before.
    """
    if recipe.mixed or (learners[0].has_mixed and recipe.caught_up >= 0):
        return True
    return recipe.may_begin_to_mix(epoch) and _contradicted(judged) <= recipe.caught_up


def _contradicted(judged: Judged) -> float:
    """The share of labels that the networks would not have given: together, or each of its own draw."""
    each = [[seen] for seen in judged.seen] if judged.rows else [judged.seen]
    return sum(contradicted(seen) for seen in each) / len(each)


def stage_one(learners: Sequence[Learner], recipe: Recipe, epoch: int, engine: Engine, pinned: Tensor | None = None) -> Judged:
    """Both divisions, before either network trains: of all rows, or of a draw for each network that will train on it.

    Both networks look at both draws, so that the cross-over holds: what network r trains on, its peer has judged.
    """
    rows = [drawn(learner, recipe, epoch, engine, recipe.batch) for learner in learners]
    draws = [some for some in rows if some is not None]
    if not draws:
        return Judged(*divide(learners, recipe, epoch, engine, pinned))
    found = [divide(learners, recipe, epoch, engine, pinned, some) for some in draws]
    # Of what network r judged, the rows that its peer will train on.
    seen = tuple(found[peer][0][r] for r, peer in PEERS)
    by_loss = tuple(found[peer][1][r] for r, peer in PEERS)
    by_prototype = tuple(found[peer][2][r] for r, peer in PEERS if found[peer][2])
    return Judged(seen, by_loss, by_prototype, tuple(draws[peer] for _, peer in PEERS))


def judge_all(learners: Sequence[Learner], engine: Engine, pinned: Tensor | None = None) -> Judged:
    """Every row, judged in blocks by what the cleaners have learnt from draws; evidence comes to the host, features halved."""
    whole: list[tuple[Tensor, ...]] = []
    count = len(engine.given())
    for learner in learners:
        columns: tuple[Tensor, ...] = ()
        for rows in torch.arange(count).split(BLOCK):
            parts = _judged_block(learner, engine.gather(learner, rows), at(pinned, rows))
            # Filled block by block: blocks put together at the end would be there twice, gigabytes of features.
            columns = columns or tuple(part.new_empty(count, *part.shape[1:]) for part in parts)
            for column, part in zip(columns, parts):
                column[rows[0] : rows[-1] + 1] = part
        whole.append(columns)
    by_prototype = tuple(columns[5] for columns in whole if len(columns) > 5)
    return Judged(tuple(Evidence(*columns[:4]) for columns in whole), tuple(columns[4] for columns in whole), by_prototype)


def _judged_block(learner: Learner, seen: Evidence, pinned: Tensor | None) -> tuple[Tensor, ...]:
    """On the host: labels, losses, probs, features, chances by loss and, where the learner has prototypes, by those."""
    cleaners = (learner.teacher,) if learner.judge is None else (learner.teacher, learner.judge)
    chances = [pin(cleaner.judge(seen), pinned).cpu() for cleaner in cleaners]
    return seen.labels.cpu(), seen.losses.cpu(), seen.probs.cpu(), seen.features.half().cpu(), *chances


def divide(
    learners: Sequence[Learner],
    recipe: Recipe,
    epoch: int,
    engine: Engine,
    pinned: Tensor | None = None,
    rows: Tensor | None = None,
) -> tuple[tuple[Evidence, ...], tuple[Tensor, ...], tuple[Tensor, ...]]:
    """Stage 1: evidence, the chances by loss (lines 5-6), and those by prototypes that learn first (lines 12-15, 8-9)."""
    pinned = at(pinned, rows)
    seen = tuple(engine.gather(learner, rows) for learner in learners)
    for learner, evidence in zip(learners, seen):
        learner.teacher.learn(evidence)
    by_loss = tuple(pin(learner.teacher.judge(evidence), pinned) for learner, evidence in zip(learners, seen))
    by_prototype: tuple[Tensor, ...] = ()
    for r, peer in PEERS:
        judge = learners[r].judge
        if judge is None:
            continue
        teacher = peer if recipe.prototype_teacher == "peer" else r
        clean = taken(by_loss[teacher], recipe.mixture_threshold, pinned, recipe.least_clean)
        with cleaner_draws(recipe, epoch, learners[r]):
            # Prototypes that have learnt nothing yet have nothing to say: the first division is made after they did, always.
            # That may be later than the warm-up's end, in a branch of a run that had none; ours count what they have learnt.
            has_learnt = epoch > recipe.warmup and getattr(judge, "learnt_", 1) > 0
            before = judge.judge(seen[r]) if recipe.judge_first and has_learnt else None
            if recipe.prototype_views == "weak" and isinstance(judge, PrototypeCleaner):
                judge.learn(seen[r], clean, weak_features(learners[r], recipe, epoch, engine, rows))
            else:
                judge.learn(seen[r], clean)
            by_prototype += (pin(judge.judge(seen[r]) if before is None else before, pinned),)
    return seen, by_loss, by_prototype


def at(pinned: Tensor | None, rows: Tensor | None) -> Tensor | None:
    """The mask (N,) at some rows (M,), on the host."""
    return pinned if pinned is None or rows is None else pinned[rows.to(pinned.device)]


def pin(chances: Tensor, pinned: Tensor | None) -> Tensor:
    """The chances (N,) with 1 where the label is known to be right, so that w = 1 there and the label stands as it is."""
    return chances if pinned is None else torch.where(pinned, torch.ones_like(chances), chances)


def taken(chances: Tensor, threshold: float, pinned: Tensor | None, least: float = 0.0) -> Tensor:
    """Which labels (N,) count as clean: those strictly above the threshold, and the pinned ones even where it is 1.

    Two components are found in the losses of clean labels too. So the likeliest are taken until they are `least` of all.
    """
    above = chances > threshold
    count = round(least * len(chances))
    if count:
        above = above | (chances >= chances.sort(descending=True).values[count - 1])
    return above if pinned is None else above | pinned


def weighed(chances: Tensor, clean: Tensor, threshold: float, least: float) -> Tensor:
    """w (N,): the chances; for labels taken in spite of them, for the sake of the share `least`, that share.

    Otherwise these would be there with their guesses and not with their labels.
    """
    return torch.where(clean & (chances <= threshold), chances.clamp_min(least), chances) if least else chances


def finite(losses: Sequence[Tensor], epoch: int, learners: Sequence[Learner]) -> tuple[Tensor, ...]:
    """Each network's loss terms on the host, or `Diverged`: the epoch's only look back at what the steps did."""
    found = tuple(terms.cpu() for terms in losses)
    for terms, learner in zip(found, learners):
        bad = torch.nonzero(~torch.isfinite(terms).all(1)).flatten()
        if len(bad):
            raise Diverged(epoch, learner.number, int(bad[0]), len(terms))
    return found
