"""Which rows an epoch sees: by class, at random, all; and what the algorithm makes of two draws."""

import pytest
import torch
from tiny_run import Tiny, by, seen, tiny, verdict

from labelsieve.methods.parts import streams
from labelsieve.methods.parts.streams import BalancedBatches, EveryRow, RandomBatches

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


def drawn(run: Tiny, epoch: int, r: int) -> torch.Tensor:
    training, method = run.method.training, run.method
    rows: torch.Tensor = training.sampler.rows(method.facts.given, 8, method.stream(streams.DRAW, epoch, run.nets[r]))
    return rows


def test_each_network_draws_its_own_rows_each_epoch_and_draws_them_again() -> None:
    run = tiny(sampler=BalancedBatches(2))
    draws = {(epoch, r): drawn(run, epoch, r) for epoch in (1, 2) for r in (0, 1)}
    assert len({str(rows.tolist()) for rows in draws.values()}) == 4
    assert torch.equal(drawn(run, 1, 0), draws[1, 0])


def test_what_a_network_trains_on_its_peer_has_judged() -> None:
    run = tiny(sampler=RandomBatches(3))
    judged = run.method.stage_one(5, run.engine)
    for number, peer in ((0, 1), (1, 0)):
        theirs = drawn(run, 5, peer)
        assert torch.equal(judged.rows[number], theirs)
        assert torch.equal(judged.seen[number].labels, run.engine.labels[theirs])
        assert len(judged.opinions["loss"][number]) == len(judged.opinions["prototype"][number]) == 3 * 8
        fresh = run.engine.evidence(run.nets[number], theirs)
        assert torch.allclose(fresh.losses, judged.seen[number].losses)


def test_a_run_on_draws_has_steps_of_one_number_and_judges_all_rows_at_its_end() -> None:
    run = tiny(sampler=RandomBatches(2), mixture_threshold=0.0, prototype_warmup=9)
    *epochs, final = run.epochs()
    assert all(len(each.values) == 2 for epoch in epochs if epoch.phase == "warm-up" for each in epoch.trained)
    assert all(len(rows) == 2 * 8 for epoch in epochs[2:] for rows in verdict(epoch).rows)
    assert verdict(final).rows == () and [len(chances) for chances in by(final, "loss")] == [60, 60]
    assert seen(final)[0].features.dtype == torch.float16


def test_judging_in_blocks_is_judging(monkeypatch: pytest.MonkeyPatch) -> None:
    run = tiny()
    run.method.stage_one(1, run.engine)
    whole = run.method.judge_all(run.engine)
    monkeypatch.setattr("labelsieve.methods.dividemix.BLOCK", 7)
    parts = run.method.judge_all(run.engine)
    assert whole.opinions.keys() == parts.opinions.keys() == {"loss", "prototype"}
    for name in whole.opinions:
        for one, other in zip(whole.opinions[name], parts.opinions[name]):
            assert torch.allclose(one, other, atol=1e-5)
    for one, again in zip(whole.seen, parts.seen):
        assert torch.equal(one.labels, again.labels) and torch.allclose(one.probs, again.probs, atol=1e-5)
        assert again.features.dtype == torch.float16 and torch.allclose(one.features, again.features, atol=1e-2)


def test_pinned_labels_are_pinned_in_a_draw() -> None:
    pinned = torch.arange(60) % 3 == 0
    run = tiny(sampler=RandomBatches(3), pinned=pinned)
    judged = run.method.stage_one(1, run.engine)
    for rows, chances in zip(judged.rows, judged.opinions["loss"]):
        assert (chances[pinned[rows]] == 1).all()
