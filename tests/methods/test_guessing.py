"""One pass that counts as four leaves the running statistics of four."""

import torch
from torch import nn

from labelsieve.methods.parts.batchnorm import counting


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
