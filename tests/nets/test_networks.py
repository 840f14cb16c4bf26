"""One list of checks over every registered network, and PreAct-ResNet-18 by its published shape."""

import pytest
import torch
from torch import nn

from labelsieve.errors import ToolError, UsageError
from labelsieve.nets import NETWORKS, VECTOR_NETWORKS, build
from labelsieve.nets.resnet import PreActBlock, PreActResNet

CASES = [("small", size) for size in (8, 28, 32, 33)] + [("small-wide", 8), ("small-wide", 33)]
CASES += [(name, size) for name in ("preact-resnet18", "preact-resnet18-identity") for size in (8, 28, 33)]
CASES += [
    ("resnet18", 64),
    ("resnet18", 33),
    ("preact-resnet34", 8),
    ("resnet18-cifar", 8),
    ("resnet18-cifar", 32),
    ("resnet50", 64),
]
SLIM = {"channels": 3, "classes": 10, "width": 8}


def test_every_network_is_in_the_cases() -> None:
    assert {name for name, _ in CASES} == set(NETWORKS)


@pytest.mark.parametrize(("name", "size"), CASES)
@pytest.mark.parametrize("channels", [1, 3, 4])
def test_shapes_and_gradients(name: str, size: int, channels: int) -> None:
    network = build(name, channels, 7, seed=0)
    logits, v = network(torch.randn(2, channels, size, size + 2))
    assert logits.shape == (2, 7) and v.shape == (2, network.features)
    torch.testing.assert_close(network.classifier(v), logits)
    logits.square().mean().backward()
    gradients = [p.grad for p in network.parameters()]
    assert all(g is not None and bool(torch.isfinite(g).all()) for g in gradients)
    assert all(float(p.grad.abs().sum()) > 0 for k, p in network.named_parameters() if "conv" in k)


@pytest.mark.parametrize("name", NETWORKS)
def test_the_seed_alone_decides_the_weights(name: str) -> None:
    torch.manual_seed(5)
    before = torch.get_rng_state()
    first = build(name, 3, 10, seed=1)
    assert torch.equal(before, torch.get_rng_state())
    torch.manual_seed(6)
    second, other = build(name, 3, 10, seed=1), build(name, 3, 10, seed=2)
    same = [torch.equal(a, b) for a, b in zip(first.parameters(), second.parameters())]
    assert all(same)
    assert not torch.equal(first.classifier.weight, other.classifier.weight)


@pytest.mark.parametrize("name", NETWORKS)
def test_convolutions_have_no_biases(name: str) -> None:
    convolutions = [m for m in build(name, 3, 10, 0).modules() if isinstance(m, nn.Conv2d)]
    assert convolutions and all(m.bias is None for m in convolutions)


@pytest.mark.parametrize("name", NETWORKS)
def test_the_input_is_left_as_it_was(name: str) -> None:
    x = torch.randn(2, 3, 16, 16)
    kept = x.clone()
    build(name, 3, 4, 0)(x)
    assert torch.equal(x, kept)


def test_an_unknown_network_is_named_with_its_nearest() -> None:
    with pytest.raises(UsageError, match='did you mean "small"'):
        build("smal", 3, 10, 0)


def test_preact_resnet18_has_its_published_size() -> None:
    network = build("preact-resnet18", 3, 10, 0)
    assert sum(p.numel() for p in network.parameters()) == 11_171_274
    assert network.features == 512


def test_weights_of_one_wiring_are_refused_by_the_other() -> None:
    """Their shapes are the same, so they would load, and say something else."""
    published, identity = PreActResNet(**SLIM), PreActResNet(**SLIM, identity=True)
    with pytest.raises(ToolError, match="of network preact-resnet18-identity,"):
        published.load_state_dict(identity.state_dict())
    with pytest.raises(ToolError, match="of network preact-resnet18,"):
        identity.load_state_dict(published.state_dict())
    identity.load_state_dict(PreActResNet(**SLIM, identity=True).state_dict())


