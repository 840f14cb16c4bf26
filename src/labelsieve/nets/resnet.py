"""PreAct-ResNet-18 and -34 for 32 px pictures, ResNet-18 and -50 for 64 px and more, ResNet-18 for 32 px: x -> (logits, v)."""

from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from labelsieve.errors import ToolError
from labelsieve.nets.small import head


class PreActBlock(nn.Module):
    """`identity`: a shortcut that changes no shape passes the raw input on, as He et al. (2016) proposed it."""

    def __init__(self, narrow: int, wide: int, stride: int, identity: bool = False) -> None:
        super().__init__()
        self.bn1 = nn.BatchNorm2d(narrow)
        self.conv1 = nn.Conv2d(narrow, wide, 3, stride, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(wide)
        self.conv2 = nn.Conv2d(wide, wide, 3, 1, 1, bias=False)
        changes = stride != 1 or narrow != wide
        self.shortcut = nn.Conv2d(narrow, wide, 1, stride, bias=False) if changes else None
        self.identity = identity

    def forward(self, x: Tensor) -> Tensor:
        active = torch.relu(self.bn1(x))
        passed = self.shortcut(active) if self.shortcut is not None else x if self.identity else active
        return self.conv2(torch.relu(self.bn2(self.conv1(active)))) + passed


class PreActResNet(nn.Module):
    """Weights of one wiring are none of the other, so they bear other names: `stages`, or `blocks` with `identity`."""

    def __init__(
        self, channels: int, classes: int, width: int = 64, identity: bool = False, depths: Sequence[int] = (2, 2, 2, 2)
    ) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(channels, width, 3, 1, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        blocks: list[nn.Module] = []
        narrow = width
        for stage, depth in enumerate(depths):
            wide = width * 2**stage
            blocks.append(PreActBlock(narrow, wide, 2 if stage else 1, identity))
            blocks += [PreActBlock(wide, wide, 1, identity) for _ in range(depth - 1)]
            narrow = wide
        self.body = "blocks" if identity else "stages"
        self.add_module(self.body, nn.Sequential(*blocks))
        self.features = narrow
        self.classifier = nn.Linear(narrow, classes)
        self.register_load_state_dict_pre_hook(_of_this_wiring)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        return head(self.classifier, getattr(self, self.body)(torch.relu(self.bn1(self.conv1(x)))))


def _of_this_wiring(network: nn.Module, state: dict[str, Any], prefix: str, *_: object) -> None:
    other, name = ("stages", "preact-resnet18") if network.body == "blocks" else ("blocks", "preact-resnet18-identity")
    if any(key.startswith(f"{prefix}{other}.") for key in state):
        raise ToolError(
            f"weights of network {name}, whose shortcuts pass other things on; if an early labelsieve trained this run with it, "
            f"write its name in place of the other's into config.yaml and model.json"
        )


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
