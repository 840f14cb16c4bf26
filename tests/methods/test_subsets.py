"""Which rows an epoch sees: by class, at random, all; and what the algorithm makes of two draws."""

from dataclasses import replace

import pytest
import torch
from tiny_run import tiny

from labelsieve.methods.algorithm import judge_all, learn, stage_one
from labelsieve.methods.parts import streams
from labelsieve.methods.parts.subsets import BalancedBatches, EveryRow, RandomBatches
from labelsieve.methods.stages import drawn

LABELS = torch.tensor([0] * 90 + [1] * 30 + [3] * 5)


def generator(seed: int = 0) -> torch.Generator:
    return streams.seeded(seed)


def test_balanced_batches_hold_as_many_of_each_class() -> None:
    rows = BalancedBatches(5).rows(LABELS, 4, generator())
    assert torch.bincount(LABELS[rows]).tolist() in ([7, 7, 0, 6], [7, 6, 0, 7], [6, 7, 0, 7])
    assert len(rows) == 20 and torch.equal(rows, rows.sort().values)
    few, many = rows[LABELS[rows] == 3], rows[LABELS[rows] == 0]
    assert len(set(few.tolist())) == 5, "a class that has too few gives all of them, and some twice"
    assert len(set(many.tolist())) == len(many)


def test_random_batches_are_drawn_without_putting_back() -> None:
    rows = RandomBatches(10).rows(LABELS, 4, generator())
    assert len(set(rows.tolist())) == 40 and not torch.equal(rows, RandomBatches(10).rows(LABELS, 4, generator(1)))
    over = RandomBatches(100).rows(LABELS, 4, generator())
    assert torch.bincount(over).tolist() and torch.bincount(over).min() == 3 and torch.bincount(over).max() == 4
    assert EveryRow().rows(LABELS, 4, generator()) is None


def test_each_network_draws_its_own_rows_each_epoch_and_draws_them_again() -> None:
    run = tiny()
    recipe = replace(run.recipe, sampler=BalancedBatches(2))
    draws = {
        (epoch, learner.number): drawn(learner, recipe, epoch, run.engine, 8) for epoch in (1, 2) for learner in run.learners
    }
    texts = {str(rows.tolist()) for rows in draws.values() if rows is not None}
    assert len(texts) == 4
    again = drawn(run.learners[0], recipe, 1, run.engine, 8)
    assert again is not None and torch.equal(again, draws[1, 0])


def test_what_a_network_trains_on_its_peer_has_judged() -> None:
    run = tiny()
    recipe = replace(run.recipe, sampler=RandomBatches(3))
    judged = stage_one(run.learners, recipe, 5, run.engine)
    for number, peer in ((0, 1), (1, 0)):
        theirs = drawn(run.learners[peer], recipe, 5, run.engine, recipe.batch)
        assert theirs is not None and torch.equal(judged.rows[number], theirs)
        assert torch.equal(judged.seen[number].labels, run.engine.given()[theirs])
        assert len(judged.by_loss[number]) == len(judged.by_prototype[number]) == 3 * recipe.batch
        fresh = run.engine.gather(run.learners[number], theirs)
        assert torch.allclose(fresh.losses, judged.seen[number].losses)


def test_a_run_on_draws_has_steps_of_one_number_and_judges_all_rows_at_its_end() -> None:
    run = tiny()
    recipe = replace(run.recipe, sampler=RandomBatches(2), mixture_threshold=0.0, prototype_warmup=9)
    *epochs, final = learn(run.learners, recipe, run.engine, run.prior)
    assert all(len(terms) == 2 for epoch in epochs if epoch.phase == "warm-up" for terms in epoch.terms)
    assert all(len(rows) == 2 * recipe.batch for epoch in epochs for rows in epoch.rows)
    count = len(run.engine.given())
    assert final.rows == () and [len(chances) for chances in final.by_loss] == [count, count]
    assert final.seen[0].features.dtype == torch.float16


def test_judging_in_blocks_is_judging(monkeypatch: pytest.MonkeyPatch) -> None:
    run = tiny()
    stage_one(run.learners, run.recipe, 1, run.engine)
    whole = judge_all(run.learners, run.engine)
    monkeypatch.setattr("labelsieve.methods.algorithm.BLOCK", 7)
    parts = judge_all(run.learners, run.engine)
    for one, other in zip((*whole.by_loss, *whole.by_prototype), (*parts.by_loss, *parts.by_prototype)):
        assert torch.allclose(one, other, atol=1e-5)
    for seen, again in zip(whole.seen, parts.seen):
        assert torch.equal(seen.labels, again.labels) and torch.allclose(seen.probs, again.probs, atol=1e-5)
        assert again.features.dtype == torch.float16 and torch.allclose(seen.features, again.features, atol=1e-2)


def test_pinned_labels_are_pinned_in_a_draw() -> None:
    run = tiny()
    pinned = torch.arange(len(run.engine.given())) % 3 == 0
    judged = stage_one(run.learners, replace(run.recipe, sampler=RandomBatches(3)), 1, run.engine, pinned)
    for rows, chances in zip(judged.rows, judged.by_loss):
        assert (chances[pinned[rows]] == 1).all()
