"""Several processes, one result: what each does in a step, and how the parts are put together.

Every rank draws the same rows and computes the loss of the whole batch. What costs time is split: views, the networks' passes and
with them the gradients, and looks at all samples. So steps and methods are the same whether one process runs them or many.
"""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from labelsieve.errors import ToolError, UsageError
from labelsieve.methods.contract import Method, Phase
from labelsieve.methods.net import Net, See
from labelsieve.methods.parts.batchnorm import normalising

WHOLE, APART = "whole", "rank"  # BatchNorm over the whole batch, or by each rank's part of it
gather_into: Any = getattr(dist, "all_gather_single", None) or dist.all_gather_into_tensor  # its newer and its older name
DIGEST = 16  # bytes by which ranks compare words


class Ranks:
    """This process among `count`, which meet through torch.distributed. One alone splits and gathers nothing."""

    def __init__(self, rank: int = 0, count: int = 1, batchnorm: str = WHOLE, meets: bool = False) -> None:
        """With `meets` one process does what several would, through torch.distributed: to see what that costs."""
        self.rank, self.count, self.batchnorm = rank, count, batchnorm
        self.meets = meets or count > 1
        self.splits = self.meets  # False for a while where a rank looks at something by itself

    @property
    def draws(self) -> tuple[int, ...]:
        """By what layers that draw, such as dropout, draw otherwise here than on other ranks."""
        return (self.rank,) if self.meets else ()

    def part(self, rows: int) -> slice:
        """This rank's of so many rows: parts differ by one row at most."""
        return slice(_begin(rows, self.rank, self.count), _begin(rows, self.rank + 1, self.count))

    def gathered(self, mine: Tensor, rows: int) -> Tensor:
        """All ranks' parts of so many rows, in order. Gradients come back to the part that they belong to."""
        whole: Tensor = gathered(mine, rows, self.rank, self.count)
        return whole

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Inside, this rank looks at whole batches by itself."""
        before, self.splits = self.splits, False
        try:
            yield
        finally:
            self.splits = before

    def most(self, number: int) -> int:
        """The largest of all ranks' numbers."""
        if not self.meets:
            return number
        found = torch.tensor([number])
        dist.all_reduce(found, dist.ReduceOp.MAX)
        return int(found)

    def agreed(self, phase: Phase) -> Phase:
        """The phase as rank 0 has it: GPUs round otherwise from run to run, and a row on the other side of a threshold would
        be another batch."""
        if not self.meets:
            return phase
        self._same(f"{phase.name} {[(name, tuple(view.rows.shape)) for name, view in phase.views.items()]}")
        once: dict[int, Tensor] = {}

        def told(tensor: Tensor) -> Tensor:
            if id(tensor) not in once:
                whole = tensor.contiguous()
                dist.broadcast(whole.view(torch.uint8) if whole.dtype == torch.bool else whole, 0)
                once[id(tensor)] = whole
            return once[id(tensor)]

        views = {name: replace(view, rows=told(view.rows)) for name, view in phase.views.items()}
        return replace(phase, views=views, tensors={name: told(tensor) for name, tensor in phase.tensors.items()})

    def _same(self, words: str) -> None:
        mine = torch.frombuffer(bytearray(hashlib.sha256(words.encode()).digest()[:DIGEST]), dtype=torch.uint8)
        if not bool((self.gathered(mine.unsqueeze(0), self.count) == mine).all()):
            raise ToolError(
                f"the ranks plan different epochs (rank {self.rank}: {words.partition(' ')[0]}), so they would train different "
                f"networks; resume the run, and if it happens again train with one process"
            )

    @torch.no_grad()
    def settle(self, phase: Phase) -> None:
        """After a phase: where each rank has normalised by its own part, what layers remember is the mean over ranks."""
        if not self.meets or self.batchnorm == WHOLE:
            return
        for eye in (eye for net in phase.nets for eye in net.eyes()):
            for layer in normalising(eye.network):
                for memory in (layer.running_mean, layer.running_var):
                    if memory is not None:
                        memory.copy_(summed(memory) / self.count)

    def adopt(self, method: Method) -> None:
        """Share a method's nets: each pass, and each step down."""
        if not self.meets:
            return
        for net in method.nets:
            for eye in net.eyes():
                eye.see = Split(self, eye.see)
                if self.batchnorm == WHOLE:
                    normalise_together(eye.network, self)
            net.optimiser.gathers = Gradients(self, net)


ALONE = Ranks()


class Split:
    """A pass of a network over this rank's part of a batch; what comes out is of the whole batch."""

    def __init__(self, ranks: Ranks, see: See) -> None:
        self.ranks, self.see = ranks, see

    def __call__(self, network: nn.Module, pixels: Tensor, mean: Tensor, std: Tensor) -> tuple[Tensor, Tensor]:
        rows, ranks = len(pixels), self.ranks
        if not ranks.splits:
            return self.see(network, pixels, mean, std)
        logits, features = self.see(network, pixels[ranks.part(rows)], mean, std)
        return ranks.gathered(logits, rows), ranks.gathered(features, rows)


