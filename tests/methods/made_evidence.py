"""What a network leaves under labels of which some are wrong, made by hand; and cleaners that were taught with it."""

from collections.abc import Callable

import torch
from torch import Tensor

from labelsieve.methods.parts.cleaners import Cleaner, Evidence

N, K, D = 600, 4, 12


def evidence(seed: int = 0, wrong: float = 0.4, n: int = N) -> tuple[Evidence, Tensor]:
    """What a good network leaves under labels of which 40 % are wrong; and which are right (N,)."""
    g = torch.Generator().manual_seed(seed)
    true = torch.randint(K, (n,), generator=g)
    centres = 3 * torch.nn.functional.one_hot(torch.arange(K), D).float()
    features = centres[true] + 0.5 * torch.randn(n, D, generator=g)
    flipped = torch.rand(n, generator=g) < wrong
    labels = torch.where(flipped, (true + torch.randint(1, K, (n,), generator=g)) % K, true)
    probs = torch.softmax(features[:, :K] + 0.5 * torch.randn(n, K, generator=g), 1)
    losses = -probs.gather(1, labels.unsqueeze(1)).squeeze(1).log()
    return Evidence(labels, losses, probs, features), ~flipped


def copied(cleaner: Cleaner) -> dict[str, Tensor]:
    return {name: value.clone() for name, value in cleaner.state_dict().items()}


def same(first: dict[str, Tensor], second: dict[str, Tensor]) -> bool:
    return first.keys() == second.keys() and all(torch.equal(first[name], second[name]) for name in first)


def taught(make: Callable[[], Cleaner], calls: int = 3) -> tuple[Cleaner, Evidence]:
    cleaner, (seen, right) = make(), evidence()
    for _ in range(calls):
        cleaner.learn(seen, right)
    return cleaner, seen
