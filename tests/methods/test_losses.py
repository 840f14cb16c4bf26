"""Every equation against values worked out by hand and plain loops in float64; extremes stay finite."""

import math

import numpy as np
import pytest
import torch
from torch import Tensor

from labelsieve.methods.parts import losses as eq

N, K, D = 23, 4, 6


def made(seed: int = 0) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Embeddings (N, D), prototypes (K, D), labels (N,) and a 0/1 weight (N,), in float64."""
    g = torch.Generator().manual_seed(seed)
    embeddings = torch.randn(N, D, generator=g, dtype=torch.float64)
    prototypes = torch.randn(K, D, generator=g, dtype=torch.float64)
    labels = torch.randint(K, (N,), generator=g)
    return embeddings, prototypes, labels, (torch.rand(N, generator=g) < 0.6).double()


def sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x))


def by_loops(v: Tensor, c: Tensor, y: Tensor, rows: list[int], which: str) -> float:
    """L_X, L_U or L_XP of some rows, straight from the paper's sums."""
    total = 0.0
    for i in rows:
        for k in range(len(c)):
            q = sigmoid(float(np.dot(v[i].numpy(), c[k].numpy())))
            if which == "X":
                total += math.log(q) if k == y[i] else math.log(1 - q) / len(c)
            elif k == y[i]:
                total += math.log(1 - q) if which == "U" else math.log(q)
    return -total / len(rows)


LOSSES = {"X": eq.clean_loss, "U": eq.noisy_loss, "XP": eq.confident_loss}


def test_by_hand() -> None:
    """One sample, two classes: v'c = (1, -2), label 0, so q = 0.7310586 and 1 - sigmoid(-2) = 0.8807971."""
    v = torch.tensor([[1.0, 2.0]], dtype=torch.float64)
    c = torch.tensor([[1.0, 0.0], [0.0, -1.0]], dtype=torch.float64)
    y = torch.tensor([0])
    assert eq.similarity(v, c).tolist() == [[1.0, -2.0]]
    assert eq.own_similarity(v, c, y).tolist() == [1.0]
    assert float(eq.clean_score(v, c, y)) == pytest.approx(0.7310585786)
    # -(log 0.7310586 + 1/2 log 0.8807971)
    assert float(eq.clean_loss(v, c, y)) == pytest.approx(0.3132616875 + 0.5 * 0.1269280110)
    assert float(eq.noisy_loss(v, c, y)) == pytest.approx(1.3132616875)
    assert float(eq.confident_loss(v, c, y)) == pytest.approx(0.3132616875)


@pytest.mark.parametrize("which", LOSSES)
def test_prototype_losses_equal_the_papers_sums(which: str) -> None:
    v, c, y, _ = made()
    assert float(LOSSES[which](v, c, y)) == pytest.approx(by_loops(v, c, y, list(range(N)), which), abs=1e-12)


@pytest.mark.parametrize("which", LOSSES)
def test_a_weight_mask_equals_the_subset(which: str) -> None:
    v, c, y, weight = made(1)
    kept = weight.bool()
    masked = LOSSES[which](v, c, y, weight)
    torch.testing.assert_close(masked, LOSSES[which](v[kept], c, y[kept]), rtol=0, atol=1e-12)
    assert float(masked) == pytest.approx(by_loops(v, c, y, torch.nonzero(kept).flatten().tolist(), which))


@pytest.mark.parametrize("which", LOSSES)
@pytest.mark.parametrize("how", ["no rows", "no weight"])
def test_an_empty_set_gives_zero_and_zero_gradients(which: str, how: str) -> None:
    v, c, y, _ = made()
    c.requires_grad_()
    rows = 0 if how == "no rows" else N
    loss = LOSSES[which](v[:rows], c, y[:rows], None if how == "no rows" else torch.zeros(N))
    loss.backward()
    assert float(loss.detach()) == 0
    assert c.grad is not None and bool((c.grad == 0).all())


@pytest.mark.parametrize("which", LOSSES)
@pytest.mark.parametrize("score", [-80.0, 80.0])
@pytest.mark.parametrize("kind", [torch.float32, torch.float64])
def test_scores_of_80_stay_finite(which: str, score: float, kind: torch.dtype) -> None:
    v = torch.ones(3, 1, dtype=kind).requires_grad_()
    c = torch.full((2, 1), score, dtype=kind).requires_grad_()
    loss = LOSSES[which](v, c, torch.tensor([0, 1, 0]))
    loss.backward()
    assert bool(torch.isfinite(loss))
    assert v.grad is not None and bool(torch.isfinite(v.grad).all())
    assert c.grad is not None and bool(torch.isfinite(c.grad).all())
    wrong_side = {"X": 80.0 if score < 0 else 40.0, "U": 80.0 if score > 0 else 0.0}.get(which, max(-score, 0))
    assert float(loss.detach()) == pytest.approx(wrong_side, abs=1e-6)


def test_the_negative_weight_is_one_over_the_number_of_classes() -> None:
    v, c, y, _ = made(2)
    torch.testing.assert_close(eq.clean_loss(v, c, y), eq.clean_loss(v, c, y, negative=1 / K))
    assert float(eq.clean_loss(v, c, y, negative=1.0)) > float(eq.clean_loss(v, c, y))


