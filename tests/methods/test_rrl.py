"""RRL: steps and corrected labels as the published code's, and where that ends in NaN: batches and classes with nothing clean."""

import json
import math
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from tiny_run import built, pictures, verdict
from torch import nn
from waves import assert_alike, evidence_by_formula, fill, pixels, traces, waves

from labelsieve.methods.contract import Facts, Training
from labelsieve.methods.net import Net, scale
from labelsieve.methods.parts.evidence import Evidence
from labelsieve.methods.rrl import Rrl, moved, pairs, reconstruction_step, rrl_step
from labelsieve.nets.small import SmallNet

RECORDED = json.loads((Path(__file__).parent / "published" / "rrl.json").read_text())
B, K, WIDTH, DIM = 6, 4, 4, 5
LABELS = torch.tensor([0, 1, 2, 3, 1, 2, 3, 0, 1, 2, 0, 3])
CLEAN = torch.tensor([1, 1, 1, 1, 1, 1, 1, 0, 1, 0, 0, 1]).bool()
LR = torch.tensor(0.02)


def published_net() -> Net:
    """With the weights and normalisation that the published code was run with."""
    body, projector, decoder = SmallNet(3, K, width=WIDTH), nn.Linear(4 * WIDTH, DIM), nn.Linear(DIM, 4 * WIDTH)
    for module, phase in ((body, 0.0), (projector, 2.0), (decoder, 4.0)):
        fill(module, phase)
    mean, std = (scale(values, 3, "cpu") for values in ((0.5, 0.45, 0.4), (0.25, 0.2, 0.3)))
    return Net(0, body, mean, std, heads={"projector": projector, "decoder": decoder})


def test_two_steps_are_the_published_ones() -> None:
    """All of the first batch is clean, half of the second, so that each of its views is mixed twice, with the same partner."""
    net, centres = published_net(), F.normalize(waves(K, DIM, phase=9.0), dim=1)
    weights = net.optimiser.weights
    for step, share in enumerate((0.3, 0.6)):
        net.train()
        clean = CLEAN[step * B : (step + 1) * B]
        here = torch.nonzero(clean).flatten()
        every = torch.cat((here, here + B))
        partner = every[waves(len(every), phase=50.0 + step).argsort()]
        times = 2 * B // len(every)
        views = (pixels(B, 3, 8, 8, phase=phase + step) for phase in (10, 20))
        labels, both = LABELS[step * B : (step + 1) * B], (every.repeat(times), partner.repeat(times))
        five = torch.tensor(5.0)
        terms = rrl_step(net, centres, 0.3, 1.0, 1.0, *views, labels, clean.float(), *both, torch.tensor(share), five, LR)
        assert [value.item() for value in terms.values()] == pytest.approx(RECORDED["terms"][step], abs=1e-5)
        assert_alike(traces([weight.grad for weight in weights if weight.grad is not None]), RECORDED["gradients"][step])
        if step == 0:
            assert_alike(traces([buffer.float() for buffer in net.network.buffers()]), RECORDED["running"])
    assert_alike(traces(weights), RECORDED["weights"])


def test_the_warm_up_is_the_published_one() -> None:
    net, recorded = published_net(), RECORDED["warm_up"]
    net.train()
    terms = reconstruction_step(net, 1.0, pixels(B, 3, 8, 8, phase=10), LABELS[:B], LR)
    assert [value.item() for value in terms.values()] == pytest.approx(recorded["terms"], abs=1e-5)
    assert_alike(traces([w.grad for w in net.optimiser.weights if w.grad is not None]), recorded["gradients"])


def on_evidence(seen: Evidence, pinned: torch.Tensor | None = None, **config: Any) -> Rrl:
    """The method without a network, on somebody's evidence."""
    prior = torch.full((seen.classes,), 1 / seen.classes)
    known = Facts(Training(4, batch=16), seen.labels, tuple("abcde"), prior, torch.device("cpu"), pinned)
    method = Rrl(Rrl.Config(**config), known)
    method.build(lambda number, **_: published_net())  # type: ignore[arg-type]
    return method


@pytest.mark.parametrize("recorded", RECORDED["selections"], ids=lambda each: f"k{each['k']}-{each['low']}")
def test_labels_are_corrected_as_published(recorded: dict[str, Any]) -> None:
    """Twice: the second time by the soft labels that the first one left."""
    seen = evidence_by_formula()
    z = F.normalize(seen.features, dim=1)
    method = on_evidence(seen, low=recorded["low"], high=recorded["high"], neighbours=recorded["k"])
    for wanted in recorded["rounds"]:
        labels, clean = method.chosen(method.corrected(seen, z), seen.labels)
        assert labels.tolist() == wanted["labels"]
        assert torch.nonzero(clean).flatten().tolist() == wanted["clean"]
        assert torch.allclose(method.tables["soft"][:40], torch.tensor(wanted["soft"]), atol=1e-5)
        centres = torch.zeros(5, z.shape[1])
        moved(centres, z, labels, clean)
        assert torch.allclose(centres, torch.tensor(wanted["prototypes"]), atol=1e-5)


