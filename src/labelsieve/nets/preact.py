"""PreAct-ResNet-18 and -34 for 32 px pictures, as the published label-noise benchmarks use them: x -> (logits, v), D = 512.

A 3x3 stem with BatchNorm and ReLU, four stages of two blocks, or of 3, 4, 6 and 3 (64-128-256-512, strides 1 2 2 2). A block
normalises and activates first, and what its shortcut passes on is the activated input: through a bare 1x1 convolution where
shapes change, as it is elsewhere. Nothing is normalised before the global pooling. With 3 channels and 10 classes the 18 has
11,171,274 parameters.
"""

from collections.abc import Sequence
from typing import Any

import torch
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
