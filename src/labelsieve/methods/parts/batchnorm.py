"""BatchNorm that looks at a batch in parts, as several passes or several GPUs would; and networks that guess while they train.

`in_parts` makes one pass of several, for a device that is faster so. `shared_by` makes one GPU do as torch's DataParallel does
with several: it hands each a part of every batch, and the first one's statistics are remembered. The published scripts guess view
by view, four passes a step, each moving the running statistics; `counting` makes one pass over several views move them as far.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from labelsieve.methods.net import Eye


def normalising(network: nn.Module) -> list[_BatchNorm]:
    return [layer for layer in network.modules() if isinstance(layer, _BatchNorm)]


def turned(views: Sequence[Tensor]) -> list[Tensor]:
    """The second half before the first."""
    half = len(views) // 2
    return [*views[half:], *views[:half]]


def normalised_in_parts(layer: _BatchNorm, passes: int, devices: int, x: Tensor) -> Tensor:
    """What BatchNorm in train mode makes of a batch in `passes` equal parts, the second half of them first, each on `devices`."""
    parts = passes * devices
    seen = x.unflatten(0, (parts, -1)).to(torch.promote_types(x.dtype, torch.float32))  # (P, B, C, ...)
    around = [1, *range(3, seen.dim())]
    variance, mean = torch.var_mean(seen, around, correction=0, keepdim=True)
    weight, bias = (each.view(-1, *[1] * (x.dim() - 2)) for each in (layer.weight, layer.bias))
    result = (seen - mean) * (weight * torch.rsqrt(variance + layer.eps)) + bias
    count = seen.shape[1] * seen.shape[3:].numel()
    _remember(layer, mean.view(parts, -1)[::devices], variance.view(parts, -1)[::devices] * (count / (count - 1)))
    return result.flatten(0, 1).to(x.dtype)


@torch.no_grad()
def _remember(layer: _BatchNorm, mean: Tensor, variance: Tensor) -> None:
    """Running statistics, moved by the passes' (P, C) one after another, as `guesses` takes them."""
    assert layer.momentum is not None and layer.running_mean is not None and layer.running_var is not None
    for running, latest in ((layer.running_mean, mean), (layer.running_var, variance)):
        moved = running
        for part in turned(latest.unbind()):
            moved = moved * (1 - layer.momentum) + part * layer.momentum
        running.copy_(moved)
    if layer.num_batches_tracked is not None:
        layer.num_batches_tracked.add_(len(mean))


class Parted1d(nn.BatchNorm1d):
    passes: int = 1
    devices: int = 1

    def forward(self, x: Tensor) -> Tensor:
        return normalised_in_parts(self, self.passes, self.devices, x) if self.training else super().forward(x)


class Parted2d(nn.BatchNorm2d):
    passes: int = 1
    devices: int = 1

    def forward(self, x: Tensor) -> Tensor:
        return normalised_in_parts(self, self.passes, self.devices, x) if self.training else super().forward(x)


PARTED: dict[type, type] = {nn.BatchNorm1d: Parted1d, nn.BatchNorm2d: Parted2d, Parted1d: Parted1d, Parted2d: Parted2d}


def can_part(network: nn.Module) -> bool:
    """Are all its layers that normalise by batch torch's own, with scales and running means? Others know more than we do."""
    return all(
        type(layer) in PARTED and layer.affine and layer.track_running_stats and layer.momentum is not None
        for layer in normalising(network)
    )


def shared_by(network: nn.Module, devices: int) -> None:
    """From now on every pass in train mode is normalised as on so many devices. `can_part` says whether it can be."""
    for layer in normalising(network):
        layer.__class__ = PARTED[type(layer)]
        layer.devices = devices  # type: ignore[assignment]


@contextmanager
def in_parts(network: nn.Module, passes: int) -> Iterator[None]:
    """Within it one pass in train mode gives what `passes` would, those of the second half before those of the first."""
    layers = [(layer, type(layer)) for layer in normalising(network)]
    for layer, kind in layers:
        layer.__class__ = PARTED[kind]
        layer.passes = passes  # type: ignore[assignment]
    try:
        yield
    finally:
        for layer, kind in layers:
            layer.__class__ = kind
            del layer.passes


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
