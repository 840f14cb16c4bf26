"""MoPro: three steps as the published code's, twin, queue and prototypes included; batches in which no label is left."""

import json
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from tiny_run import built, pictures, verdict
from torch import Tensor, nn
from waves import assert_alike, fill, pixels, traces, waves

from labelsieve.errors import UsageError
from labelsieve.methods.contract import Phase, Training
from labelsieve.methods.mopro import MoPro, corrected, mopro_step, moved
from labelsieve.methods.net import Net, scale
from labelsieve.nets.small import SmallNet

RECORDED = json.loads((Path(__file__).parent / "published" / "mopro.json").read_text())
B, K, WIDTH, DIM, KEYS = 6, 4, 4, 5, 12
LABELS = torch.tensor([0, 1, 2, 3, 1, 2, 3, 0, 1, 2, 0, 3, 0, 0, 1, 1, 2, 2])
PUBLISHED = MoPro.Config(sure=0.42, temperature=0.2, twin=0.9, memory=0.9, dim=DIM)
LR = torch.tensor(0.02)


def published_net() -> Net:
    """With the weights and normalisation that the published code was run with."""
    bodies = [SmallNet(3, K, width=WIDTH) for _ in range(2)]
    head = nn.Sequential(nn.Linear(4 * WIDTH, 4 * WIDTH), nn.ReLU(), nn.Linear(4 * WIDTH, DIM))
    fill(bodies[0], 0.0), fill(head, 2.0)
    mean, std = (scale(values, 3, "cpu") for values in ((0.5, 0.45, 0.4), (0.25, 0.2, 0.3)))
    net = Net(0, bodies[0], mean, std, heads={"projector": head}, twin=bodies[1])
    assert net.twin is not None
    net.twin.network.train()
    return net


def step_of(net: Net, queue: Tensor, centres: Tensor, turn: int, c: MoPro.Config = PUBLISHED) -> dict[str, Tensor]:
    """The first turn has no prototypes, the third corrects labels; each overwrites half of the queue."""
    net.train()
    places = (torch.arange(B) + turn * B) % KEYS
    views = (pixels(B, 3, 8, 8, phase=phase + turn) for phase in (10, 20))
    flags = (torch.tensor(float(turn == 2)), torch.tensor(float(turn > 0)))
    return dict(mopro_step(net, queue, centres, c, *views, LABELS[turn * B : (turn + 1) * B], torch.zeros(B), places, *flags, LR))


def test_three_steps_are_the_published_ones() -> None:
    """In the third, three of six samples have a label left, one of them a corrected one."""
    net = published_net()
    queue, centres = F.normalize(waves(KEYS, DIM, phase=9.0), dim=1), F.normalize(waves(K, DIM, phase=7.0), dim=1)
    for turn in range(3):
        terms = step_of(net, queue, centres, turn)
        assert [terms[name].item() for name in ("cross_entropy", "instances")] == pytest.approx(
            RECORDED["terms"][turn][:2], abs=1e-5
        )
        if turn:
            assert terms["prototypes"].item() == pytest.approx(RECORDED["terms"][turn][2], abs=1e-5)
        assert_alike(traces([w.grad for w in net.optimiser.weights if w.grad is not None]), RECORDED["gradients"][turn])
    assert net.twin is not None
    assert_alike(traces(net.optimiser.weights), RECORDED["weights"])
    assert_alike(traces([*net.twin.network.parameters(), *net.twin.heads.parameters()]), RECORDED["twin"])
    assert_alike(traces([buffer.float() for buffer in net.network.buffers()]), RECORDED["running"])
    assert_alike(traces([buffer.float() for buffer in net.twin.network.buffers()]), RECORDED["twin_running"])
    assert torch.allclose(queue, torch.tensor(RECORDED["queue"]), atol=1e-5)
    assert torch.allclose(centres, torch.tensor(RECORDED["prototypes"]), atol=1e-5)


