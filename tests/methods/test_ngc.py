"""NGC: steps, spread labels and selection as the published code's; the graph's solution and parts; classes with nothing sure."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from tiny_run import built, pictures, verdict
from torch import Tensor, nn
from waves import assert_alike, evidence_by_formula, fill, pixels, traces, waves

from labelsieve.methods.contract import Facts, Training
from labelsieve.methods.net import Net, scale
from labelsieve.methods.ngc import Ngc, largest_parts, mixing_step, ngc_step, spread_over
from labelsieve.methods.parts.evidence import Evidence
from labelsieve.nets.small import SmallNet

RECORDED = json.loads((Path(__file__).parent / "published" / "ngc.json").read_text())
B, K, WIDTH, DIM = 6, 4, 4, 5
LABELS = torch.tensor([0, 1, 2, 3, 1, 2, 3, 0, 1, 0, 0, 0])
CLEAN = torch.tensor([1, 1, 1, 1, 1, 1, 1, 0, 0, 1, 0, 1]).bool()
LR = torch.tensor(0.02)


def published_net() -> Net:
    """With the weights and normalisation that the published code was run with."""
    body, projector = SmallNet(3, K, width=WIDTH), nn.Linear(4 * WIDTH, DIM)
    for module, phase in ((body, 0.0), (projector, 2.0)):
        fill(module, phase)
    mean, std = (scale(values, 3, "cpu") for values in ((0.5, 0.45, 0.4), (0.25, 0.2, 0.3)))
    return Net(0, body, mean, std, heads={"projector": projector})


def mixed_as_published(clean: Tensor, step: int) -> tuple[Tensor, Tensor]:
    here = torch.nonzero(clean).flatten()
    every = torch.cat((here, here + B))
    partner = every[waves(len(every), phase=50.0 + step).argsort()]
    times = 2 * B // len(every)
    return every.repeat(times), partner.repeat(times)


def gradients(net: Net) -> list[list[float]]:
    return traces([weight.grad for weight in net.optimiser.weights if weight.grad is not None])


def test_two_steps_are_the_published_ones() -> None:
    """All of the first batch is clean, half of the second, so that each of its views is mixed twice, with the same partner."""
    net = published_net()
    for step, share in enumerate((0.3, 0.6)):
        net.train()
        some = slice(step * B, (step + 1) * B)
        views = (pixels(B, 3, 8, 8, phase=phase + step) for phase in (10, 20))
        both = mixed_as_published(CLEAN[some], step)
        terms = ngc_step(
            net, K, 0.3, 1.0, 1.0, *views, LABELS[some], CLEAN[some].float(), *both, share=torch.tensor(share), lr=LR
        )
        assert [value.item() for value in terms.values()] == pytest.approx(RECORDED["terms"][step], abs=1e-5)
        assert_alike(gradients(net), RECORDED["gradients"][step])
        if step == 0:
            assert_alike(traces([buffer.float() for buffer in net.network.buffers()]), RECORDED["running"])
    assert_alike(traces(net.optimiser.weights), RECORDED["weights"])


def test_a_step_on_given_labels_is_the_published_one() -> None:
    net, recorded = published_net(), RECORDED["mixing"]
    net.train()
    views = (pixels(B, 3, 8, 8, phase=phase) for phase in (10, 20))
    both = mixed_as_published(CLEAN[:B], 0)
    terms = mixing_step(net, K, *views, LABELS[:B], *both, torch.tensor(0.3), LR)
    assert [value.item() for value in terms.values()] == pytest.approx(recorded["terms"], abs=1e-5)
    assert_alike(gradients(net)[: len(recorded["gradients"])], recorded["gradients"])
    assert_alike(traces([buffer.float() for buffer in net.network.buffers()]), recorded["running"])


def on_evidence(seen: Evidence, pinned: Tensor | None = None, **config: Any) -> Ngc:
    """The method beside a network whose projection leaves features as they are."""
    prior = torch.full((seen.classes,), 1 / seen.classes)
    known = Facts(Training(4, batch=16), seen.labels, tuple("abcde"), prior, torch.device("cpu"), pinned)
    method = Ngc(Ngc.Config(**config), known)
    net = published_net()
    net.heads["projector"] = nn.Identity()
    method.build(lambda number, **_: net)  # type: ignore[arg-type]
    return method


@pytest.mark.parametrize("recorded", RECORDED["selections"], ids=lambda each: f"k{each['k']}-{each['low']}")
def test_labels_spread_and_are_selected_as_published(recorded: dict[str, Any]) -> None:
    """Three epochs, in which the network grows surer. Where a class has nothing sure they take the first sample; we don't."""
    seen = evidence_by_formula()
    method = on_evidence(seen, low=recorded["low"], high=recorded["high"], neighbours=recorded["k"])
    for epoch, wanted in enumerate(recorded["rounds"]):
        surer = replace(seen, probs=(seen.probs.log() * (1 + 0.5 * epoch)).softmax(1))
        found, logits = method.spread(surer)
        method.remember(found, surer.labels, logits)
        assert method.tables["hard"].tolist() == wanted["labels"]
        assert torch.nonzero(method.tables["clean"]).flatten().tolist() == wanted["clean"]
        soft = torch.where(
            found.soft.gather(1, seen.labels.unsqueeze(1)) > recorded["low"],
            F.one_hot(seen.labels, 5).float(),
            found.soft,
        )
        assert torch.allclose(soft[:40], torch.tensor(wanted["soft"]), atol=1e-5)


