"""ResNet-18 and ResNet-50 for pictures of 64 px and more, and ResNet-18 for 32 px: x -> (logits, v), D = 512 or 2048.

A 7x7 stem that halves, a pooling that halves again (for 32 px a 3x3 stem that halves nothing), four stages (64-128-256-512,
strides 1 2 2 2) of plain or of bottleneck blocks. A bottleneck's stride is in its 3x3 convolution. Parts carry the names that
published weights use, the classifier aside. With 3 channels and 1000 classes: 11,689,512 and 25,557,032 parameters.
"""

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from labelsieve.nets.small import head


class PlainBlock(nn.Module):
    """Two 3x3 convolutions, added to what came in."""

    widening = 1

    def __init__(self, narrow: int, width: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(narrow, width, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.downsample = matching(narrow, width, stride)

    def forward(self, x: Tensor) -> Tensor:
        inner = torch.relu(self.bn1(self.conv1(x)))
        inner = self.bn2(self.conv2(inner))
        return torch.relu(inner + (x if self.downsample is None else self.downsample(x)))


class Bottleneck(nn.Module):
    """1x1 down, 3x3, 1x1 up to four times the width, added to what came in."""

    widening = 4

    def __init__(self, narrow: int, width: int, stride: int) -> None:
        super().__init__()
        wide = width * self.widening
        self.conv1 = nn.Conv2d(narrow, width, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, stride, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.conv3 = nn.Conv2d(width, wide, 1, bias=False)
        self.bn3 = nn.BatchNorm2d(wide)
        self.downsample = matching(narrow, wide, stride)

    def forward(self, x: Tensor) -> Tensor:
        inner = torch.relu(self.bn1(self.conv1(x)))
        inner = torch.relu(self.bn2(self.conv2(inner)))
        inner = self.bn3(self.conv3(inner))
        return torch.relu(inner + (x if self.downsample is None else self.downsample(x)))


def matching(narrow: int, wide: int, stride: int) -> nn.Sequential | None:
    """What brings a block's input to the shape of its output, where they differ."""
    if stride == 1 and narrow == wide:
        return None
    return nn.Sequential(nn.Conv2d(narrow, wide, 1, stride, bias=False), nn.BatchNorm2d(wide))


class ResNet(nn.Module):
    def __init__(
        self,
        block: type[PlainBlock] | type[Bottleneck],
        depths: Sequence[int],
        channels: int,
        classes: int,
        width: int = 64,
        halves: bool = True,
    ) -> None:
        super().__init__()
        self.halves = halves  # does the stem?
        self.conv1 = nn.Conv2d(channels, width, *((7, 2, 3) if halves else (3, 1, 1)), bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        narrow = width
        for number, depth in enumerate(depths):
            inner, stride = width * 2**number, 1 if number == 0 else 2
            blocks = [block(narrow if i == 0 else inner * block.widening, inner, stride if i == 0 else 1) for i in range(depth)]
            self.add_module(f"layer{number + 1}", nn.Sequential(*blocks))
            narrow = inner * block.widening
        self.stages = len(depths)
        self.features = narrow
        self.classifier = nn.Linear(narrow, classes)
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        x = torch.relu(self.bn1(self.conv1(x)))
        if self.halves:
            x = F.max_pool2d(x, 3, 2, 1)
        for number in range(self.stages):
            x = self.get_submodule(f"layer{number + 1}")(x)
        return head(self.classifier, x)


def resnet18(channels: int, classes: int) -> ResNet:
    return ResNet(PlainBlock, (2, 2, 2, 2), channels, classes)


def resnet18_cifar(channels: int, classes: int) -> ResNet:
    return ResNet(PlainBlock, (2, 2, 2, 2), channels, classes, halves=False)


def resnet50(channels: int, classes: int) -> ResNet:
    return ResNet(Bottleneck, (3, 4, 6, 3), channels, classes)