def test_labels_are_corrected_where_sure_kept_where_likely_else_dropped() -> None:
    soft = torch.tensor([[0.1, 0.9, 0.0, 0.0], [0.3, 0.4, 0.2, 0.1], [0.2, 0.7, 0.1, 0.0], [0.2, 0.7, 0.1, 0.0]])
    given, pinned = torch.tensor([0, 0, 2, 2]), torch.tensor([False, False, False, True])
    labels, used = corrected(soft, given, pinned, 0.8, torch.tensor(True))
    assert labels.tolist() == [1, 0, 2, 2] and used.tolist() == [1, 1, 0, 1]
    labels, used = corrected(soft, given, pinned, 0.8, torch.tensor(False))
    assert labels.tolist() == given.tolist() and used.tolist() == [1, 1, 1, 1]


def test_prototypes_move_towards_one_sample_after_the_other() -> None:
    centres, q = F.normalize(waves(3, 4), dim=1), F.normalize(waves(5, 4, phase=2.0), dim=1)
    labels, used = torch.tensor([0, 1, 0, 0, 1]), torch.tensor([1.0, 1.0, 1.0, 0.0, 1.0])
    slow = centres.clone()
    for vector, label, on in zip(q, labels, used):
        if on:
            slow[label] = 0.9 * slow[label] + 0.1 * vector
    moved(centres, q, labels, used, 0.9)
    assert torch.allclose(centres, F.normalize(slow, dim=1), atol=1e-6)


def test_a_batch_without_a_label_only_tells_samples_apart() -> None:
    """The published code takes the mean of nothing there."""
    net, queue = published_net(), F.normalize(waves(KEYS, DIM, phase=9.0), dim=1)
    net.network.classifier.weight.data.zero_()
    none = MoPro.Config(sure=1.0, softmax=1.0, dim=DIM)  # a softmax of 1/K everywhere: no label has more
    net.network.classifier.bias.data.zero_()
    centres = F.normalize(waves(K, DIM, phase=7.0), dim=1)
    before = centres.clone()
    terms = step_of(net, queue, centres, 2, none)
    assert terms["cross_entropy"] == 0 and terms["prototypes"] == 0 and terms["instances"] > 0
    assert torch.allclose(centres, before, atol=1e-6)
    assert all(bool(torch.isfinite(weight).all()) for weight in net.optimiser.weights)


def test_the_rate_drops_twice_as_published() -> None:
    method = built(MoPro).method
    method.training = Training(90, lr=0.1, lr_drop_epoch=40)
    rates = [method.lr_at(epoch) for epoch in (0, 39, 40, 79.5, 80, 89)]
    assert rates == pytest.approx([0.1, 0.1, 0.01, 0.01, 0.001, 0.001])


def test_the_queue_goes_round_and_fits_the_set() -> None:
    run = built(MoPro, data=pictures(64))
    assert run.method.queue.shape == (32, 128)
    phases = [next(run.method.phases(epoch, run.engine)) for epoch in range(2)]
    assert all(isinstance(phase, Phase) for phase in phases)
    places = torch.cat([phase.tensors["places"] for phase in phases]).flatten()
    assert torch.equal(places, torch.arange(128) % 32)
    assert [phase.tensors["weight"][0].item() for phase in phases] == [0, 1]
    with pytest.raises(UsageError, match=r"mopro\.queue=4 has no room.*mopro\.queue=128"):
        built(MoPro, MoPro.Config(queue=4))


def test_wrong_labels_come_first() -> None:
    """On three kinds of picture with a third of the labels wrong, a few epochs tell most of them."""
    data = pictures(240)
    run = built(MoPro, MoPro.Config(memory=0.9, twin=0.9, starting=0.3), data=data, epochs=10, lr=0.05)
    last = verdict(list(run.epochs())[-1])
    assert last.counts == "prototype"
    wrong = data.labels != torch.arange(240) % 3
    assert wrong[last.chance.argsort()[: int(wrong.sum())]].float().mean() > 0.9
    assert (last.shares.argmax(1)[wrong] == (torch.arange(240) % 3)[wrong]).float().mean() > 0.9
