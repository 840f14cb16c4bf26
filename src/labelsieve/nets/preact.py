"""PreAct-ResNet-18 for 32 px pictures, as the published label-noise benchmarks use it: x -> (logits, v), D = 512.

A 3x3 stem with BatchNorm and ReLU, four stages of two blocks (64-128-256-512, strides 1 2 2 2). A block normalises and
activates first; its shortcut is a bare 1x1 convolution of the activated input where shapes change. Nothing is normalised
before the global pooling. 11,171,274 parameters for 3 channels and 10 classes.
"""

import torch
from torch import Tensor, nn

from labelsieve.nets.head import head


class PreActBlock(nn.Module):
    def __init__(self, narrow: int, wide: int, stride: int) -> None:
        super().__init__()
        self.bn1 = nn.BatchNorm2d(narrow)
        self.conv1 = nn.Conv2d(narrow, wide, 3, stride, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(wide)
        self.conv2 = nn.Conv2d(wide, wide, 3, 1, 1, bias=False)
        changes = stride != 1 or narrow != wide
        self.shortcut = nn.Conv2d(narrow, wide, 1, stride, bias=False) if changes else None

    def forward(self, x: Tensor) -> Tensor:
        active = torch.relu(self.bn1(x))
        passed = x if self.shortcut is None else self.shortcut(active)
        return self.conv2(torch.relu(self.bn2(self.conv1(active)))) + passed


class PreActResNet18(nn.Module):
    def __init__(self, channels: int, classes: int, width: int = 64) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(channels, width, 3, 1, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        blocks: list[nn.Module] = []
        narrow = width
        for wide, stride in ((width, 1), (2 * width, 2), (4 * width, 2), (8 * width, 2)):
            blocks += [PreActBlock(narrow, wide, stride), PreActBlock(wide, wide, 1)]
            narrow = wide
        self.blocks = nn.Sequential(*blocks)
        self.features = narrow
        self.classifier = nn.Linear(narrow, classes)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        return head(self.classifier, self.blocks(torch.relu(self.bn1(self.conv1(x)))))
