"""The steps that train a network, each a function of tensors with static shapes that reads nothing back to the host.

So the same code runs plainly on a CPU and compiled and captured on a GPU (`engine/`). A step changes the learner it is
given (weights, momentum, BatchNorm statistics) and returns its loss terms as a tensor.
"""

import torch
import torch.nn.functional as F
from torch import Tensor

from labelsieve.methods.learner import Learner
from labelsieve.methods.parts import losses
from labelsieve.methods.parts.guessing import guesses
from labelsieve.methods.parts.mixmatch import guess, mix, refine
from labelsieve.methods.parts.momentum import descend
from labelsieve.methods.recipe import Recipe


def warm_up_step(learner: Learner, recipe: Recipe, pixels: Tensor, labels: Tensor) -> Tensor:
    """Plain cross-entropy on the given labels, with negative entropy where the recipe asks: (1,)."""
    logits, _ = learner.look(pixels)
    loss = F.cross_entropy(logits, labels)
    if recipe.entropy_penalty:
        loss = loss + losses.negative_entropy(logits)
    descend(learner.optimiser, loss)
    return loss.detach().reshape(1)


@torch.no_grad()
def targets(learner: Learner, peer: Learner, recipe: Recipe, weak: Tensor, labels: Tensor, w: Tensor) -> Tensor:
    """Refined and guessed targets (4B, K) for the views x1, x2, u1, u2 (4B, C, H, W).

    The trained network stays in train mode while it guesses (its running statistics move), the peer is in eval mode.
    """
    own = guesses(learner, weak, recipe.guess_passes)
    other = peer.look(weak[2 * len(labels) :])[0]
    return learner.fuse(aims)(own, other, labels, w, recipe.temperature)


def aims(own: Tensor, other: Tensor, labels: Tensor, w: Tensor, temperature: float) -> Tensor:
    """Targets (4B, K) from the trained network's logits (4B, K) and the peer's on the unlabelled half (2B, K)."""
    own, other = torch.softmax(own, 1), torch.softmax(other, 1)
    x1, x2, u1, u2 = own.chunk(4)
    given = F.one_hot(labels, own.shape[1]).to(own.dtype)
    refined = refine(given, (x1 + x2) / 2, w, temperature)
    guessed = guess((u1, u2, *other.chunk(2)), temperature)
    return torch.cat((refined, refined, guessed, guessed))


def mixed(strong: Tensor, wanted: Tensor, partner: Tensor, share: Tensor) -> tuple[Tensor, Tensor]:
    """The first M = len(partner) pictures and targets, each mixed with its partner: (M, C, H, W) floats, (M, K)."""
    first = len(partner)
    pixels = mix(strong[:first].float(), strong[partner].float(), share)
    return pixels, mix(wanted[:first], wanted[partner], share)


def vicinal_terms(logits: Tensor, wanted: Tensor, prior: Tensor, half: int) -> tuple[Tensor, Tensor, Tensor]:
    """Lx over the first `half` rows, Lu over the rest, and the penalty over all."""
    return (
        losses.labelled_loss(logits[:half], wanted[:half]),
        losses.unlabelled_loss(logits[half:], wanted[half:]),
        losses.prior_penalty(logits, prior),
    )


def mixed_step(
    learner: Learner,
    peer: Learner,
    recipe: Recipe,
    prior: Tensor,
    weak: Tensor,
    strong: Tensor,
    labels: Tensor,
    w: Tensor,
    partner: Tensor,
    share: Tensor,
    lambda_u: Tensor,
) -> Tensor:
    """One step of the vicinal risk (Eq. 1): guess on weak views, mix and train on strong ones. Terms: Lx, Lu, penalty.

    Views are ordered x1, x2, u1, u2, B pictures each; `labels` and `w` (B,) belong to the x; `partner` (4B,) permutes all.
    """
    half = 2 * len(labels)
    trained = 2 * half if recipe.train_unlabelled else half
    wanted = targets(learner, peer, recipe, weak, labels, w)
    pixels, wanted = learner.fuse(mixed)(strong, wanted, partner[:trained], share)
    logits, _ = learner.look(pixels)
    labelled, unlabelled, penalty = learner.fuse(vicinal_terms)(logits, wanted, prior, half)
    descend(learner.optimiser, labelled + lambda_u * unlabelled + recipe.prior_weight * penalty)
    return torch.stack((labelled, unlabelled, penalty)).detach()
