"""A run small enough for tests: make-believe pictures, a narrow network, both learners, the plain engine."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from labelsieve.data.augment import views_for
from labelsieve.data.noisy_data import NoisyData
from labelsieve.engine.plain import PlainEngine
from labelsieve.methods.algorithm import Epoch, learn
from labelsieve.methods.learner import Judge, Learner
from labelsieve.methods.parts.cleaners import MixtureCleaner, PrototypeCleaner
from labelsieve.methods.recipe import Recipe
from labelsieve.nets.small import SmallNet

K = 3
MEAN, STD = (0.5, 0.5, 0.5), (0.25, 0.25, 0.25)


def pictures(n: int = 60, seed: int = 0) -> NoisyData:
    """Three kinds of picture (one channel is bright), a third of the labels wrong: uint8 (n, 3, 8, 8)."""
    g = torch.Generator().manual_seed(seed)
    true = torch.arange(n) % K
    images = torch.randint(0, 120, (n, 3, 8, 8), generator=g)
    images[torch.arange(n), true] += 110
    wrong = torch.rand(n, generator=g) < 0.33
    labels = torch.where(wrong, (true + 1) % K, true)
    return NoisyData(images.to(torch.uint8), labels, tuple(map(str, range(n))), ("red", "green", "blue"))


def small_recipe(**changes: Any) -> Recipe:
    settings = {
        "epochs": 6,
        "warmup": 2,
        "prototype_warmup": 2,
        "batch": 8,
        "warmup_batch": 16,
        "lr_drop_epoch": 4,
    }
    return Recipe(**settings | {"ramp_epochs": 4, "seed": 3} | changes)  # type: ignore[arg-type]


def network(seed: int) -> nn.Module:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return SmallNet(3, K, width=4)


def learner(number: int, recipe: Recipe, judge: Judge | None = None, memory: int = 1) -> Learner:
    return Learner(number, network(number + 10), recipe, MEAN, STD, MixtureCleaner(memory=memory), judge)


@dataclass
class Tiny:
    """All that `learn` needs."""

    recipe: Recipe
    learners: tuple[Learner, Learner]
    engine: PlainEngine
    prior: Tensor

    def epochs(self, start: int = 0) -> Iterator[Epoch]:
        return learn(self.learners, self.recipe, self.engine, self.prior, start)

    def state(self) -> dict[str, Tensor]:
        return {f"{one.number}.{k}": v.clone() for one in self.learners for k, v in one.state_dict().items()}


def tiny(prototypes: bool = True, memory: int = 1, data: NoisyData | None = None, **changes: Any) -> Tiny:
    recipe, data = small_recipe(**changes), pictures() if data is None else data
    judges = [PrototypeCleaner(dim=6, batch=16, seed=r) if prototypes else None for r in (0, 1)]
    pair = learner(0, recipe, judges[0], memory), learner(1, recipe, judges[1], memory)
    return Tiny(recipe, pair, PlainEngine(data, views_for(data.shape, True)), torch.full((K,), 1 / K))
