"""A head for vectors: x (B, D) -> (logits (B, K), v (B, H)), v the hidden layer. For frozen features of any other network."""

import torch
from torch import Tensor, nn

from labelsieve.nets.head import classified


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
