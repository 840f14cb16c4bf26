"""An epoch's plan: how many steps, which rows, how they are mixed, how lambda_u rises."""

import math

import pytest
import torch
from tiny_run import pictures, tiny

from labelsieve.methods import ce, dividemix, epochs
from labelsieve.methods.ce import plain_epoch
from labelsieve.methods.dividemix import Division, EpochPlan
from labelsieve.methods.parts import streams
from labelsieve.methods.parts.streams import cycled, seeded

NAMES = ("weak", "strong", "labels", "w", "partner", "share", "lambda_u", "lr")


def division(n: int, clean: int) -> Division:
    """Rows 0..clean-1 are clean; chances fall with the row."""
    mask = torch.arange(n) < clean
    return Division(torch.linspace(0.9, 0.1, n), mask)


def planned(division: Division, epoch: int = 2, r: int = 0, **changes: float) -> EpochPlan:
    run = tiny(**changes)  # type: ignore[arg-type]
    plan: EpochPlan = run.method.plan(run.nets[r], division, epoch)
    return plan


@pytest.mark.parametrize(("clean", "steps"), [(1, 1), (8, 1), (9, 2), (40, 5), (41, 6)])
def test_an_epoch_is_one_pass_over_the_clean_rows(clean: int, steps: int) -> None:
    plan = planned(division(60, clean))
    assert plan.steps == steps == math.ceil(clean / 8)
    assert plan.labelled.shape == plan.unlabelled.shape == (steps, 8)
    assert sorted(plan.labelled.flatten()[:clean].tolist()) == [*range(clean)]
    assert set(plan.labelled.flatten().tolist()) <= set(range(clean))
    assert set(plan.unlabelled.flatten().tolist()) <= set(range(clean, 60))


@pytest.mark.parametrize("clean", [30, 50, 57])
def test_unlabelled_rows_are_cycled_evenly(clean: int) -> None:
    plan = planned(division(60, clean))
    counts = torch.bincount(plan.unlabelled.flatten(), minlength=60)[clean:]
    assert int(counts.max()) - int(counts.min()) <= 1 and int(counts.sum()) == plan.steps * 8


def test_pairings_permute_all_views_and_shares_lie_above_a_half() -> None:
    plan = planned(division(60, 40))
    assert all(sorted(row.tolist()) == [*range(32)] for row in plan.partners)
    assert len({tuple(row.tolist()) for row in plan.partners}) == 5
    assert bool(((plan.shares >= 0.5) & (plan.shares <= 1)).all()) and len(set(plan.shares.tolist())) == 5


def test_lambda_rises_linearly_step_by_step_from_the_end_of_the_warm_up() -> None:
    """Warm-up 2, ramp 4 epochs, lambda_u 25, 5 steps an epoch: 25 / 20 more with every step, then 25."""
    found = [planned(division(60, 40), e, lambda_u=25.0, epochs=9).lambdas for e in range(2, 8)]
    expected = [25 * min(i / 20, 1.0) for i in range(30)]
    torch.testing.assert_close(torch.cat(found), torch.tensor(expected))


def test_nothing_clean_takes_the_likeliest_batch() -> None:
    plan = planned(division(60, 0))
    assert plan.steps == 1 and sorted(plan.labelled.flatten().tolist()) == [*range(8)]
    assert set(plan.unlabelled.flatten().tolist()) <= set(range(60))


def test_nothing_noisy_cycles_all_rows() -> None:
    plan = planned(division(60, 60))
    assert plan.steps == 8 and len(set(plan.unlabelled.flatten().tolist())) == 60


def test_plans_differ_between_networks_and_epochs_and_repeat_otherwise() -> None:
    plans = [planned(division(60, 40), e, r).labelled for r, e in ((0, 2), (0, 2), (1, 2), (0, 3))]
    assert torch.equal(plans[0], plans[1])
    assert not torch.equal(plans[0], plans[2]) and not torch.equal(plans[0], plans[3])


def test_cycled_makes_whole_passes() -> None:
    got = cycled(torch.tensor([5, 7, 9]), 8, seeded(0))
    assert len(got) == 8
    assert sorted(got[:3].tolist()) == sorted(got[3:6].tolist()) == [5, 7, 9]
    assert len(set(got[6:].tolist())) == 2


