"""Three convolutions for CPU: x -> (logits, v), D = 4 * width. Made for pictures of 8 to 64 px.

It halves the picture only while that leaves at least 4 px a side, so an 8 px digit is pooled once and a 28 px garment twice.
"""

import itertools

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from labelsieve.nets.head import head


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
