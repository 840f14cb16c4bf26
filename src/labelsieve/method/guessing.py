"""BatchNorm while a network guesses: one pass over several views counts as a pass over each, so its statistics move as far.

The published scripts guess view by view, four passes a step, each of which moves the running statistics; fewer passes are faster,
and move them less. Without this, pictures mixed for training would weigh twice as much in what judges plain ones.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm

PASSES = (1, 2, 4)  # over a step's weak views: all together, labelled apart from unlabelled, each view


@contextmanager
def counting(network: nn.Module, views: int) -> Iterator[None]:
    """Within it a pass in train mode moves running statistics as `views` passes over the same pictures would."""
    layers = [layer for layer in network.modules() if isinstance(layer, _BatchNorm) and layer.momentum is not None]
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