class Gradients:
    """A net's gradients, in one piece of memory, so that ranks add them up in one go.

    Each rank's loss is that of the whole batch, and reaches the body through the rank's own part only: these are added. Heads see
    all features on every rank, so theirs are the same already, and their mean keeps them so.
    """

    def __init__(self, ranks: Ranks, net: Net) -> None:
        weights = net.optimiser.weights
        if len({weight.dtype for weight in weights}) > 1:
            raise UsageError("a network whose weights have several number formats cannot be trained by several processes")
        self.flat = torch.zeros(sum(weight.numel() for weight in weights), dtype=weights[0].dtype, device=weights[0].device)
        self.count = ranks.count
        self.body = sum(weight.numel() for weight in net.network.parameters())
        first = 0
        for weight in weights:
            weight.grad = self.flat.as_strided(weight.shape, weight.stride(), first)
            first += weight.numel()

    @torch.no_grad()
    def __call__(self) -> None:
        self.flat[self.body :].div_(self.count)
        dist.all_reduce(self.flat)


def _begin(rows: int, rank: int, count: int) -> int:
    return rank * rows // count


@torch.library.custom_op("labelsieve::summed", mutates_args=())
def summed(values: Tensor) -> Tensor:
    """The sum of all ranks' values. Its gradient is the sum of all ranks' gradients."""
    total = values.clone(memory_format=torch.contiguous_format)
    dist.all_reduce(total)
    return total


@summed.register_fake
def _(values: Tensor) -> Tensor:
    return torch.empty_like(values, memory_format=torch.contiguous_format)


summed.register_autograd(lambda ctx, slope: summed(slope))


@torch.library.custom_op("labelsieve::gathered", mutates_args=())
def gathered(mine: Tensor, rows: int, rank: int, count: int) -> Tensor:
    """All ranks' parts of so many rows. Every rank goes on with the same whole, so each part's gradient is its own rows'."""
    sizes = [_begin(rows, r + 1, count) - _begin(rows, r, count) for r in range(count)]
    most = max(sizes)
    sent = mine.contiguous()
    if len(mine) < most:
        sent = torch.cat((sent, sent.new_zeros(most - len(mine), *mine.shape[1:])))
    whole = sent.new_empty(count * most, *mine.shape[1:])
    gather_into(whole, sent)
    if min(sizes) == most:
        return whole
    return torch.cat([part[:size] for part, size in zip(whole.split(most), sizes)])


@gathered.register_fake
def _(mine: Tensor, rows: int, rank: int, count: int) -> Tensor:
    return mine.new_empty(rows, *mine.shape[1:])


def _remember(ctx: Any, inputs: Any, output: Any) -> None:  # by these names torch hands them over
    _, ctx.rows, ctx.rank, ctx.count = inputs


def _own(ctx: Any, slope: Tensor) -> tuple[Tensor, None, None, None]:
    first, last = (_begin(ctx.rows, rank, ctx.count) for rank in (ctx.rank, ctx.rank + 1))
    return slope[first:last].clone(), None, None, None


gathered.register_autograd(_own, setup_context=_remember)


def normalise_together(network: nn.Module, ranks: Ranks) -> None:
    """From now on the network's BatchNorm goes by the whole batch, wherever its rows are."""
    for layer in normalising(network):
        kind = type(layer)
        if kind not in TOGETHER or not layer.affine or layer.momentum is None or not layer.track_running_stats:
            raise UsageError(
                f"the network has a BatchNorm of its own ({kind.__name__}) that cannot see the whole batch from several "
                f"processes; use --batchnorm rank"
            )
        layer.__class__ = TOGETHER[kind]
        layer.rank, layer.ranks = ranks.rank, ranks.count  # type: ignore[assignment]


def normalised_together(layer: _BatchNorm, x: Tensor) -> Tensor:
    """What BatchNorm in train mode makes of this rank's part of a batch, by the mean and variance of the whole one."""
    seen = x.to(torch.promote_types(x.dtype, torch.float32))
    around = [0, *range(2, x.dim())]
    shape = (1, -1, *[1] * (x.dim() - 2))
    size = torch.full_like(layer.weight, x.numel() // x.shape[1], dtype=seen.dtype)
    variance, mean = torch.var_mean(seen, around, correction=0)
    here: Tensor = torch.arange(int(layer.ranks), device=x.device).eq(int(layer.rank))  # type: ignore[arg-type]
    sizes, means, variances = summed(here.view(-1, 1, 1) * torch.stack((size, mean, variance))).unbind(1)  # (R, C) each
    total = sizes.sum(0)
    mean = (sizes * means).sum(0) / total
    variance = (sizes * (variances + (means - mean).square())).sum(0) / total
    scale = layer.weight * torch.rsqrt(variance + layer.eps)
    with torch.no_grad():
        assert layer.running_mean is not None and layer.running_var is not None and layer.momentum is not None
        layer.running_mean.lerp_(mean, layer.momentum)
        layer.running_var.lerp_(variance * (total / (total - 1)), layer.momentum)
        if layer.num_batches_tracked is not None:
            layer.num_batches_tracked.add_(1)
    return ((seen - mean.view(shape)) * scale.view(shape) + layer.bias.view(shape)).to(x.dtype)


class Together1d(nn.BatchNorm1d):
    def forward(self, x: Tensor) -> Tensor:
        return normalised_together(self, x) if self.training else super().forward(x)


class Together2d(nn.BatchNorm2d):
    def forward(self, x: Tensor) -> Tensor:
        return normalised_together(self, x) if self.training else super().forward(x)


TOGETHER: dict[type, type] = {nn.BatchNorm1d: Together1d, nn.BatchNorm2d: Together2d}
TOGETHER |= {kind: kind for kind in TOGETHER.values()}
