"""Registers networks that users wrote, by name, and adapts them to x -> (logits, v) for the data's shape."""

import copy
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from threading import Lock

import torch
from torch import nn

from labelsieve.errors import UsageError
from labelsieve.nets.adapter import adapted

Make = Callable[[int, int], nn.Module]
REGISTERED: dict[str, Make] = {}  # they may take pictures or vectors
_taking = Lock()


@contextmanager
def lent(network: nn.Module | Make) -> Iterator[str]:
    """A name for the network while the caller is inside; two callers have two names."""
    kind = getattr(network, "__name__", type(network).__name__)
    with _taking:
        names = (f"given:{kind}" if number == 1 else f"given:{kind}-{number}" for number in range(1, len(REGISTERED) + 2))
        name = next(name for name in names if name not in REGISTERED)
        REGISTERED[name] = copies_of(network) if isinstance(network, nn.Module) else network
    try:
        yield name
    finally:
        del REGISTERED[name]


def copies_of(module: nn.Module) -> Make:
    """A builder that gives copies of the module, each with weights of its own.

    Every layer that has `reset_parameters`, as torch's own do, draws its weights anew; others keep what they hold.
    """

    def make(channels: int, classes: int) -> nn.Module:
        made = copy.deepcopy(module)
        for layer in made.modules():
            reset = getattr(layer, "reset_parameters", None) or getattr(layer, "_reset_parameters", None)
            if callable(reset):
                reset()
        return made.train()

    return make


def own_network(name: str, channels: int, classes: int, shape: Sequence[int] | None) -> nn.Module:
    """The registered network, adapted to samples of `shape` where it is known, or a `UsageError` that says what does not fit."""
    try:
        made = REGISTERED[name](channels, classes)
    except TypeError as error:
        said = " ".join(str(error).split())[:300]
        raise UsageError(
            f'network "{name}": its builder is called with channels and classes, as in build(3, 10), and says: {said}'
        ) from None
    if not isinstance(made, nn.Module):
        raise UsageError(f'network "{name}": its builder gave {type(made).__name__}; it must give a torch.nn.Module')
    if shape is None:
        return made
    try:
        network = adapted(made, shape)
        logits = _looked(network, shape)
    except (RuntimeError, ValueError, TypeError, IndexError) as error:
        said = " ".join(str(error).split())[:300]
        remedy = "use reshape or flatten in place of view" if "view" in said else "make it for samples of this shape"
        raise UsageError(f'network "{name}" cannot read samples of shape {tuple(shape)} ({said}); {remedy}') from None
    if logits.shape[1] != classes:
        raise UsageError(
            f'network "{name}" gives {logits.shape[1]} logits, and there are {classes} classes; let its last layer give {classes}'
        )
    return network


@torch.no_grad()
def _looked(network: nn.Module, shape: Sequence[int]) -> torch.Tensor:
    """Logits of two blank samples that lie in memory as they will in training."""
    x, seen = torch.zeros(2, *shape), copy.deepcopy(network).cpu().eval()
    if x.ndim == 4:
        x = x.contiguous(memory_format=torch.channels_last)
        seen = seen.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    logits: torch.Tensor = seen(x)[0]
    return logits
