"""NCR: loss and gradients as the published code's, the published schedule, and batches too small to have neighbours in."""

import json
import math
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from tiny_run import built, pictures, verdict
from waves import waves

from labelsieve.errors import UsageError
from labelsieve.methods.contract import Phase, Training
from labelsieve.methods.ncr import Ncr, check_batch, ncr_step, neighbour_loss
from labelsieve.methods.parts.losses import labelled_loss

RECORDED = json.loads((Path(__file__).parent / "published" / "ncr.json").read_text())
B, K, D = 12, 4, 6
LABELS = torch.tensor([0, 1, 2, 3, 0, 1, 2, 3, 0, 0, 1, 2])


@pytest.mark.parametrize("case", RECORDED["cases"], ids=lambda case: f"k{case['k']}-T{case['temperature']:g}")
def test_loss_and_gradients_are_the_published_ones(case: dict[str, Any]) -> None:
    logits, v = 3 * waves(B, K, phase=1.0), waves(B, D, phase=2.0)
    v = v if case["signed"] else v.abs()
    logits.requires_grad_(), v.requires_grad_()
    neighbours = neighbour_loss(logits, v, case["k"], case["gamma"], case["temperature"])
    cross_entropy = labelled_loss(logits, F.one_hot(LABELS, K).float())
    ((1 - case["weight"]) * cross_entropy + case["weight"] * neighbours).backward()
    assert neighbours.item() == pytest.approx(case["neighbours"], abs=1e-5)
    assert cross_entropy.item() == pytest.approx(case["cross_entropy"], abs=1e-5)
    assert logits.grad is not None and torch.allclose(logits.grad, torch.tensor(case["logits"]), atol=1e-5)
    assert v.grad is not None and torch.allclose(v.grad, torch.tensor(case["features"]), atol=1e-5)


def test_neighbours_that_all_point_away_count_evenly() -> None:
    """The published code divides nothing by nothing there."""
    v = torch.tensor([[1.0, 0.0], [-1.0, 0.0]], requires_grad=True)
    logits = torch.tensor([[1.0, 0.0], [0.0, 2.0]], requires_grad=True)
    loss = neighbour_loss(logits, v, 1, 1.0, 1.0)
    p = logits.detach().softmax(1)
    by_hand = ((p[1] * (p[1] / p[0]).log()).sum() + (p[0] * (p[0] / p[1]).log()).sum()) / 2
    loss.backward()
    assert loss.item() == pytest.approx(by_hand.item(), rel=1e-5)
    assert v.grad is not None and torch.isfinite(v.grad).all()


def test_rate_rises_and_falls_as_published() -> None:
    """Five of 130 epochs up in a straight line, then half a cosine down to nothing."""
    method = built(Ncr, Ncr.Config(rise=5 / 130)).method
    method.training = Training(130, lr=0.1, schedule="cosine", lr_drop_factor=1e9)
    assert [method.lr_at(epoch) for epoch in (0, 1, 2.5, 5)] == pytest.approx([0, 0.02, 0.05, 0.1])
    for epoch in (10, 67.5, 100, 130):
        assert method.lr_at(epoch) == pytest.approx(0.05 * (1 + math.cos(math.pi * (epoch - 5) / 125)), abs=1e-7)


def test_cross_entropy_first_then_neighbours() -> None:
    run = built(Ncr, Ncr.Config(starting=0.5, neighbours=3))
    epochs = list(run.epochs())
    assert [each.phase for each in epochs] == ["warm-up"] * 3 + ["neighbours"] * 3 + ["final"]
    assert epochs[3].trained[0].terms == ("cross_entropy", "neighbours")
    assert [each.verdict is None for each in epochs] == [True] * 3 + [False] * 4


def test_each_picture_is_mixed_with_its_mirror_in_the_batch_by_a_share_of_its_own() -> None:
    run = built(Ncr, Ncr.Config(mixup=0.5, starting=0.0, neighbours=3))
    net, looked = run.nets[0], []
    real = net.see
    net.see = lambda network, pixels, *rest: (looked.append(pixels.clone()), real(network, pixels, *rest))[1]
    (phase,) = run.method.phases(0, run.engine)
    assert isinstance(phase, Phase) and tuple(phase.tensors["share"].shape) == (8, 8)
    assert (phase.tensors["share"] >= 0.5).all()
    batch, share = pictures(8).images, phase.tensors["share"][0]
    ncr_step(net, 3, run.method.c, batch, torch.arange(8) % 3, torch.tensor(0.0), share)
    expected = torch.stack([share[i] * batch[i].float() + (1 - share[i]) * batch[7 - i].float() for i in range(8)])
    assert torch.allclose(looked[0], expected)


def test_taken_up_after_any_epoch_it_is_the_same_run() -> None:
    config = Ncr.Config(starting=0.5, neighbours=3, mixup=0.5)
    whole = built(Ncr, config)
    states = [whole.state()]
    for _ in whole.epochs():
        states.append(whole.state())
    for start in (1, 3, 5):
        again = built(Ncr, config)
        again.load(states[start])
        for _ in again.epochs(start):
            pass
        assert all(torch.equal(value, states[-1][name]) for name, value in again.state().items())


@pytest.mark.parametrize("batch", [2, 3])
def test_a_batch_with_no_room_for_neighbours_is_refused_before_the_work(batch: int) -> None:
    with pytest.raises(UsageError, match=r"batch of . from 3 classes.*training\.batch=16.*ssr\+"):
        built(Ncr, batch=batch).method.check_data()
    with pytest.raises(UsageError, match=r"batch of 2 from 3 classes[^;]*; use --method ssr\+"):
        check_batch(2, 3, samples=12)  # no larger batch is to be had of so few


def test_what_neighbours_say_of_all_samples_is_a_weighted_mean() -> None:
    run = built(Ncr, Ncr.Config(neighbours=4, gamma=2.0))
    seen = run.engine.evidence(run.nets[0])
    found = run.method.said_by_neighbours(seen)
    unit = F.normalize(seen.features, dim=1)
    alike = (unit @ unit.T).fill_diagonal_(-1)
    for row in (0, 17, 59):
        near = alike[row].argsort(descending=True)[:4]
        weights = alike[row, near].clamp_min(0) ** 2
        assert torch.allclose(found[row], (weights[:, None] * seen.probs[near]).sum(0) / weights.sum(), atol=1e-5)


def test_wrong_labels_come_first() -> None:
    data = pictures(240)
    run = built(Ncr, data=data, epochs=8, lr=0.05)
    last = verdict(list(run.epochs())[-1])
    wrong = data.labels != torch.arange(240) % 3
    assert wrong[last.chance.argsort()[: int(wrong.sum())]].float().mean() > 0.9
