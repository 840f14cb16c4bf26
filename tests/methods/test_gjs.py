"""GJS: the divergence against entropies by SciPy and its two limits; steps as the published code's; the rates."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy.stats import entropy
from tiny_run import built, pictures
from waves import assert_alike, fill, pixels, traces

from labelsieve.methods.gjs import Gjs, divergence, gjs_step, z
from labelsieve.methods.net import Net, scale
from labelsieve.nets.small import SmallNet

RECORDED = json.loads((Path(__file__).parent / "published" / "gjs.json").read_text())
LABELS = torch.tensor([0, 1, 2, 3, 1, 2, 3, 0, 1, 2, 0, 3])


def shares(seed: int, views: int = 2, count: int = 5, classes: int = 4) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(views, count, classes, generator=generator, dtype=torch.float64).softmax(2)


@pytest.mark.parametrize("pi", [0.1, 0.3, 0.5, 0.9])
def test_it_is_the_entropy_of_the_mean_less_the_mean_of_the_entropies(pi: float) -> None:
    """JS_pi(d_1, ..., d_n) = H(sum pi_i d_i) - sum pi_i H(d_i), section 3 of the paper; a label has no entropy."""
    views, labels = shares(0), torch.tensor([0, 1, 2, 3, 1])
    given = np.eye(4)[labels.numpy()]
    mean = pi * given + (1 - pi) * views.mean(0).numpy()
    expected = entropy(mean, axis=1) - (1 - pi) * entropy(views.numpy(), axis=2).mean(0)
    assert float(divergence(views, labels, pi)) == pytest.approx(expected.mean(), rel=1e-6)


def test_with_one_view_it_lies_between_cross_entropy_and_the_absolute_error() -> None:
    """Proposition 1: JS / Z goes to cross-entropy as pi goes to 0, and to half the absolute error as pi goes to 1."""
    views, labels = shares(1, views=1), torch.tensor([0, 1, 2, 3, 1])
    own = views[0].gather(1, labels.unsqueeze(1)).squeeze(1)
    assert float(divergence(views, labels, 1e-5)) / z(1e-5) == pytest.approx(float(-own.log().mean()), rel=1e-3)
    assert float(divergence(views, labels, 1 - 1e-6)) / z(1 - 1e-6) == pytest.approx(float((1 - own).mean()), rel=0.2)


def test_views_that_agree_with_the_label_cost_nothing_and_gradients_are_finite_at_the_ends() -> None:
    sure = torch.tensor([[[1.0, 0.0]], [[1.0, 0.0]]])
    assert float(divergence(sure, torch.tensor([0]), 0.5)) == pytest.approx(0, abs=1e-5)
    logits = torch.tensor([[[80.0, -80.0]], [[-80.0, 80.0]]], requires_grad=True)
    loss = divergence(logits.softmax(2), torch.tensor([1]), 0.3)
    loss.backward()
    assert torch.isfinite(loss) and logits.grad is not None and bool(torch.isfinite(logits.grad).all())


@pytest.mark.parametrize("recorded", RECORDED["steps"], ids=lambda each: f"pi{each['pi']}")
def test_two_steps_are_the_published_ones(recorded: dict[str, Any]) -> None:
    body = SmallNet(3, 4, width=4)
    fill(body, 0.0)
    mean, std = (scale(values, 3, "cpu") for values in ((0.5, 0.45, 0.4), (0.25, 0.2, 0.3)))
    net = Net(0, body, mean, std, nesterov=True)
    net.train()
    for step in range(2):
        views = (pixels(6, 3, 8, 8, phase=phase + step) for phase in (10.0, 20.0))
        labels, pi, scaled = LABELS[6 * step : 6 * step + 6], recorded["pi"], recorded["scaled"]
        terms = gjs_step(net, pi, scaled, *views, labels, torch.tensor(0.02))
        assert terms["divergence"].item() == pytest.approx(recorded["losses"][step], abs=1e-5)
        assert_alike(traces([w.grad for w in net.optimiser.weights if w.grad is not None]), recorded["gradients"][step])
    assert_alike(traces(net.optimiser.weights), recorded["weights"])
    assert_alike(traces([buffer.float() for buffer in body.buffers()]), recorded["running"])


def test_both_views_are_strong_and_drawn_apart() -> None:
    run = built(Gjs, epochs=2)
    asked: list[tuple[str, int]] = []
    view = run.engine.view

    def noted(rows: torch.Tensor, kind: str, generator: torch.Generator) -> torch.Tensor:
        asked.append((kind, generator.initial_seed()))
        return view(rows, kind, generator)

    run.engine.view = noted  # type: ignore[method-assign]
    next(iter(run.epochs()))
    assert [kind for kind, _ in asked] == ["strong", "strong"] and asked[0][1] != asked[1][1]


def test_the_rate_drops_twice() -> None:
    run = built(Gjs, epochs=8, lr=0.1, lr_drop_epoch=4)
    assert [run.method.lr_at(epoch) for epoch in range(8)] == pytest.approx([0.1] * 4 + [0.01] * 2 + [0.001] * 2)
    assert built(Gjs, epochs=8, lr=0.1, lr_drop_epoch=8).method.lr_at(7) == 0.1


def test_it_finds_wrong_labels() -> None:
    data = pictures(120)
    run = built(Gjs, data=data, epochs=14, lr_drop_epoch=10, lr=0.05)
    *_, last = run.epochs()
    assert last.verdict is not None
    right = data.labels == torch.arange(120) % 3
    assert float(((last.verdict.chance > 0.5) == right).double().mean()) > 0.85
