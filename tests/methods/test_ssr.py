"""SSR and SSR+: steps and selections as the published code's, and what it never met: nothing clean, small sets, pinned labels."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from tiny_run import Tiny, built, pictures, verdict
from torch import Tensor
from waves import assert_alike, evidence_by_formula, fill, pixels, traces, waves

from labelsieve.methods.contract import Facts, Training
from labelsieve.methods.net import Net, scale
from labelsieve.methods.parts import neighbours
from labelsieve.methods.parts.evidence import Evidence
from labelsieve.methods.ssr import Ssr, SsrPlus, head, ssr_step
from labelsieve.nets.small import SmallNet

RECORDED = json.loads((Path(__file__).parent / "published" / "ssr.json").read_text())
B, K, WIDTH = 6, 4, 4
LABELS = torch.tensor([0, 1, 2, 3, 1, 2, 3, 0, 1, 2, 0, 3])


def published_net() -> Net:
    """With the weights and normalisation that the published code was run with."""
    body, projector, predictor = SmallNet(3, K, width=WIDTH), head(4 * WIDTH), head(128)
    for module, phase in ((body, 0.0), (projector, 2.0), (predictor, 4.0)):
        fill(module, phase)
    mean, std = (scale(values, 3, "cpu") for values in ((0.5, 0.45, 0.4), (0.25, 0.2, 0.3)))
    return Net(0, body, mean, std, heads={"projector": projector, "predictor": predictor})


def views(phase: float, step: int) -> Tensor:
    return pixels(B, 3, 8, 8, phase=phase + step)


@pytest.mark.parametrize(("name", "weight"), [("ssr+", 1.0), ("ssr", 0.0)])
def test_two_steps_are_the_published_ones(name: str, weight: float) -> None:
    """Loss terms and every gradient of two steps, and the weights that they lead to."""
    net, recorded = published_net(), RECORDED[name]
    weights = net.optimiser.weights
    for step, share in enumerate((0.7, 0.8)):  # they drew 0.3, and take the larger part
        net.train()
        terms = ssr_step(
            net,
            K,
            weight,
            torch.cat((views(10, step), views(20, step))),
            views(30, step),
            views(40, step),
            LABELS[step * B : (step + 1) * B],
            waves(2 * B, phase=50.0 + step).argsort(),
            torch.tensor(share),
            torch.tensor(0.02),
        )
        assert [value.item() for value in terms.values()] == pytest.approx(recorded["terms"][step][: len(terms)], abs=1e-5)
        found = traces([weight.grad for weight in weights if weight.grad is not None])
        assert_alike(found, recorded["gradients"][step])
    assert_alike(traces(weights), recorded["weights"])
    assert_alike(traces([buffer.float() for buffer in net.network.buffers()]), recorded["running"])


def on_evidence(seen: Evidence, pinned: Tensor | None = None, **config: Any) -> Ssr:
    names = tuple(map(str, range(seen.classes)))
    prior = torch.full((seen.classes,), 1 / seen.classes)
    known = Facts(Training(4, batch=16), seen.labels, names, prior, torch.device("cpu"), pinned)
    return Ssr(Ssr.Config(**config), known)


@pytest.mark.parametrize("recorded", RECORDED["selections"], ids=lambda each: f"k{each['k']}-{each['theta_s']}")
def test_selection_is_the_published_one(recorded: dict[str, Any]) -> None:
    seen = evidence_by_formula()
    method = on_evidence(seen, theta_r=recorded["theta_r"], theta_s=recorded["theta_s"], neighbours=recorded["k"])
    chosen = method.select(seen)
    assert chosen.labels.tolist() == recorded["labels"]
    assert torch.nonzero(chosen.clean).flatten().tolist() == recorded["clean"]
    assert torch.allclose(chosen.shares[:40], torch.tensor(recorded["shares"]), atol=1e-5)
    drawn = method.drawn_from(chosen, chosen.labels, torch.Generator().manual_seed(0))
    assert torch.bincount(chosen.labels[drawn]).tolist() == recorded["drawn"]
    assert set(drawn.tolist()) == set(recorded["clean"])


def test_rate_follows_half_a_cosine_between_epochs() -> None:
    method = on_evidence(evidence_by_formula())
    method.training = Training(300, lr=0.02, schedule="cosine", lr_drop_factor=50.0)
    theirs = torch.optim.lr_scheduler.CosineAnnealingLR(
        torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.02), T_max=300, eta_min=0.02 / 50
    )
    for epoch in range(300):
        assert method.rates(epoch, 3).tolist() == pytest.approx([theirs.get_last_lr()[0]] * 3, rel=1e-5)
        theirs.optimizer.step()
        theirs.step()


def ended(run: Tiny) -> dict[str, Tensor]:
    for _ in run.epochs():
        pass
    return run.state()


@pytest.mark.parametrize("kind", [Ssr, SsrPlus])
def test_a_run_selects_and_trains_every_epoch(kind: type[Ssr]) -> None:
    epochs = list(built(kind).epochs())
    assert [each.phase for each in epochs] == ["neighbours"] * 6 + ["final"]
    terms = ("cross_entropy", "consistency") if kind is SsrPlus else ("cross_entropy",)
    assert all(each.trained[0].terms == terms and len(each.trained[0].values) == 60 // 8 for each in epochs[:-1])
    assert all(verdict(each).counts == "neighbours" for each in epochs)


@pytest.mark.parametrize("kind", [Ssr, SsrPlus])
def test_taken_up_after_any_epoch_it_is_the_same_run(kind: type[Ssr]) -> None:
    whole = built(kind)
    states = [whole.state()]
    for _ in whole.epochs():
        states.append(whole.state())
    for start in (1, 4):
        again = built(kind)
        again.load(states[start])
        for _ in again.epochs(start):
            pass
        assert all(torch.equal(value, states[-1][name]) for name, value in again.state().items())


def test_consistency_has_heads_and_ssr_has_none() -> None:
    assert set(built(SsrPlus).nets[0].heads) == {"projector", "predictor"}
    assert not built(Ssr).nets[0].heads


def test_nothing_clean_trains_on_the_likeliest_and_says_so() -> None:
    seen = evidence_by_formula()
    method = on_evidence(seen)
    chosen = method.select(seen)
    none = chosen._replace(clean=torch.zeros_like(chosen.clean))
    rows = method.drawn_from(none, none.labels, torch.Generator().manual_seed(0))
    likeliest = chosen.support.argsort(descending=True, stable=True)[: method.training.batch]
    assert set(rows.tolist()) == set(likeliest.tolist())
    assert any("almost nothing counts as clean" in note for note in method.notes(seen, none))


def test_a_class_without_clean_labels_is_left_out_and_named() -> None:
    seen = evidence_by_formula()
    method = on_evidence(seen)
    chosen = method.select(seen)
    without = chosen._replace(clean=chosen.clean & (chosen.labels != 3))
    rows = method.drawn_from(without, without.labels, torch.Generator().manual_seed(0))
    counts = torch.bincount(without.labels[rows], minlength=5).tolist()
    assert counts[3] == 0 and len({counts[k] for k in (0, 1, 2, 4)}) == 1
    assert method.notes(seen, without) == ("no label of 3 counts as clean; this epoch does not train on them",)


def test_fewer_samples_than_a_batch_or_neighbours_still_train() -> None:
    run = built(SsrPlus, SsrPlus.Config(neighbours=200), pictures(7), batch=8)
    last = list(run.epochs())[-1]
    assert len(verdict(last).chance) == 7 and torch.isfinite(verdict(last).chance).all()


@pytest.mark.parametrize(("samples", "voters"), [(50_000, 200), (1797, 179), (40, 4), (5, 1)])
def test_of_a_small_set_fewer_vote(samples: int, voters: int) -> None:
    assert neighbours.voters(samples) == voters
    assert neighbours.voters(samples, 33) == 33


def test_pinned_labels_keep_their_label_and_are_clean() -> None:
    seen = evidence_by_formula()
    free = on_evidence(seen).select(seen)
    wrong = torch.nonzero((free.labels != seen.labels) | ~free.clean).flatten()[:10]
    pinned = torch.zeros(len(seen), dtype=torch.bool)
    pinned[wrong] = True
    method = on_evidence(seen, pinned)
    chosen = method.select(seen)
    assert chosen.clean[wrong].all() and torch.equal(chosen.labels[wrong], seen.labels[wrong])
    assert (method.said(seen, chosen).chance[wrong] == 1).all()


def test_wrong_labels_come_first() -> None:
    """On three kinds of picture with a third of the labels wrong, a few epochs tell most of them."""
    data = pictures(240)
    run = built(SsrPlus, data=data, epochs=8, lr=0.05)
    last = verdict(list(run.epochs())[-1])
    wrong = data.labels != torch.arange(240) % 3
    doubted = last.chance.argsort()[: int(wrong.sum())]
    assert wrong[doubted].float().mean() > 0.9
    assert (last.shares.argmax(1)[wrong] == (torch.arange(240) % 3)[wrong]).float().mean() > 0.9