@pytest.mark.parametrize("alpha", [0.0, 0.7])
def test_the_whole_prototype_loss(alpha: float) -> None:
    v, c, y, rows = made(3)
    g = torch.Generator().manual_seed(9)
    clean, confident = torch.rand(N, generator=g) < 0.5, torch.rand(N, generator=g) < 0.3
    confident &= ~clean
    predicted = torch.randint(K, (N,), generator=g)
    inside = {name: [i for i in range(N) if mask[i] and rows[i]] for name, mask in
              (("X", clean), ("U", ~clean), ("XP", confident))}  # fmt: skip
    expected = by_loops(v, c, y, inside["X"], "X") + by_loops(v, c, y, inside["U"], "U")
    expected += alpha * by_loops(v, c, predicted, inside["XP"], "XP")
    got = eq.prototype_loss(v, c, y, clean, predicted, confident, alpha, rows)
    assert float(got) == pytest.approx(expected, abs=1e-12)


def test_confident_noisy_by_hand() -> None:
    """Class 0's clean samples have p_0 = 0.6 and 0.8: threshold 0.7. Class 1's: 0.5. Class 2: none."""
    first = [[0.6, 0.3, 0.1], [0.8, 0.1, 0.1], [0.3, 0.5, 0.2]]  # clean, labels 0 0 1
    noisy = [[0.75, 0.15, 0.1], [0.5, 0.25, 0.25], [0.2, 0.55, 0.25], [0.0, 0.01, 0.99], [0.25, 0.5, 0.25]]
    probs = torch.tensor(first + noisy, dtype=torch.float64)
    labels = torch.tensor([0, 0, 1, 1, 1, 0, 0, 2])
    clean = torch.tensor([True] * 3 + [False] * 5)
    # 0.75 > 0.7; 0.5 < 0.7; 0.55 > 0.5; class 2 has no threshold; 0.5 is not strictly above 0.5
    assert eq.confident_noisy(probs, labels, clean).tolist() == [False] * 3 + [
        True,
        False,
        True,
        False,
        False,
    ]
    assert not eq.confident_noisy(probs, labels, torch.zeros(8, dtype=torch.bool)).any()
    assert not eq.confident_noisy(probs, labels, torch.ones(8, dtype=torch.bool)).any()


def numpy_softmax(logits: Tensor) -> np.ndarray:
    raised = np.exp(logits.numpy() - logits.numpy().max(1, keepdims=True))
    return raised / raised.sum(1, keepdims=True)


def test_vicinal_risk_terms_equal_numpy() -> None:
    g = torch.Generator().manual_seed(4)
    logits = 3 * torch.randn(N, K, generator=g, dtype=torch.float64)
    targets = torch.softmax(torch.randn(N, K, generator=g, dtype=torch.float64), 1)
    prior = torch.tensor([0.1, 0.2, 0.3, 0.4], dtype=torch.float64)
    p, t, labels = numpy_softmax(logits), targets.numpy(), torch.randint(K, (N,), generator=g)
    mean = p.mean(0)
    expected = {
        eq.labelled_loss(logits, targets): float(np.mean(-(t * np.log(p)).sum(1))),
        eq.unlabelled_loss(logits, targets): float(np.mean((p - t) ** 2)),
        eq.prior_penalty(logits, prior): float((prior.numpy() * np.log(prior.numpy() / mean)).sum()),
        eq.negative_entropy(logits): float(np.mean((p * np.log(p)).sum(1))),
    }
    for got, wanted in expected.items():
        assert float(got) == pytest.approx(wanted, abs=1e-12)
    own = -np.log(p[np.arange(N), labels.numpy()])
    np.testing.assert_allclose(eq.cross_entropies(logits, labels).numpy(), own, atol=1e-12)


def test_vicinal_risk_terms_by_hand() -> None:
    even = torch.zeros(2, 4, dtype=torch.float64)
    one_hot = torch.eye(4, dtype=torch.float64)[:2]
    prior = torch.tensor([0.5, 0.5, 0.0, 0.0], dtype=torch.float64)
    assert float(eq.labelled_loss(even, one_hot)) == pytest.approx(math.log(4))
    assert float(eq.unlabelled_loss(even, one_hot)) == pytest.approx((0.75**2 + 3 * 0.25**2) / 4)
    assert float(eq.prior_penalty(even, torch.full((4,), 0.25, dtype=torch.float64))) == pytest.approx(0)
    assert float(eq.prior_penalty(even, prior)) == pytest.approx(math.log(2))  # a class of prior 0 adds nothing
    assert float(eq.negative_entropy(even)) == pytest.approx(-math.log(4))


@pytest.mark.parametrize("name", ["labelled_loss", "unlabelled_loss", "prior_penalty", "negative_entropy"])
def test_extreme_logits_stay_finite(name: str) -> None:
    logits = torch.tensor([[80.0, -80.0, -800.0], [-800.0, 800.0, -800.0]], requires_grad=True)  # the last has no share at all
    aim = torch.full((3,), 1 / 3) if name == "prior_penalty" else torch.eye(3)[:2].flip(0)
    loss = eq.negative_entropy(logits) if name == "negative_entropy" else getattr(eq, name)(logits, aim)
    loss.backward()
    assert bool(torch.isfinite(loss))
    assert logits.grad is not None and bool(torch.isfinite(logits.grad).all())


def test_an_empty_unlabelled_half_costs_nothing() -> None:
    logits = torch.randn(0, K, requires_grad=True)
    for loss in (eq.labelled_loss(logits, logits.detach()), eq.unlabelled_loss(logits, logits.detach())):
        loss.backward()
        assert float(loss.detach()) == 0
