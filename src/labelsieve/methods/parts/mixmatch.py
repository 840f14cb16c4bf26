"""MixMatch as DivideMix uses it: targets from guesses, sharpened, and pictures mixed in pairs. Pure functions.

Letters: w the chance that the given label is clean, T the temperature, l the mixing share, lambda_u the weight of the
unlabelled loss. B labelled and B unlabelled identities make 4B mixed pictures, two views each.
"""

from collections.abc import Sequence

import torch
from torch import Tensor


def sharpen(probs: Tensor, temperature: float) -> Tensor:
    """p^(1/T), renormalised over classes: (N, K). Through logarithms: a low T would power every share down to 0."""
    return torch.softmax(probs.clamp_min(1e-12).log() / temperature, 1)


def refine(given: Tensor, guessed: Tensor, w: Tensor, temperature: float) -> Tensor:
    """Labelled targets: w y + (1 - w) guess, sharpened. `given` one-hot (B, K), `guessed` (B, K), `w` (B,)."""
    w = w.unsqueeze(1)
    return sharpen(w * given + (1 - w) * guessed, temperature)


def guess(views: Sequence[Tensor], temperature: float) -> Tensor:
    """Unlabelled targets: the mean of both networks' softmax over the weak views, sharpened."""
    return sharpen(torch.stack(tuple(views)).mean(0), temperature)


def mix(first: Tensor, second: Tensor, share: Tensor) -> Tensor:
    """l a + (1 - l) b, with one l for the whole step."""
    return share * first + (1 - share) * second


def mixing_shares(steps: int, beta: float, generator: torch.Generator) -> Tensor:
    """l ~ Beta(a, a), l = max(l, 1 - l), one for each step: (steps,). Two Gamma draws make a Beta draw."""
    shape = torch.full((2, steps), float(beta), dtype=torch.float64)
    gammas = torch._standard_gamma(shape, generator=generator)
    share = gammas[0] / gammas.sum(0)
    return torch.maximum(share, 1 - share).to(torch.float32)


def ramp(epoch: float, start: float, length: float) -> float:
    """Linear from 0 at `start` to 1 at `start + length`; `epoch` moves with every step."""
    if length <= 0:
        return 1.0
    return min(max((epoch - start) / length, 0.0), 1.0)
