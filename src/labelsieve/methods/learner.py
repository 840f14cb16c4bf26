"""Everything that carries the paper's index (r): a network, its optimiser, its mixture, its prototypes. All state is here."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from labelsieve.methods.parts.batches import Prepare
from labelsieve.methods.parts.cleaners import Cleaner, MixtureCleaner
from labelsieve.methods.parts.momentum import changed_by, momenta, part, restore, set_lr, sgd
from labelsieve.methods.parts.parted import shared_by
from labelsieve.methods.recipe import Recipe

See = Callable[[nn.Module, Tensor, Tensor, Tensor], tuple[Tensor, Tensor]]
Fuse = Callable[[Callable[..., Any]], Callable[..., Any]]  # a function of tensors -> the same in a faster form


def as_it_is(function: Callable[..., Any]) -> Callable[..., Any]:
    return function


class Judge(Cleaner, Protocol):
    """A cleaner by prototypes, or in their place: its learning rate drops with the network's, and most can classify."""

    lr: float
    prepare: Prepare
    inner: Callable[..., Tensor]  # the function of tensors that most of a step is

    @property
    def cosine(self) -> float:
        """0 for plain products of embeddings and prototypes, else the scale of their cosine."""

    def classify(self, features: Tensor) -> Tensor | None:
        """Scores (N, K) of features (N, D); None from a cleaner that judges given labels only."""


def see(network: nn.Module, pixels: Tensor, mean: Tensor, std: Tensor) -> tuple[Tensor, Tensor]:
    """(logits, v) of pixels 0..255 or vectors; a function of the network, so that both share what is compiled of it."""
    seen = (pixels.float() - mean) / std
    if seen.dim() == 4:
        seen = seen.contiguous(memory_format=torch.channels_last)
    result: tuple[Tensor, Tensor] = network(seen)
    return result


def scale(values: Sequence[float], axes: int, device: torch.device | str) -> Tensor:
    """A mean or standard deviation as batches meet it: (1, C, 1, 1) of bytes for samples of 3 axes, (1, D) as it is for 1."""
    scaled = torch.tensor(values, device=device)
    return scaled.view(1, -1) if axes == 1 else scaled.view(1, -1, 1, 1) * 255


class Learner:
    """Network (r) with all it has learnt. `judge` is None where the mixture alone divides; `axes` is 1 for vectors."""

    def __init__(
        self,
        number: int,
        network: nn.Module,
        recipe: Recipe,
        mean: Sequence[float],
        std: Sequence[float],
        teacher: MixtureCleaner,
        judge: Judge | None = None,
        device: torch.device | str = "cpu",
        axes: int = 3,
    ) -> None:
        self.number = number
        self.network = network.to(device).to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        self.see: See = see  # an engine may put a faster form here
        self.fuse: Fuse = as_it_is  # likewise for functions of tensors alone
        self.joins_passes = False  # an engine that is faster so makes one pass of several that guess (`parted.in_parts`)
        if recipe.norm_devices > 1:
            shared_by(self.network, recipe.norm_devices)
        self.optimiser = sgd(self.network.parameters(), recipe.lr, recipe.momentum, recipe.weight_decay)
        self.teacher = teacher
        self.judge = judge
        self.has_mixed = False  # has it trained on a division yet? Not saved: the phases of past epochs say it
        self.mean, self.std = scale(mean, axes, device), scale(std, axes, device)

    def look(self, pixels: Tensor) -> tuple[Tensor, Tensor]:
        """Logits (B, K) and features (B, D) of pixels 0..255, bytes or mixtures of bytes, or of vectors.

        Normalisation is affine and mixing shares add up to 1, so pixels may be mixed before they are normalised.
        """
        return self.see(self.network, pixels, self.mean, self.std)

    def set_lr(self, lr: float) -> None:
        """Ruling 4: the prototypes' learning rate drops by the same factor as the network's."""
        before = self.optimiser.param_groups[0]["lr"]
        set_lr(self.optimiser, lr)
        if self.judge is not None and before != lr:
            self.judge.lr *= lr / before

    def tensors(self) -> list[Tensor]:
        """Every tensor that a step changes."""
        return [*changed_by(self.optimiser), *self.network.buffers()]

    def state_dict(self) -> dict[str, Tensor]:
        """All that training changes in it, as one flat table of tensors."""
        state = {f"network.{name}": value for name, value in self.network.state_dict().items()}
        state |= {f"optimiser.{name}": value for name, value in momenta(self.optimiser).items()}
        state |= {f"teacher.{name}": value for name, value in self.teacher.state_dict().items()}
        if self.judge is not None:
            state |= {f"judge.{name}": value for name, value in self.judge.state_dict().items()}
        return state

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        device = self.mean.device
        state = {name: value.to(device) for name, value in state.items()}
        self.network.load_state_dict(part(state, "network"))
        restore(momenta(self.optimiser), part(state, "optimiser"))
        self.teacher.load_state_dict(part(state, "teacher"))
        if self.judge is not None:
            self.judge.load_state_dict(part(state, "judge"))
