"""Small networks for CPUs: `SmallNet` for pictures, `Mlp` for vectors; and `head`, the last layer of every network.

The last product is in full precision: losses are compared sample by sample, so it must not be rounded to eight bits where the
rest of the network is.
"""

import itertools

import torch
import torch.nn.functional as F
from torch import Tensor, nn


def head(classifier: nn.Linear, maps: Tensor) -> tuple[Tensor, Tensor]:
    with torch.autocast(maps.device.type, enabled=False):
        return classified(classifier, maps.float().mean((2, 3)))


def classified(classifier: nn.Linear, v: Tensor) -> tuple[Tensor, Tensor]:
    with torch.autocast(v.device.type, enabled=False):
        v = v.float()
        return classifier(v), v


class SmallNet(nn.Module):
    def __init__(self, channels: int, classes: int, width: int = 24) -> None:
        super().__init__()
        widths = (channels, width, 2 * width, 4 * width)
        self.convs = nn.ModuleList(nn.Conv2d(a, b, 3, 1, 1, bias=False) for a, b in itertools.pairwise(widths))
        self.norms = nn.ModuleList(nn.BatchNorm2d(b) for b in widths[1:])
        self.features = widths[-1]
        self.classifier = nn.Linear(self.features, classes)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        for i, (conv, norm) in enumerate(zip(self.convs, self.norms)):
            x = torch.relu(norm(conv(x)))
            if i < 2 and min(x.shape[2:]) >= 8:
                x = F.max_pool2d(x, 2)
        return head(self.classifier, x)


class Mlp(nn.Module):
    """Linear, BatchNorm, ReLU, Linear. The first layer has no bias: BatchNorm brings one."""

    def __init__(self, dimensions: int, classes: int, width: int = 256) -> None:
        super().__init__()
        self.hidden = nn.Linear(dimensions, width, bias=False)
        self.norm = nn.BatchNorm1d(width)
        self.features = width
        self.classifier = nn.Linear(width, classes)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        return classified(self.classifier, torch.relu(self.norm(self.hidden(x))))
