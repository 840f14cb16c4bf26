"""One pass that counts as four leaves the running statistics of four; one pass in parts gives all that several give."""

import copy

import pytest
import torch
from torch import nn

from labelsieve.method.guessing import can_part, counting, in_parts


def network() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Conv2d(3, 4, 1), nn.BatchNorm2d(4), nn.ReLU(), nn.BatchNorm2d(4, momentum=None))


def test_one_pass_moves_the_statistics_as_four_do() -> None:
    one, four, pixels = network(), network(), torch.randn(16, 3, 8, 8)
    with counting(one, views=4):
        one(pixels)
    for _ in range(4):
        four(pixels)
    torch.testing.assert_close(one[1].running_mean, four[1].running_mean)
    torch.testing.assert_close(one[1].running_var, four[1].running_var)


def test_afterwards_the_momentum_is_what_it_was() -> None:
    net = network()
    with counting(net, views=4):
        assert net[1].momentum != 0.1
    assert net[1].momentum == 0.1 and net[3].momentum is None


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
    assert type(net[1]) is nn.BatchNorm2d and not hasattr(net[1], "parts")


def test_layers_of_other_makers_are_left_to_passes() -> None:
    class Own(nn.BatchNorm2d):
        pass

    assert can_part(nn.Sequential(nn.Conv2d(3, 4, 1)))
    assert not can_part(nn.Sequential(nn.BatchNorm2d(4), Own(4)))
    assert not can_part(nn.Sequential(nn.BatchNorm2d(4, affine=False)))
    assert not can_part(network())
