"""A batch normalised in parts gives all that passes, or devices, give that see a part each."""

import copy

import pytest
import torch
from tiny_run import make
from torch import nn

from labelsieve import nets
from labelsieve.config.schema import Config, override
from labelsieve.errors import UsageError
from labelsieve.methods.net import Net
from labelsieve.methods.parts.batchnorm import can_part, guesses, in_parts, normalising, shared_by
from labelsieve.nets.small import SmallNet
from labelsieve.runs.rows import rows_for
from labelsieve.train.build import parts_for


def pictures_or_vectors(vectors: bool) -> tuple[nn.Sequential, torch.Tensor]:
    torch.manual_seed(1)
    if vectors:
        return nn.Sequential(nn.Linear(5, 4), nn.BatchNorm1d(4), nn.ReLU(), nn.BatchNorm1d(4)), torch.randn(24, 5)
    net = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.BatchNorm2d(4))
    return net, torch.randn(24, 3, 8, 8).contiguous(memory_format=torch.channels_last)


@pytest.mark.parametrize("vectors", [False, True])
@pytest.mark.parametrize("parts", [2, 4])
def test_a_pass_in_parts_gives_what_passes_give(parts: int, vectors: bool) -> None:
    """The unlabelled views, which are the second half, are looked at before the labelled ones."""
    one, seen = pictures_or_vectors(vectors)
    with torch.no_grad():
        one[1].weight.uniform_(0.5, 2)
        one[1].bias.uniform_(-1, 1)
    several = copy.deepcopy(one)
    assert can_part(one)
    with torch.no_grad(), in_parts(one, parts):
        found = one(seen)
    with torch.no_grad():
        unlabelled = [several(part) for part in seen[12:].chunk(parts // 2)]
        wanted = torch.cat([*(several(part) for part in seen[:12].chunk(parts // 2)), *unlabelled])
    torch.testing.assert_close(found, wanted)
    for name, value in several.state_dict().items():
        torch.testing.assert_close(one.state_dict()[name], value)


def test_afterwards_the_layers_are_what_they_were() -> None:
    net, _ = pictures_or_vectors(False)
    with in_parts(net, 4):
        assert type(net[1]) is not nn.BatchNorm2d
    assert type(net[1]) is nn.BatchNorm2d and "passes" not in vars(net[1])


def test_layers_of_other_makers_are_left_to_passes() -> None:
    class Own(nn.BatchNorm2d):
        pass

    assert can_part(nn.Sequential(nn.Conv2d(3, 4, 1)))
    assert not can_part(nn.Sequential(nn.BatchNorm2d(4), Own(4)))
    assert not can_part(nn.Sequential(nn.BatchNorm2d(4, affine=False)))
    assert not can_part(nn.Sequential(nn.BatchNorm2d(4, momentum=None)))


def replicas(net: nn.Module, seen: torch.Tensor, devices: int) -> torch.Tensor:
    """What DataParallel does: a copy a device, each with its part; what the first one remembers is kept."""
    copies = [net, *(copy.deepcopy(net) for _ in range(devices - 1))]
    for one in copies[1:]:  # replicas share the weights, so that gradients add up
        for mine, theirs in zip(one.modules(), net.modules()):
            for name, weight in theirs.named_parameters(recurse=False):
                del mine._parameters[name]
                setattr(mine, name, weight)
    return torch.cat([one(part) for one, part in zip(copies, seen.chunk(devices))])


@pytest.mark.parametrize("vectors", [False, True])
@pytest.mark.parametrize("devices", [2, 4])
def test_shared_layers_do_as_devices_do(devices: int, vectors: bool) -> None:
    """Output, gradients, running statistics; and in eval mode nothing is shared."""
    one, seen = (each.double() for each in pictures_or_vectors(vectors))
    several = copy.deepcopy(one)
    shared_by(one, devices)
    slopes = torch.randn_like(one(seen))
    one.load_state_dict(several.state_dict())
    found, wanted = one(seen), replicas(several, seen, devices)
    torch.testing.assert_close(found, wanted)
    (found * slopes).sum().backward()
    (wanted * slopes).sum().backward()
    for (name, mine), theirs in zip(one.named_parameters(), several.parameters()):
        torch.testing.assert_close(mine.grad, theirs.grad, msg=name)
    for name, value in several.state_dict().items():
        torch.testing.assert_close(one.state_dict()[name], value)
    torch.testing.assert_close(one.eval()(seen), several.eval()(seen))


def test_passes_on_several_devices_may_be_joined() -> None:
    """Guessing view by view, each view in two parts: four passes, or one that makes eight parts, of which four are remembered."""
    apart, joined = (make(0, norm_devices=2) for _ in range(2))
    joined.joins_passes = True
    weak = torch.randint(0, 256, (32, 3, 8, 8), dtype=torch.uint8)
    found = [guessed(one, weak) for one in (apart, joined)]
    torch.testing.assert_close(found[0], found[1])
    for name, value in apart.network.state_dict().items():
        torch.testing.assert_close(joined.network.state_dict()[name], value)


def guessed(one: Net, weak: torch.Tensor) -> torch.Tensor:
    one.network.train()
    with torch.no_grad():
        return guesses(one, weak, 4)


CHANGES = {"network": "small", "training.norm_devices": 4}


def test_a_run_shares_its_batches() -> None:
    config = override(Config(), CHANGES | {"training.batch": 64, "training.warmup_batch": 64})
    for one in parts_for(config, rows_for(config)).method.nets:
        assert {layer.devices for layer in normalising(one.network)} == {4}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"training.batch": 66}, "training.batch=66 has no equal parts"),
        ({"training.warmup_batch": 4}, "training.warmup_batch=4 has no equal parts of two or more"),
        ({"network": "bare"}, 'network "bare" has no BatchNorm'),
    ],
)
def test_what_cannot_be_shared_is_refused(changes: dict[str, object], words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(nets.NETWORKS, "bare", bare)
    config = override(Config(), CHANGES | changes)
    with pytest.raises(UsageError, match=words):
        parts_for(config, rows_for(config))


def bare(channels: int, classes: int) -> nn.Module:
    net = SmallNet(channels, classes)
    net.norms = nn.ModuleList(nn.GroupNorm(1, layer.num_features) for layer in net.norms)
    return net