def test_rate_and_weight_are_the_published_ones() -> None:
    method = built(Rrl, Rrl.Config(ramp=0.2)).method
    method.training = Training(200, lr=0.02, schedule="cosine", lr_drop_factor=100.0)
    for epoch in (0, 1, 57, 198, 199):
        wanted = 2e-4 + (0.02 - 2e-4) * (1 + math.cos(math.pi * (epoch + 1) / 200)) / 2
        assert method.rates(epoch, 3).tolist() == pytest.approx([wanted] * 3, rel=1e-5)
    every = torch.ones(60, dtype=torch.bool)
    weights = [method.training_on(method.facts.given, every, epoch).tensors["weight"][0].item() for epoch in (0, 10, 40, 100)]
    assert weights == pytest.approx([1, 2, 5, 5])


def test_a_warm_up_then_given_labels_then_corrected_ones() -> None:
    epochs = list(built(Rrl, Rrl.Config(starting=0.5)).epochs())
    assert [each.phase for each in epochs] == ["prototypes"] * 6 + ["final"]
    assert len(epochs[0].trained) == 2 and len(epochs[1].trained) == 1
    assert all(verdict(each).counts == "neighbours" for each in epochs[3:])


def test_pairs_are_clean_and_fill_the_step() -> None:
    clean = torch.tensor([[True, False, True, False, False], [False] * 5, [True] * 5])
    first, second = pairs(clean, 2, torch.Generator().manual_seed(0))
    assert first.shape == second.shape == (3, 10)
    assert set(first[0].tolist()) == set(second[0].tolist()) == {0, 2, 5, 7}
    assert set(first[1].tolist()) == set(range(10)), "nothing is clean: mixed as they are, at no weight"
    assert sorted(first[2].tolist()) == sorted(second[2].tolist()) == list(range(10))


def test_a_batch_with_nothing_clean_learns_without_labels() -> None:
    """The published code takes the mean of nothing there."""
    net = published_net()
    net.train()
    first, second = pairs(torch.zeros(1, B, dtype=torch.bool), 2, torch.Generator().manual_seed(0))
    views = (pixels(B, 3, 8, 8, phase=phase) for phase in (10, 20))
    none, centres = torch.zeros(B), F.normalize(waves(K, DIM, phase=9.0), dim=1)
    terms = rrl_step(
        net, centres, 0.3, 1.0, 1.0, *views, LABELS[:B], none, first[0], second[0], torch.tensor(0.4), torch.tensor(5.0), LR
    )
    assert terms["cross_entropy"] == 0 and terms["prototypes"] == 0 and terms["instances"] > 0
    grads = [weight.grad for weight in net.optimiser.weights if weight.grad is not None]
    assert all(bool(torch.isfinite(grad).all()) for grad in grads)
    classifier = net.network.classifier.weight.grad
    assert classifier is not None and not classifier.any(), "no label was learnt"


def test_a_class_without_clean_labels_keeps_its_prototype() -> None:
    centres, z = F.normalize(waves(3, 4), dim=1), F.normalize(waves(6, 4, phase=2.0), dim=1)
    before, labels = centres.clone(), torch.tensor([0, 0, 1, 1, 2, 2])
    moved(centres, z, labels, labels != 2)
    assert torch.equal(centres[2], before[2]) and torch.allclose(centres[0], F.normalize(z[:2].mean(0), dim=0))


def test_nine_tenths_wrong_stays_finite() -> None:
    """Where theirs ends in NaN: hardly any label is above the threshold."""
    data = pictures(90)
    wrong = torch.rand(90, generator=torch.Generator().manual_seed(1)) < 0.9
    labels = torch.where(wrong, (data.labels + torch.arange(90) % 3) % 3, data.labels)
    run = built(Rrl, Rrl.Config(high=0.999, low=0.9), data.relabelled(labels))
    last = list(run.epochs())[-1]
    assert bool(torch.isfinite(verdict(last).chance).all())
    assert all(bool(torch.isfinite(value).all()) for value in run.state().values())


def test_pinned_labels_stay_and_are_clean() -> None:
    seen = evidence_by_formula()
    z = F.normalize(seen.features, dim=1)
    free = on_evidence(seen)
    labels, clean = free.chosen(free.corrected(seen, z), seen.labels)
    wrong = torch.nonzero((labels != seen.labels) | ~clean).flatten()[:10]
    pinned = torch.zeros(len(seen), dtype=torch.bool)
    pinned[wrong] = True
    method = on_evidence(seen, pinned)
    labels, clean = method.chosen(method.corrected(seen, z), seen.labels)
    assert clean[wrong].all() and torch.equal(labels[wrong], seen.labels[wrong])


def test_wrong_labels_come_first() -> None:
    """On three kinds of picture with a third of the labels wrong, a few epochs tell most of them."""
    data = pictures(240)
    run = built(Rrl, Rrl.Config(low=0.45), data=data, epochs=8, lr=0.05)
    last = verdict(list(run.epochs())[-1])
    wrong = data.labels != torch.arange(240) % 3
    assert wrong[last.chance.argsort()[: int(wrong.sum())]].float().mean() > 0.9
    assert (last.shares.argmax(1)[wrong] == (torch.arange(240) % 3)[wrong]).float().mean() > 0.9
