"""SGD with momentum whose state exists before the first step, and whose learning rate is a tensor; and stage 1's batches.

So a step has static buffers and can be captured, a schedule that changes the rate every step records nothing anew, and the
state is saved and restored as plain tensors. All batches have one size.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Protocol

import torch
from torch import Tensor, nn
from torch.func import grad_and_value


class Sgd:
    """SGD with momentum over `parameters`. On CUDA it is torch's fused kernel, elsewhere the same rule in plain operations."""

    def __init__(self, parameters: Iterable[nn.Parameter], momentum: float, weight_decay: float, nesterov: bool = False) -> None:
        self.weights = list(parameters)
        self.momentum, self.weight_decay, self.nesterov = momentum, weight_decay, nesterov
        self.momenta = [torch.zeros_like(weight) for weight in self.weights]
        for weight in self.weights:
            weight.grad = torch.zeros_like(weight)
        self.gathers: Callable[[], None] | None = None  # where several processes train, they add up their gradients here
        self.fused = self._fused() if self.weights and all(weight.is_cuda for weight in self.weights) else None

    def _fused(self) -> torch.optim.SGD:
        """One kernel in place of four that each read all weights. It reads the rate from a tensor on the device."""
        rate = torch.zeros((), device=self.weights[0].device)
        known = {"momentum": self.momentum, "weight_decay": self.weight_decay, "nesterov": self.nesterov}
        optimiser = torch.optim.SGD(self.weights, lr=rate, fused=True, **known)  # type: ignore[arg-type]
        for weight, momentum in zip(self.weights, self.momenta):
            optimiser.state[weight]["momentum_buffer"] = momentum
        return optimiser

    def descend(self, loss: Tensor, lr: Tensor) -> None:
        """One step down the loss, in place throughout: no gradient tensor is ever freed or made anew."""
        for weight in self.weights:
            assert weight.grad is not None
            weight.grad.zero_()
        loss.backward()
        if self.gathers is not None:
            self.gathers()
        if self.fused is not None:
            self.fused.param_groups[0]["lr"].copy_(lr)
            self.fused.step()
            return
        gradients = [weight.grad for weight in self.weights if weight.grad is not None]
        update(self.weights, self.momenta, gradients, lr, self.momentum, self.weight_decay, self.nesterov)

    def tensors(self) -> list[Tensor]:
        """Every tensor that a step changes."""
        gradients = [weight.grad for weight in self.weights if weight.grad is not None]
        return [*self.weights, *gradients, *self.momenta]

    def named_momenta(self) -> dict[str, Tensor]:
        return {f"momentum.{i}": momentum for i, momentum in enumerate(self.momenta)}


def slope(risk: Callable[[Sequence[Tensor]], Tensor], weights: Sequence[Tensor]) -> tuple[Sequence[Tensor], Tensor]:
    """The risk's gradients at the weights, and the risk. By `torch.func` where a compiler looks, which knows no other way;
    otherwise by autograd, whose way there is a quarter shorter for steps as small as stage 1's, with the same numbers."""
    here = tuple(weight.detach() for weight in weights)
    if torch.compiler.is_compiling():
        gradients, value = grad_and_value(risk)(here)
        return gradients, value
    with torch.enable_grad():
        leaves = [weight.requires_grad_() for weight in here]
        value = risk(leaves)
    return torch.autograd.grad(value, leaves), value.detach()


@torch.no_grad()
def cut(gradients: Sequence[Tensor], steepest: float) -> list[Tensor]:
    """Gradients that are together longer than `steepest`, cut to that length; shorter ones stay as they are, bit for bit."""
    length = torch.linalg.vector_norm(torch.stack([torch.linalg.vector_norm(each) for each in gradients]))
    share = (steepest / (length + 1e-6)).clamp_max(1.0)
    return [each * share for each in gradients]


@torch.no_grad()
def update(
    weights: Sequence[Tensor],
    momenta: Sequence[Tensor],
    gradients: Sequence[Tensor],
    lr: Tensor,
    momentum: float,
    decay: float,
    nesterov: bool = False,
) -> None:
    """SGD's own rule, in place: what torch's optimiser does, as a function that can be compiled together with the gradient.

    The rate is a tensor (), read where the kernel runs, so that a recorded step goes by the rate at the time it is replayed.
    """
    for weight, memory, gradient in zip(weights, momenta, gradients):
        gradient = gradient.add(weight, alpha=decay)
        memory.mul_(momentum).add_(gradient)
        weight.addcmul_(gradient.add(memory, alpha=momentum) if nesterov else memory, lr, value=-1)


@torch.no_grad()
def restore(tensors: Mapping[str, Tensor], state: Mapping[str, Tensor]) -> None:
    """What `state` has for them, copied in: a captured step knows a tensor by its place in memory. Momenta that are not there
    (a slim checkpoint has none) start at zero."""
    for name, tensor in tensors.items():
        tensor.copy_(state[name]) if name in state else tensor.zero_()


def part(state: Mapping[str, Tensor], prefix: str) -> dict[str, Tensor]:
    """The entries under `prefix.`, without it: how one flat table of tensors holds several parts' states."""
    head = f"{prefix}."
    return {name.removeprefix(head): value for name, value in state.items() if name.startswith(head)}


BatchStep = Callable[..., Tensor]
Pass = Callable[[Sequence[Tensor], int], None]  # columns in the order of their batches, and a batch's size


class Prepare(Protocol):
    """Gives a pass of steps in the fastest form a device has; `same` is what is fixed in it, `state` the tensors it changes."""

    def __call__(
        self, owner: object, name: str, step: BatchStep, state: Callable[[], Sequence[Tensor]], same: tuple[object, ...]
    ) -> Pass: ...


def plainly(owner: object, name: str, step: BatchStep, state: Callable[[], Sequence[Tensor]], same: tuple[object, ...]) -> Pass:
    """The step as it is, once a batch."""
    return lambda columns, size: one_by_one(step, columns, size)


def one_by_one(step: BatchStep, columns: Sequence[Tensor], size: int) -> None:
    """A step on each batch. None on no rows: torch would split these into one batch of none, which weights would decay by."""
    if len(columns[0]):
        for inputs in zip(*(column.split(size) for column in columns)):
            step(*inputs)


def sorted_for(columns: Sequence[Tensor], order: Tensor, size: int) -> tuple[Tensor, ...]:
    """The columns in `order` (N,), filled up to whole batches of `size` with rows of weight 0; the weight comes last.

    Sorted once, so that a batch is a view, not a gather.
    """
    device = columns[0].device
    missing = -len(order) % size
    filled = torch.cat((order, order[:1].expand(missing))).to(device)
    weight = (torch.arange(len(filled), device=device) < len(order)).float()
    return (*(column[filled] for column in columns), weight)
