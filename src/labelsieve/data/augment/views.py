"""Chooses weak and strong views by a picture's shape and a policy's name."""

from dataclasses import dataclass

from torch import Tensor

from labelsieve.data.augment.policies import POLICIES
from labelsieve.data.augment.strong import Strong
from labelsieve.data.augment.weak import Shape, Weak
from labelsieve.errors import UsageError, suggest

SHIFTED_FROM = 16  # pixels a side
POLICY_NAMES = ("auto", "none", *POLICIES)


@dataclass(frozen=True)
class Views:
    """Weak views for guessing labels, strong ones for training."""

    weak: Weak
    strong: Strong

    def plain(self, images: Tensor) -> Tensor:
        """The pictures as they are evaluated, without a draw: whole, or their middle where views are crops."""
        return self.weak.plain(images)


def views_for(shape: Shape, mirror: bool, policy: str = "auto", crop: int | None = None) -> Views:
    """Views for pictures of `shape` (C, H, W); shifts reach an eighth of the shorter side.

    With `crop`, views are squares of that side, cut from the pictures without padding. Otherwise, pictures under 16 px are
    not shifted in the weak views: they have no pixel to spare.

    "auto" takes AutoAugment's CIFAR-10 policy for things that may be mirrored, "upright" for the others; so does "none", for
    a recipe that asks for no strong views.
    """
    if policy in ("auto", "none"):
        policy = "autoaugment-cifar10" if mirror else "upright"
    if policy not in POLICIES:
        raise UsageError(f'there is no policy "{policy}"{suggest(policy, POLICY_NAMES)}; choose from {", ".join(POLICY_NAMES)}')
    recipe = POLICIES[policy]
    side = min(shape[1:])
    pad = round(side / 8) if side >= SHIFTED_FROM and crop is None else 0
    weak = Weak(pad, mirror, crop)
    return Views(weak, Strong(recipe.policy, weak, recipe.fill, recipe.resample))
