"""The two kinds of view that training needs: a picture's shape and a policy's name in, both makers out."""

from dataclasses import dataclass

from labelsieve.data.augment.policies import POLICIES
from labelsieve.data.augment.strong import Strong
from labelsieve.data.augment.weak import Shape, Weak
from labelsieve.errors import UsageError, suggest


@dataclass(frozen=True)
class Views:
    """Weak views for guessing labels, strong ones for training."""

    weak: Weak
    strong: Strong


def views_for(shape: Shape, mirror: bool, policy: str = "auto") -> Views:
    """Views for pictures of `shape` (C, H, W); shifts reach an eighth of the shorter side.

    Pictures under 16 px are not shifted in the weak views: they have no pixel to spare.

    "auto" takes AutoAugment's CIFAR-10 policy for things that may be mirrored, "upright" for the others.
    """
    if policy == "auto":
        policy = "autoaugment-cifar10" if mirror else "upright"
    if policy not in POLICIES:
        choices = ("auto", *POLICIES)
        raise UsageError(f'there is no policy "{policy}"{suggest(policy, choices)}; choose from {", ".join(choices)}')
    recipe = POLICIES[policy]
    side = min(shape[1:])
    weak = Weak(pad=round(side / 8) if side >= 16 else 0, mirror=mirror)
    return Views(weak, Strong(recipe.policy, weak, recipe.fill, recipe.resample))
