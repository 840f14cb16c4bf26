"""Anybody's module as a network of ours: (logits, v) as it is, logits alone through its last linear layer."""

import pytest
import torch
from torch import Tensor, nn

from labelsieve.errors import UsageError
from labelsieve.nets import WithHead, adapted, build, lent, register
from labelsieve.nets.own import Make


class Pair(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.classifier = nn.Linear(8, 3)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        v = x.flatten(1)[:, :8]
        return self.classifier(v), v


def logits_only() -> nn.Sequential:
    return nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(4 * 36, 16), nn.ReLU(), nn.Linear(16, 3))


def test_a_module_that_gives_both_stays_itself() -> None:
    module = Pair()
    assert adapted(module, (1, 8, 8)) is module


def test_the_features_are_what_the_last_linear_layer_reads() -> None:
    module = logits_only().train()
    network = adapted(module, (1, 8, 8))
    x = torch.randn(5, 1, 8, 8)
    logits, v = network(x)
    torch.testing.assert_close(logits, module(x))
    torch.testing.assert_close(v, module[:-1](x))
    assert network.features == 16 and module.training and not module._forward_hooks
    logits.sum().backward()
    assert all(p.grad is None for p in module.parameters())  # a copy: the module stays as it was


def test_a_linear_layer_alone() -> None:
    network = adapted(nn.Linear(6, 2), (6,))
    x = torch.randn(4, 6)
    assert torch.equal(network(x)[1], x)


def test_a_body_and_its_layer() -> None:
    body, layer = nn.Flatten(), nn.Linear(64, 3)
    logits, v = WithHead(body, layer)(torch.randn(2, 1, 8, 8))
    assert logits.shape == (2, 3) and v.shape == (2, 64)


@pytest.mark.parametrize(
    "module",
    [
        nn.Sequential(nn.Flatten(), nn.Linear(64, 3), nn.Softmax(1)),
        nn.Sequential(nn.Conv2d(1, 3, 8), nn.Flatten()),
        nn.Conv2d(1, 3, 3),
        nn.LSTM(8, 4),
    ],
)
def test_what_cannot_be_told_apart_is_refused(module: nn.Module) -> None:
    shape = (8,) if isinstance(module, nn.LSTM) else (1, 8, 8)
    with pytest.raises(UsageError):
        adapted(module, shape)


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a test registers is forgotten after it."""
    for place in ("labelsieve.nets.REGISTERED", "labelsieve.nets.own.REGISTERED"):
        monkeypatch.setattr(place, registered)
    registered.clear()


registered: dict[str, Make] = {}


def test_a_registered_network_is_known_by_its_name(registry: None) -> None:
    register("mine", lambda channels, classes: adapted(logits_only(), (channels, 8, 8)))
    logits, _ = build("mine", 1, 3, 0)(torch.zeros(2, 1, 8, 8))
    assert logits.shape == (2, 3)
    for name in ("auto", "timm:x", "small"):
        with pytest.raises(UsageError, match="known already"):
            register(name, lambda channels, classes: Pair())


def test_a_cell_that_runs_again_registers_the_newer_network(registry: None) -> None:
    register("mine", lambda channels, classes: Pair())
    register("mine", lambda channels, classes: adapted(logits_only(), (channels, 8, 8)))
    assert not isinstance(build("mine", 1, 3, 0), Pair)


def test_a_registered_builder_of_logits_alone_is_adapted(registry: None) -> None:
    register("mine", lambda channels, classes: logits_only())
    first, again, second = (build("mine", 1, 3, seed, (1, 8, 8)) for seed in (0, 0, 1))
    logits, v = first(torch.zeros(2, 1, 8, 8))
    assert logits.shape == (2, 3) and v.shape == (2, 16)
    weights, same, others = (torch.cat([p.flatten() for p in network.parameters()]) for network in (first, again, second))
    assert torch.equal(weights, same) and not torch.equal(weights, others)


class Viewed(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv, self.last = nn.Conv2d(1, 4, 3), nn.Linear(4 * 36, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.last(self.conv(x).view(len(x), -1))


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda channels, classes: nn.Linear(5, classes), "cannot read samples of shape"),
        (lambda channels, classes: nn.Sequential(nn.Flatten(), nn.Linear(64, 7)), "7 logits, and there are 3 classes"),
        (lambda channels, classes: "resnet", "must give a torch.nn.Module"),
        (lambda channels, classes: Viewed(), "use reshape or flatten"),
    ],
)
def test_a_network_that_does_not_fit_says_why(registry: None, make: Make, said: str) -> None:
    register("mine", make)
    with pytest.raises(UsageError, match=said):
        build("mine", 1, 3, 0, (1, 8, 8))


def test_a_module_is_lent_as_copies_with_weights_of_their_own(registry: None) -> None:
    module = logits_only()
    before = [p.clone() for p in module.parameters()]
    with lent(module) as name, lent(module) as other:
        assert name != other
        first, second = (build(name, 1, 3, seed, (1, 8, 8)) for seed in (0, 1))
    pairs = list(zip(first.parameters(), second.parameters()))
    assert pairs and all(not torch.equal(a, b) for a, b in pairs)
    assert all(torch.equal(old, new) for old, new in zip(before, module.parameters())) and not registered
