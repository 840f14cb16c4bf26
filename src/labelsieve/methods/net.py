"""A network as methods train it: a body, named heads, one optimiser over all of them, optionally a twin that follows slowly.

Layers that draw while they train, such as dropout, take no generator: `layers_drawing_from` seeds torch's own for a while.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import deepcopy
from threading import RLock
from typing import Any

import torch
from torch import Tensor, nn

from labelsieve.methods.parts.sgd import Sgd, part, restore

# Whoever seeds torch's generators, or builds a network, which draws from them, holds this: two threads that train would have
# each other's draws.
torchs_own = RLock()


@contextmanager
def layers_drawing_from(generator: torch.Generator, device: torch.device) -> Iterator[None]:
    """Inside, layers on that device begin at this generator's seed; the caller's random state comes back afterwards."""
    on_gpu = device.type == "cuda"
    with torchs_own:
        before = torch.get_rng_state(), torch.cuda.get_rng_state(device) if on_gpu else None
        torch.default_generator.manual_seed(generator.initial_seed())
        if on_gpu:
            number = torch.cuda.current_device() if device.index is None else device.index
            torch.cuda.default_generators[number].manual_seed(generator.initial_seed())
    try:
        yield
    finally:
        with torchs_own:
            torch.set_rng_state(before[0])
            if before[1] is not None:
                torch.cuda.set_rng_state(before[1], device)


See = Callable[[nn.Module, Tensor, Tensor, Tensor], tuple[Tensor, Tensor]]
Fuse = Callable[[Callable[..., Any]], Callable[..., Any]]  # a function of tensors -> the same in a faster form


def as_it_is(function: Callable[..., Any]) -> Callable[..., Any]:
    return function


def see(network: nn.Module, pixels: Tensor, mean: Tensor, std: Tensor) -> tuple[Tensor, Tensor]:
    """(logits, v) of pixels 0..255 or vectors; a function of the network, so that all nets share what is compiled of it."""
    seen = (pixels.float() - mean) / std
    if seen.dim() == 4:
        seen = seen.contiguous(memory_format=torch.channels_last)
    result: tuple[Tensor, Tensor] = network(seen)
    return result


def scale(values: Sequence[float], axes: int, device: torch.device | str) -> Tensor:
    """A mean or standard deviation as batches meet it: (1, C, 1, 1) of bytes for samples of 3 axes, (1, D) as it is for 1."""
    scaled = torch.tensor(values, device=device)
    return scaled.view(1, -1) if axes == 1 else scaled.view(1, -1, 1, 1) * 255


class Eye:
    """A network that looks at samples: what a net and its twin have in common."""

    def __init__(self, number: int, network: nn.Module, mean: Tensor, std: Tensor) -> None:
        self.number = number
        self.network = network
        self.mean, self.std = mean, std
        self.see: See = see  # an engine may put a faster form here
        self.fuse: Fuse = as_it_is  # likewise for functions of tensors alone
        self.joins_passes = False  # an engine that is faster so makes one pass of several that guess (`parted.in_parts`)

    def look(self, pixels: Tensor) -> tuple[Tensor, Tensor]:
        """Logits (B, K) and features (B, D) of pixels 0..255, bytes or mixtures of bytes, or of vectors.

        Normalisation is affine and mixing shares add up to 1, so pixels may be mixed before they are normalised.
        """
        return self.see(self.network, pixels, self.mean, self.std)


class Twin(Eye):
    """The moving average of a net's weights, heads included. Nothing descends here; it starts as the net does."""

    def __init__(self, number: int, network: nn.Module, heads: nn.ModuleDict, mean: Tensor, std: Tensor) -> None:
        super().__init__(number, network, mean, std)
        self.heads = deepcopy(heads)

    @torch.no_grad()
    def follow(self, net: "Net", keep: Tensor) -> None:
        """weights <- keep * own + (1 - keep) * the net's; `keep` is a tensor (), so it may change every step. Statistics of
        BatchNorm are the twin's own, from the batches it sees in train mode."""
        mine: list[Tensor] = [*self.network.parameters(), *self.heads.parameters()]
        its: list[Tensor] = [*net.network.parameters(), *net.heads.parameters()]
        way = list(torch._foreach_sub(its, mine))  # on a GPU one kernel, not dozens
        torch._foreach_mul_(way, 1 - keep)
        torch._foreach_add_(mine, way)


class Net(Eye):
    """Network (r) of a method. `heads` are modules on the features v, trained with the body."""

    def __init__(
        self,
        number: int,
        network: nn.Module,
        mean: Tensor,
        std: Tensor,
        *,
        momentum: float = 0.9,
        weight_decay: float = 5e-4,
        nesterov: bool = False,
        heads: Mapping[str, nn.Module] | None = None,
        twin: nn.Module | None = None,
    ) -> None:
        super().__init__(number, _placed(network, mean.device), mean, std)
        self.heads = nn.ModuleDict(dict(heads or {})).to(mean.device)
        self.optimiser = Sgd((*self.network.parameters(), *self.heads.parameters()), momentum, weight_decay, nesterov)
        self.twin = None if twin is None else Twin(number, _placed(twin, mean.device), self.heads, mean, std)
        if self.twin is not None:
            self.twin.network.load_state_dict(self.network.state_dict())
            self.twin.network.requires_grad_(False)
            self.twin.heads.requires_grad_(False)

    @property
    def modules(self) -> list[nn.Module]:
        """Body and heads."""
        return [self.network, self.heads]

    def eyes(self) -> list[Eye]:
        """The net, and its twin if it has one."""
        return [self] if self.twin is None else [self, self.twin]

    def train(self, on: bool = True) -> None:
        for module in self.modules:
            module.train(on)

    def descend(self, loss: Tensor, lr: Tensor) -> None:
        """One step of SGD down the loss, over body and heads."""
        self.optimiser.descend(loss, lr)

    def follow(self, keep: Tensor) -> None:
        """The twin moves towards the net: it keeps so much of itself."""
        assert self.twin is not None
        self.twin.follow(self, keep)

    def tensors(self) -> list[Tensor]:
        """Every tensor that a step changes."""
        both = [] if self.twin is None else [self.twin.network, self.twin.heads]
        twin = [tensor for module in both for tensor in (*module.parameters(), *module.buffers())]
        return [*self.optimiser.tensors(), *self.network.buffers(), *self.heads.buffers(), *twin]

    def state_dict(self) -> dict[str, Tensor]:
        """All that training changes in it, as one flat table of tensors."""
        state = {f"network.{name}": value for name, value in self.network.state_dict().items()}
        state |= {f"heads.{name}": value for name, value in self.heads.state_dict().items()}
        state |= {f"optimiser.{name}": value for name, value in self.optimiser.named_momenta().items()}
        if self.twin is not None:
            state |= {f"twin.{name}": value for name, value in self.twin.network.state_dict().items()}
            state |= {f"twin_heads.{name}": value for name, value in self.twin.heads.state_dict().items()}
        return state

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        state = {name: value.to(self.mean.device) for name, value in state.items()}
        self.network.load_state_dict(part(state, "network"))
        self.heads.load_state_dict(part(state, "heads"))
        restore(self.optimiser.named_momenta(), part(state, "optimiser"))
        if self.twin is not None:
            self.twin.network.load_state_dict(part(state, "twin"))
            self.twin.heads.load_state_dict(part(state, "twin_heads"))


def _placed(network: nn.Module, device: torch.device) -> nn.Module:
    placed: nn.Module = network.to(device).to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    return placed