def test_preact_resnet18_has_four_stages_of_two_blocks() -> None:
    blocks = [m for m in PreActResNet(3, 10).modules() if isinstance(m, PreActBlock)]
    assert [b.conv2.out_channels for b in blocks] == [64, 64, 128, 128, 256, 256, 512, 512]
    assert [b.conv1.stride[0] for b in blocks] == [1, 1, 2, 1, 2, 1, 2, 1]
    assert [b.shortcut is not None for b in blocks] == [False, False, True, False, True, False, True, False]


def normed(bn: nn.BatchNorm2d, x: torch.Tensor) -> torch.Tensor:
    """BatchNorm in eval mode, written out."""
    shape = (1, -1, 1, 1)
    scale = (bn.weight / (bn.running_var + bn.eps).sqrt()).view(shape)  # type: ignore[operator]
    return (x - bn.running_mean.view(shape)) * scale + bn.bias.view(shape)  # type: ignore[union-attr]


def stirred(network: nn.Module) -> nn.Module:
    """Eval mode, with BatchNorm statistics and weights that are not the neutral ones."""
    g = torch.Generator().manual_seed(0)
    for module in network.modules():
        if isinstance(module, nn.BatchNorm2d):
            for value in (module.running_mean, module.running_var, module.weight.data, module.bias.data):
                value.copy_(0.5 + torch.rand(value.shape, generator=g))  # type: ignore[union-attr]
    return network.eval()


@torch.no_grad()
def block_by_hand(block: PreActBlock, x: torch.Tensor) -> torch.Tensor:
    active = normed(block.bn1, x).clamp(min=0)
    stride = block.conv1.stride
    inner = torch.conv2d(active, block.conv1.weight, None, stride, 1)
    inner = torch.conv2d(normed(block.bn2, inner).clamp(min=0), block.conv2.weight, None, 1, 1)
    if block.shortcut is None:
        return inner + (x if block.identity else active)
    return inner + torch.conv2d(active, block.shortcut.weight, None, stride, 0)


@pytest.mark.parametrize("identity", [False, True])
@pytest.mark.parametrize(("narrow", "wide", "stride"), [(4, 4, 1), (4, 8, 2), (4, 8, 1)])
@torch.no_grad()
def test_a_block_by_hand(narrow: int, wide: int, stride: int, identity: bool) -> None:
    """What is passed on is the activated input, also where no convolution changes it; the raw one only in the other wiring."""
    block = stirred(PreActBlock(narrow, wide, stride, identity))
    x = torch.randn(2, narrow, 8, 8)
    assert isinstance(block, PreActBlock)
    torch.testing.assert_close(block(x), block_by_hand(block, x), rtol=1e-4, atol=1e-5)


@torch.no_grad()
def test_nothing_is_normalised_or_activated_before_the_pooling() -> None:
    network = stirred(PreActResNet(**SLIM))
    assert isinstance(network, PreActResNet)
    x = torch.randn(2, 3, 32, 32)
    inner = normed(network.bn1, torch.conv2d(x, network.conv1.weight, None, 1, 1)).clamp(min=0)
    for block in network.stages:
        assert isinstance(block, PreActBlock)
        inner = block_by_hand(block, inner)
    assert inner.shape == (2, 64, 4, 4)
    _, v = network(x)
    torch.testing.assert_close(v, inner.sum((2, 3)) / 16, rtol=1e-3, atol=1e-4)
    assert float(v.min()) < 0  # an activation would have left none below 0


@pytest.mark.parametrize("name", VECTOR_NETWORKS)
def test_networks_for_vectors(name: str) -> None:
    network = build(name, 5, 7, seed=1)
    x = torch.randn(4, 5)
    kept = x.clone()
    logits, v = network(x)
    assert torch.equal(x, kept)
    assert logits.shape == (4, 7) and v.shape == (4, network.features) and bool((v >= 0).all())
    torch.testing.assert_close(network.classifier(v), logits)
    logits.square().mean().backward()
    assert all(p.grad is not None and float(p.grad.abs().sum()) > 0 for p in network.parameters())
    assert torch.equal(build(name, 5, 7, seed=1).classifier.weight, network.classifier.weight)
    assert not torch.equal(build(name, 5, 7, seed=2).classifier.weight, network.classifier.weight)
