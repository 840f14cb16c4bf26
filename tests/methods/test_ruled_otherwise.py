"""Where the settings say otherwise than rulings 1 and 3: who teaches prototypes, when they judge, what they learn from."""

from copy import deepcopy

import torch
from tiny_run import Tiny, by, seen, tiny
from torch import Tensor

from labelsieve.methods.epochs import Epoch
from labelsieve.methods.parts import streams
from labelsieve.methods.parts.prototypes import PrototypeCleaner


def judges(run: Tiny) -> list[PrototypeCleaner]:
    return [judge for judge in run.judges if isinstance(judge, PrototypeCleaner)]


def divisions(run: Tiny) -> list[tuple[Epoch, list[PrototypeCleaner], list[PrototypeCleaner]]]:
    """Every divided epoch, with the prototypes as they were before it and as it left them."""
    found, before = [], deepcopy(judges(run))
    for epoch in run.epochs():
        after = deepcopy(judges(run))
        if by(epoch, "prototype"):
            found.append((epoch, before, after))
        before = after
    assert len(found) == 5
    return found


def same(one: PrototypeCleaner, other: PrototypeCleaner) -> bool:
    first, second = one.state_dict(), other.state_dict()
    return all(torch.equal(value, second[name]) for name, value in first.items())


def taught(judge: PrototypeCleaner, after: PrototypeCleaner, epoch: Epoch, r: int, clean: Tensor) -> PrototypeCleaner:
    again = deepcopy(judge)
    again.lr = after.lr
    again.learn(seen(epoch)[r], clean)
    return again


def test_prototypes_learn_from_the_peers_mixture_or_their_own_networks() -> None:
    for teacher in ("peer", "own"):
        run = tiny(mixture_threshold=0.4, prototype_teacher=teacher)
        told_apart = False
        for epoch, before, after in divisions(run):
            for r in (0, 1):
                own, peer = (by(epoch, "loss")[at] > 0.4 for at in (r, 1 - r))
                right, other = (own, peer) if teacher == "own" else (peer, own)
                assert same(taught(before[r], after[r], epoch, r, right), after[r])
                told_apart |= not same(taught(before[r], after[r], epoch, r, other), after[r])
        assert told_apart


def test_prototypes_may_judge_before_they_learn() -> None:
    """Algorithm 1's lines 8-9: this epoch's evidence, by what the epochs before it taught; only the first cannot be so."""
    for number, (epoch, before, after) in enumerate(divisions(tiny(judge_first=True))):
        for r in (0, 1):
            chances = by(epoch, "prototype")[r]
            assert torch.equal(chances, (before[r] if number else after[r]).judge(seen(epoch)[r]))
            assert number == 0 or not torch.equal(chances, after[r].judge(seen(epoch)[r]))


def test_prototypes_may_learn_from_weak_views() -> None:
    """Another view of every picture for each network and epoch; what is judged stays the plain picture."""
    run = tiny(prototype_views="weak")
    epoch, before, after = divisions(run)[-1]  # the final one: nothing has trained since it looked
    shown = []
    for r, net in enumerate(run.nets):
        generator = streams.seeded(run.method.training.seed, streams.WEAK_FEATURES, epoch.index, r, 0)
        shown.append(run.engine.predict(net, run.engine.weak(torch.arange(60), generator)).features)
        assert not torch.equal(shown[r], seen(epoch)[r].features)
        before[r].lr = after[r].lr
        before[r].learn(seen(epoch)[r], by(epoch, "loss")[1 - r] > run.method.c.mixture_threshold, shown[r])
        assert same(before[r], after[r])
        assert torch.equal(by(epoch, "prototype")[r], after[r].judge(seen(epoch)[r]))


def test_scores_that_are_remembered_are_those_of_plain_pictures() -> None:
    """Whatever prototypes learn from: the mean over the last epochs is of what was judged."""
    run = tiny()
    epoch, *_ = divisions(run)[0]
    one, clean = seen(epoch)[0], by(epoch, "loss")[1] > 0.5
    cleaner = PrototypeCleaner(dim=6, batch=16, memory=3)
    cleaner.learn(one, clean, one.features.flip(0))
    first = cleaner.judge(one)
    cleaner.learn(one, clean, one.features.flip(0))
    plain = deepcopy(cleaner)
    plain.past_ = None
    torch.testing.assert_close(cleaner.judge(one), (first + plain.judge(one)) / 2)
