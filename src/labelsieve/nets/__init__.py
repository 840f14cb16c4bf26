"""Networks: pictures (B, C, H, W) or vectors (B, D) -> (logits (B, K), features v). Plain dicts are the registry."""

from collections.abc import Callable, Sequence

import torch
from torch import nn

from labelsieve.errors import UsageError, suggest
from labelsieve.nets.own import REGISTERED, WithHead, adapted, copies_of, lent, own_network
from labelsieve.nets.resnet import PreActResNet, resnet18, resnet18_cifar, resnet50
from labelsieve.nets.small import Mlp, SmallNet
from labelsieve.nets.zoo import PREFIX, check_model, zoo_network

__all__ = ["NETWORKS", "WithHead", "adapted", "build", "check_name", "copies_of", "lent", "register"]

NETWORKS: dict[str, Callable[[int, int], nn.Module]] = {
    "small": lambda channels, classes: SmallNet(channels, classes),
    "small-wide": lambda channels, classes: SmallNet(channels, classes, width=48),
    "preact-resnet18": lambda channels, classes: PreActResNet(channels, classes),
    "preact-resnet18-identity": lambda channels, classes: PreActResNet(channels, classes, identity=True),
    "preact-resnet34": lambda channels, classes: PreActResNet(channels, classes, depths=(3, 4, 6, 3)),
    "resnet18": resnet18,
    "resnet18-cifar": resnet18_cifar,
    "resnet50": resnet50,
}
# For vectors; they are built from the number of dimensions where the others are from the number of channels.
VECTOR_NETWORKS: dict[str, Callable[[int, int], nn.Module]] = {
    "mlp": lambda dimensions, classes: Mlp(dimensions, classes),
}


def register(name: str, make: Callable[[int, int], nn.Module]) -> None:
    """Make a network of yours known by a name: `make(channels, classes)` gives a module of logits (B, K), or of (logits, v).

    For vectors, channels are dimensions. Of a module that gives logits alone, v is what its last linear layer reads (see
    `adapted`). Whoever uses a run of it (resume, predict) must have registered it too. Registered again, a name means the
    newer one, as a notebook's cell that runs again expects.
    """
    if name in NETWORKS | VECTOR_NETWORKS or name == "auto" or name.startswith(PREFIX):
        raise UsageError(f'a network "{name}" is known already; choose another name')
    REGISTERED[name] = make


def check_name(name: str) -> None:
    """A `UsageError` for a name that no network has; the zoo is asked for its own."""
    known = NETWORKS | VECTOR_NETWORKS | REGISTERED
    if name.startswith(PREFIX):
        check_model(name.removeprefix(PREFIX))
    elif name not in known:
        raise UsageError(
            f'network "{name}" is not known{suggest(name, known)}; there are: {", ".join(known)} and {PREFIX}NAME; '
            f"one of your own comes through labelsieve.nets.register, in Python"
        )


def build(name: str, channels: int, classes: int, seed: int, shape: Sequence[int] | None = None) -> nn.Module:
    """The named network with weights drawn from the seed alone; the caller's random state is left as it was.

    `shape` is that of a sample, for those of the zoo's networks that are made for one size and for networks of the user's.
    """
    check_name(name)
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)  # torch.manual_seed would reseed every GPU, which is not forked here
        if name.startswith(PREFIX):
            return zoo_network(name.removeprefix(PREFIX), channels, classes, None if shape is None else shape[-1])
        if name in REGISTERED:
            return own_network(name, channels, classes, shape)
        return (NETWORKS | VECTOR_NETWORKS)[name](channels, classes)
