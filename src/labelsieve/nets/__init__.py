"""Networks: pictures (B, C, H, W) or vectors (B, D) go in, (logits (B, K), features v) come out. Plain dicts are the registry."""

from collections.abc import Callable

import torch
from torch import nn

from labelsieve.errors import UsageError, suggest
from labelsieve.nets.mlp import Mlp
from labelsieve.nets.preact import PreActResNet18
from labelsieve.nets.small import SmallNet

NETWORKS: dict[str, Callable[[int, int], nn.Module]] = {
    "small": lambda channels, classes: SmallNet(channels, classes),
    "small-wide": lambda channels, classes: SmallNet(channels, classes, width=48),
    "preact-resnet18": lambda channels, classes: PreActResNet18(channels, classes),
}
# For vectors; they are built from the number of dimensions where the others are from the number of channels.
VECTOR_NETWORKS: dict[str, Callable[[int, int], nn.Module]] = {
    "mlp": lambda dimensions, classes: Mlp(dimensions, classes),
}


def build(name: str, channels: int, classes: int, seed: int) -> nn.Module:
    """The named network with weights drawn from the seed alone; the caller's random state is left as it was."""
    known = NETWORKS | VECTOR_NETWORKS
    if name not in known:
        raise UsageError(f'network "{name}" is not known{suggest(name, known)}; there are: {", ".join(known)}')
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)  # torch.manual_seed would reseed every GPU, which is not forked here
        return known[name](channels, classes)