def test_views_and_targets_of_a_step_belong_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pictures that say their row: x1 and x2 agree, labels and chances are theirs, u are noisy ones."""
    run, seen = tiny(), []
    split = division(60, 40)

    def views(rows: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
        return rows.view(-1, 1, 1, 1).to(torch.uint8).expand(-1, 3, 8, 8)

    def step(one: object, peer: object, c: object, prior: object, **inputs: torch.Tensor) -> dict[str, torch.Tensor]:
        seen.append(inputs)
        return {"labelled": torch.zeros(())}

    monkeypatch.setattr(run.engine, "weak", views)
    monkeypatch.setattr(run.engine, "strong", views)
    monkeypatch.setattr(dividemix, "mixed_step", step)
    monkeypatch.setattr(epochs, "CHUNK", 2)
    run.mix(0, split, 2)
    assert len(seen) == 5
    rows_seen = []
    for inputs in seen:
        weak, strong, labels, w, partner, share, lambda_u, lr = (inputs[name] for name in NAMES)
        x1, x2, u1, u2 = weak[:, 0, 0, 0].long().split(8)
        assert torch.equal(x1, x2) and torch.equal(u1, u2) and torch.equal(weak, strong)
        assert torch.equal(labels, pictures().labels[x1]) and torch.equal(w, split.w[x1])
        assert bool((x1 < 40).all()) and bool((u1 >= 40).all())
        assert partner.shape == (32,) and share.shape == lambda_u.shape == lr.shape == () and float(lr) == pytest.approx(0.02)
        rows_seen += x1.tolist()
    assert sorted(rows_seen) == [*range(40)]


@pytest.mark.parametrize("strong_views", [True, False])
def test_only_divide_mix_trains_on_the_weak_views(strong_views: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    run, same = tiny(strong_views=strong_views), []

    def step(one: object, peer: object, c: object, prior: object, **inputs: torch.Tensor) -> dict[str, torch.Tensor]:
        same.append("strong" not in inputs or torch.equal(inputs["weak"], inputs["strong"]))
        return {"labelled": torch.zeros(())}

    monkeypatch.setattr(dividemix, "mixed_step", step)
    run.mix(0, division(60, 40), 2)
    assert len(same) == 5 and all(one != strong_views for one in same)


def test_two_views_of_a_picture_differ() -> None:
    run = tiny()
    rows = torch.arange(60).repeat(2)
    first, second = run.engine.weak(rows, seeded(0, 1)).chunk(2)
    differ = (first != second).flatten(1).any(1)
    assert float(differ.double().mean()) > 0.3  # so small a picture is mirrored or not, never shifted


def test_a_warm_up_epoch_sees_every_row_in_full_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    run, seen, asked = tiny(), [], []
    real = run.engine.weak

    def weak(rows: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
        asked.append(rows)
        return real(rows, generator)

    def step(one: object, penalty: bool, pictures: torch.Tensor, labels: torch.Tensor, lr: object) -> dict[str, torch.Tensor]:
        seen.append((len(pictures), labels))
        return {"cross_entropy": torch.zeros(())}

    monkeypatch.setattr(run.engine, "weak", weak)
    monkeypatch.setattr(ce, "cross_entropy_step", step)
    terms = run.run(plain_epoch(run.method, run.nets[0], 0, False), 0)
    rows = torch.cat(asked)
    assert terms.shape == (4, 1) and [n for n, _ in seen] == [16] * 4  # ceil(60 / 16) batches of 16
    assert sorted(rows[:60].tolist()) == [*range(60)] and len(rows) == 64
    assert torch.equal(torch.cat([labels for _, labels in seen]), pictures().labels[rows])


def test_training_leaves_the_modes_as_the_method_wants_them() -> None:
    run = tiny()
    first, second = run.nets
    run.mix(0, division(60, 8), 2)
    assert first.network.training and not second.network.training
    before = {k: v.clone() for k, v in first.network.state_dict().items()}
    run.mix(1, division(60, 8), 2)
    assert all(torch.equal(v, before[k]) for k, v in first.network.state_dict().items())


def test_every_chunk_draws_views_from_a_stream_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """Named by seed, purpose, epoch, network and chunk. Four warm-up steps and five mixed ones make two chunks and three."""
    run, asked = tiny(), []

    def views(rows: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
        asked.append(generator.initial_seed())
        return rows.view(-1, 1, 1, 1).to(torch.uint8).expand(-1, 3, 8, 8)

    monkeypatch.setattr(run.engine, "weak", views)
    monkeypatch.setattr(run.engine, "strong", views)
    monkeypatch.setattr(epochs, "CHUNK", 2)
    run.run(plain_epoch(run.method, run.nets[1], 1, False), 1)
    run.mix(1, division(60, 40), 4)
    warm = [(streams.WARM_UP_VIEWS, 1, 1, chunk) for chunk in range(2)]
    mixed = [(purpose, 4, 1, chunk) for chunk in range(3) for purpose in (streams.WEAK, streams.STRONG)]
    assert asked == [seeded(run.method.training.seed, *key).initial_seed() for key in warm + mixed]