def test_what_spreads_solves_the_system() -> None:
    """Against a dense solution."""
    count, k, classes = 30, 4, 3
    z = F.normalize(waves(count, 6, phase=3.0), dim=1)
    cosines, near = (z @ z.T).fill_diagonal_(-2).topk(k, 1)
    weights, known = cosines.clamp_min(0.05) ** 3, waves(count, classes, phase=1.0).abs()
    dense = torch.zeros(count, count, dtype=torch.float64)
    for i in range(count):
        for weight, j in zip(weights[i], near[i]):
            dense[i, j] += weight
            dense[j, i] += weight
    root = dense.sum(1).sqrt()
    wanted = torch.linalg.solve(
        torch.eye(count).double() - 0.5 * dense / root / root.unsqueeze(1), (known / known.sum(0)).double()
    )
    wanted = wanted.clamp_min(0)
    found = spread_over(weights, near, known, 0.5)
    assert torch.allclose(found.double(), wanted / wanted.sum(1, keepdim=True), atol=1e-5)


def test_the_largest_part_of_each_class_counts() -> None:
    near = torch.tensor([[1, 2], [0, 2], [1, 3], [4, 2], [3, 5], [4, 3], [7, 0], [6, 1], [0, 1]])
    labels = torch.tensor([0, 0, 0, 0, 0, 0, 1, 1, 1])
    sure = torch.tensor([True] * 8 + [False])
    # Both ways near: 0-1, 1-2, 2-3, 3-4, 4-5; without 2 the parts 0-1 and 3-4-5 are left.
    assert largest_parts(near, labels, sure).tolist() == [True] * 8 + [False]
    sure[2] = False
    assert largest_parts(near, labels, sure).tolist() == [False] * 3 + [True] * 5 + [False]


def test_a_class_with_nothing_sure_has_nothing_clean() -> None:
    """The published code makes the first sample of the set clean."""
    near, labels = torch.tensor([[1], [0], [3], [2]]), torch.tensor([0, 0, 1, 1])
    assert largest_parts(near, labels, torch.tensor([False, False, True, True])).tolist() == [False, False, True, True]
    assert not largest_parts(near, labels, torch.zeros(4, dtype=torch.bool)).any()


def test_a_batch_with_nothing_clean_learns_without_labels() -> None:
    net = published_net()
    net.train()
    views = (pixels(B, 3, 8, 8, phase=phase) for phase in (10, 20))
    every = torch.arange(2 * B)
    terms = ngc_step(net, K, 0.3, 1.0, 1.0, *views, LABELS[:B], torch.zeros(B), every, every, torch.tensor(0.4), LR)
    assert terms["cross_entropy"] == 0 and terms["instances"] > 0
    classifier = net.network.classifier.weight.grad
    assert classifier is not None and not classifier.any(), "no label was learnt"


def test_given_labels_first_then_the_graph() -> None:
    epochs = list(built(Ngc, Ngc.Config(starting=0.5)).epochs())
    assert [each.phase for each in epochs] == ["warm-up"] * 3 + ["graph"] * 3 + ["final"]
    assert [each.verdict is None for each in epochs] == [True] * 3 + [False] * 4


def test_a_verdict_leaves_the_graph_as_it_was() -> None:
    run = built(Ngc, Ngc.Config(starting=0.2))
    epochs = run.epochs()
    next(epochs), next(epochs)
    before = run.state()
    run.method.verdict(run.engine)
    assert all(torch.equal(value, before[name]) for name, value in run.state().items())


def test_pinned_labels_stay_and_are_clean() -> None:
    seen = evidence_by_formula()
    free = on_evidence(seen)
    found, logits = free.spread(seen)
    free.remember(found, seen.labels, logits)
    wrong = torch.nonzero((free.tables["hard"] != seen.labels) | ~free.tables["clean"]).flatten()[:10]
    pinned = torch.zeros(len(seen), dtype=torch.bool)
    pinned[wrong] = True
    method = on_evidence(seen, pinned)
    method.remember(found, seen.labels, logits)
    assert method.tables["clean"][wrong].all() and torch.equal(method.tables["hard"][wrong], seen.labels[wrong])


def test_wrong_labels_come_first() -> None:
    """On three kinds of picture with a third of the labels wrong, a few epochs tell most of them."""
    data = pictures(240)
    run = built(Ngc, Ngc.Config(low=0.45, starting=0.25), data=data, epochs=10, lr=0.05)
    last = verdict(list(run.epochs())[-1])
    wrong = data.labels != torch.arange(240) % 3
    assert wrong[last.chance.argsort()[: int(wrong.sum())]].float().mean() > 0.9
    assert (last.shares.argmax(1)[wrong] == (torch.arange(240) % 3)[wrong]).float().mean() > 0.9
