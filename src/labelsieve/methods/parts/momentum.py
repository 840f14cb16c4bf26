"""SGD with its whole state visible from the start: gradients and momentum exist before the first step.

So a step has static buffers (it can be captured), and the state can be saved and restored as plain tensors.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence

import torch
from torch import Tensor, nn
from torch.func import grad_and_value


def sgd(parameters: Iterable[nn.Parameter], lr: float, momentum: float, weight_decay: float) -> torch.optim.SGD:
    """SGD with zeroed gradients and momenta; a zero momentum gives the same first step as none at all."""
    weights = list(parameters)
    fused = all(weight.is_cuda for weight in weights) or None  # one kernel in place of four that each read all weights
    optimiser = torch.optim.SGD(weights, lr=lr, momentum=momentum, weight_decay=weight_decay, fused=fused)
    for parameter in optimised(optimiser):
        parameter.grad = torch.zeros_like(parameter)
        optimiser.state[parameter]["momentum_buffer"] = torch.zeros_like(parameter)
    return optimiser


def optimised(optimiser: torch.optim.Optimizer) -> list[nn.Parameter]:
    return [parameter for group in optimiser.param_groups for parameter in group["params"]]


def set_lr(optimiser: torch.optim.Optimizer, lr: float) -> None:
    for group in optimiser.param_groups:
        group["lr"] = lr


def descend(optimiser: torch.optim.Optimizer, loss: Tensor) -> None:
    """One step down the loss, in place throughout: no gradient tensor is ever freed or made anew."""
    optimiser.zero_grad(set_to_none=False)
    loss.backward()
    optimiser.step()


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
    weights: Sequence[Tensor], remembered: Sequence[Tensor], gradients: Sequence[Tensor], lr: float, momentum: float, decay: float
) -> None:
    """SGD's own rule, in place: what torch's optimiser does, as a function that can be compiled together with the gradient."""
    for weight, memory, gradient in zip(weights, remembered, gradients):
        memory.mul_(momentum).add_(gradient.add(weight, alpha=decay))
        weight.add_(memory, alpha=-lr)


def changed_by(optimiser: torch.optim.Optimizer) -> list[Tensor]:
    """Every tensor that a step of this optimiser changes: weights, gradients, momenta."""
    weights = optimised(optimiser)
    return [*weights, *(w.grad for w in weights if w.grad is not None), *momenta(optimiser).values()]


def momenta(optimiser: torch.optim.Optimizer) -> dict[str, Tensor]:
    return {f"momentum.{i}": optimiser.state[p]["momentum_buffer"] for i, p in enumerate(optimised(optimiser))}


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
