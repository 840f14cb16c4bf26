"""The end of every network: maps (B, D, H, W) or vectors (B, D) -> (logits (B, K), features v (B, D)).

In full precision: losses are compared sample by sample, so the last product must not be rounded to eight bits where the rest
of the network is.
"""

import torch
from torch import Tensor, nn


def head(classifier: nn.Linear, maps: Tensor) -> tuple[Tensor, Tensor]:
    with torch.autocast(maps.device.type, enabled=False):
        return classified(classifier, maps.float().mean((2, 3)))


def classified(classifier: nn.Linear, v: Tensor) -> tuple[Tensor, Tensor]:
    with torch.autocast(v.device.type, enabled=False):
        v = v.float()
        return classifier(v), v
