"""A training step against a slow one written anew from what DivideMix does: no function is shared."""

import copy

import pytest
import torch
from tiny_run import MEAN, STD, K, make, pictures
from torch import Tensor, nn

from labelsieve.methods.ce import cross_entropy_step
from labelsieve.methods.dividemix import DivideMix, mixed_step, targets
from labelsieve.methods.net import Net

B, STEPS = 5, 3
LR = torch.tensor(0.02)


class PlainSGD:
    """Momentum 0.9 and weight decay 5e-4 written out."""

    def __init__(self, network: nn.Module, lr: float) -> None:
        self.network, self.lr = network, lr
        self.velocity = [torch.zeros_like(p) for p in network.parameters()]

    def step(self, loss: Tensor) -> None:
        gradients = torch.autograd.grad(loss, list(self.network.parameters()))
        with torch.no_grad():
            for p, g, velocity in zip(self.network.parameters(), gradients, self.velocity):
                velocity.copy_(0.9 * velocity + g + 5e-4 * p)
                p -= self.lr * velocity


def normalised(pixels: Tensor) -> Tensor:
    return torch.stack([(pixels[:, c] / 255 - MEAN[c]) / STD[c] for c in range(3)], 1)


def logits_of(network: nn.Module, pixels: Tensor) -> Tensor:
    return network(normalised(pixels.float()))[0]


def sharpened(p: Tensor) -> Tensor:
    squares = p * p
    return squares / squares.sum()


def slow_targets(own: Tensor, other: Tensor, labels: Tensor, w: Tensor) -> list[Tensor]:
    """A target for each of 4B views; `own` (4B, K) and `other` (2B, K) are softmax outputs on the weak views."""
    refined, guessed = [], []
    for i in range(B):
        given = torch.tensor([float(k == labels[i]) for k in range(K)])
        refined.append(sharpened(w[i] * given + (1 - w[i]) * (own[i] + own[B + i]) / 2))
        mean = (own[2 * B + i] + own[3 * B + i] + other[i] + other[B + i]) / 4
        guessed.append(sharpened(mean))
    return refined + refined + guessed + guessed


