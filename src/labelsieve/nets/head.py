"""The end of every network: maps (B, D, H, W) go in, (logits (B, K), features v (B, D)) come out, in full precision.

Losses are compared sample by sample, so the last product must not be rounded to eight bits where the rest of the network is.
"""

import torch
from torch import Tensor, nn


def head(classifier: nn.Linear, maps: Tensor) -> tuple[Tensor, Tensor]:
    with torch.autocast(maps.device.type, enabled=False):
        v = maps.float().mean((2, 3))
        return classifier(v), v
