"""BatchNorm while a network guesses: how many passes over a step's weak views it takes, and how many it seems to take.

The published scripts guess view by view, four passes a step, each normalised by its own batch and each moving the running
statistics. `counting` makes one pass over several views move them as far.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from labelsieve.methods.net import Eye
from labelsieve.methods.parts.parted import can_part, in_parts, normalising, turned

PASSES = (1, 2, 4)  # over a step's weak views: all together, labelled apart from unlabelled, each view
VIEWS = 4


def guesses(net: Eye, weak: Tensor, passes: int) -> Tensor:
    """Logits (4B, K) of the views x1, x2, u1, u2 (4B, C, H, W) by a network in train mode, in so many passes.

    The unlabelled views are looked at first, as published; running statistics remember the latest pass best.
    """
    with counting(net.network, VIEWS // passes):
        if passes > 1 and net.joins_passes and can_part(net.network):
            with in_parts(net.network, passes):
                return net.look(weak)[0]
        seen = [net.look(some)[0] for some in turned(weak.chunk(passes))]
        return torch.cat(turned(seen))


@contextmanager
def counting(network: nn.Module, views: int) -> Iterator[None]:
    """Within it a pass in train mode moves running statistics as `views` passes over the same pictures would."""
    layers = [layer for layer in normalising(network) if layer.momentum is not None]
    layers = layers if views > 1 else []
    before = [layer.momentum for layer in layers]
    for layer, momentum in zip(layers, before):
        assert momentum is not None
        layer.momentum = 1 - (1 - momentum) ** views
    try:
        yield
    finally:
        for layer, momentum in zip(layers, before):
            layer.momentum = momentum