def slow_step(
    network: nn.Module, peer: nn.Module, optimiser: PlainSGD, prior: Tensor, train_unlabelled: bool, passes: int,
    weak: Tensor, strong: Tensor, labels: Tensor, w: Tensor, partner: Tensor, share: float, lambda_u: float,
) -> list[float]:  # fmt: skip
    network.train()
    peer.eval()
    with torch.no_grad():
        own = torch.zeros(4 * B, K)
        for some in sorted(torch.arange(4 * B).chunk(passes), key=lambda rows: int(rows[0]) < 2 * B):  # u1, u2, x1, x2
            for _ in range(4 // passes):  # as if a pass for each view, of which every one moves the running statistics
                own[some] = logits_of(network, weak[some]).softmax(1)
        other = logits_of(peer, weak[2 * B :]).softmax(1)
        aims = slow_targets(own, other, labels, w)
    rows = range(4 * B if train_unlabelled else 2 * B)
    mixed, mixed_aims = [], []
    for i in rows:
        j = int(partner[i])
        mixed.append(share * strong[i].float() + (1 - share) * strong[j].float())
        mixed_aims.append(share * aims[i] + (1 - share) * aims[j])
    log_p = logits_of(network, torch.stack(mixed)).log_softmax(1)
    labelled = sum(-(mixed_aims[i] * log_p[i]).sum() for i in rows if i < 2 * B) / (2 * B)
    squares = [((log_p[i].exp() - mixed_aims[i]) ** 2).sum() / K for i in rows if i >= 2 * B]
    unlabelled = sum(squares) / (2 * B) if squares else torch.zeros(())
    mean = sum(log_p[i].exp() for i in rows) / len(rows)
    penalty = sum(prior[k] * torch.log(prior[k] / mean[k]) for k in range(K))  # type: ignore[index]
    optimiser.step(labelled + lambda_u * unlabelled + penalty)  # type: ignore[arg-type]
    return [float(torch.as_tensor(term).detach()) for term in (labelled, unlabelled, penalty)]


def drawn(step: int) -> dict[str, Tensor]:
    """A step's inputs: weak and strong views (4B, 3, 8, 8) and all that goes with them."""
    g, data = torch.Generator().manual_seed(step), pictures()
    return {
        "weak": data.images[torch.randint(60, (4 * B,), generator=g)],
        "strong": data.images[torch.randint(60, (4 * B,), generator=g)],
        "labels": torch.randint(K, (B,), generator=g),
        "w": 0.5 + 0.5 * torch.rand(B, generator=g),
        "partner": torch.randperm(4 * B, generator=g),
        "share": 0.5 + 0.5 * torch.rand((), generator=g),
        "lambda_u": 25 * torch.rand((), generator=g),
        "lr": LR,
    }


def assert_same_network(ours: nn.Module, theirs: nn.Module) -> None:
    for name, value in theirs.state_dict().items():
        if not name.endswith("num_batches_tracked"):  # the statistics have a fixed momentum, so nothing reads it
            torch.testing.assert_close(ours.state_dict()[name], value, rtol=0, atol=1e-6, msg=name)


@pytest.mark.parametrize("train_unlabelled", [True, False])
@pytest.mark.parametrize("passes", [1, 2, 4])
def test_mixed_steps_equal_the_slow_ones(train_unlabelled: bool, passes: int) -> None:
    c = DivideMix.Config(train_unlabelled=train_unlabelled, guess_passes=passes)
    ours, peer = make(0), make(1)
    slow, slow_peer = copy.deepcopy(ours.network), copy.deepcopy(peer.network)
    start = copy.deepcopy(ours.network)
    optimiser, prior = PlainSGD(slow, float(LR)), torch.tensor([0.2, 0.3, 0.5])
    ours.network.train()
    peer.network.eval()
    for step in range(STEPS):
        inputs = drawn(step)
        terms = mixed_step(ours, peer, c, prior, **inputs)
        inputs.pop("lr")
        share, lambda_u = float(inputs.pop("share")), float(inputs.pop("lambda_u"))
        fixed = slow, slow_peer, optimiser, prior, train_unlabelled, passes
        expected = slow_step(*fixed, **inputs, share=share, lambda_u=lambda_u)
        assert list(terms) == ["labelled", "unlabelled", "penalty"]
        torch.testing.assert_close(torch.stack([*terms.values()]).detach(), torch.tensor(expected), rtol=1e-5, atol=1e-6)
    assert_same_network(ours.network, slow)
    assert_same_network(peer.network, slow_peer)  # the peer only guesses
    assert float((slow.classifier.weight - start.classifier.weight).detach().abs().max()) > 1e-3  # type: ignore


@pytest.mark.parametrize("penalty", [True, False])
def test_warm_up_steps_equal_the_slow_ones(penalty: bool) -> None:
    ours = make(0)
    slow = copy.deepcopy(ours.network)
    optimiser = PlainSGD(slow, float(LR))
    data = pictures()
    ours.network.train()
    slow.train()
    for step in range(STEPS):
        rows = torch.arange(step * 16, step * 16 + 16)
        terms = cross_entropy_step(ours, penalty, data.images[rows], data.labels[rows], LR)
        log_p = logits_of(slow, data.images[rows]).log_softmax(1)
        loss = sum(-log_p[i, data.labels[rows[i]]] for i in range(16)) / 16
        if penalty:
            loss = loss + sum((log_p[i].exp() * log_p[i]).sum() for i in range(16)) / 16
        optimiser.step(loss)  # type: ignore[arg-type]
        torch.testing.assert_close(terms["cross_entropy"].detach(), loss.detach(), rtol=1e-5, atol=1e-6)  # type: ignore[union-attr]
    assert_same_network(ours.network, slow)


def statistics(one: Net) -> Tensor:
    return one.network.norms[0].running_mean.clone()  # type: ignore[index, union-attr]


def test_guessing_moves_the_trained_networks_statistics_and_not_the_peers() -> None:
    ours, peer = make(0), make(1)
    ours.network.train()
    peer.network.eval()
    before, peers_before = statistics(ours), statistics(peer)
    inputs = drawn(0)
    aims = targets(ours, peer, DivideMix.Config(), inputs["weak"], inputs["labels"], inputs["w"])
    assert not torch.equal(statistics(ours), before)
    assert torch.equal(statistics(peer), peers_before)
    assert not aims.requires_grad and aims.shape == (4 * B, K)


def test_the_prior_weight_weighs_the_penalty() -> None:
    """Without the penalty the prior does not matter; with it, it does."""
    found = []
    for weight in (0.0, 1.0):
        for prior in (torch.tensor([0.8, 0.1, 0.1]), torch.tensor([0.1, 0.1, 0.8])):
            ours, peer = make(0), make(1)
            mixed_step(ours, peer, DivideMix.Config(prior_weight=weight), prior, **drawn(0))
            found.append(ours.network.classifier.weight.detach().clone())  # type: ignore[union-attr, operator]
    assert torch.equal(found[0], found[1])
    assert not torch.equal(found[2], found[3])
