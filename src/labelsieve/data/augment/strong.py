"""Strong views: weak views that go through a policy; and the choice of both kinds by a picture's shape and a policy's name.

Every picture has its own sub-policy. Pictures are sorted by operation so that those with the same one are worked on together,
and go back to their places at the end. The sorting is done on the plan, on the host.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from torch import Tensor

from labelsieve.data.augment.edits import GEOMETRIC, RESAMPLE, TONAL, fixed_maps, warp
from labelsieve.data.augment.policies import FACTORS, OPERATIONS, POLICIES, SIGNED, Edit, Policy
from labelsieve.data.augment.weak import Shape, Weak, WeakPlan, Which, check_fit, shape_of, spans, upload
from labelsieve.errors import UsageError, suggest

STEPS = 2
SKIP = len(OPERATIONS)  # the code of a step that does nothing; it sorts behind all others
BLOCK = 8  # pictures sorted at once, in batches of one operation: large groups, yet bounded memory
NAMES = np.array(OPERATIONS)


@dataclass(frozen=True)
class StrongPlan:
    """What happens to each of M pictures after its weak view.

    `operations`: int64 (M, 2), places in OPERATIONS, or SKIP. `amounts`: float64 (M, 2), with sign: shear,
    pixels, degrees, bits, threshold or factor. All on the host.
    """

    weak: WeakPlan
    operations: Tensor
    amounts: Tensor

    def __len__(self) -> int:
        return len(self.weak)

    def rows(self, which: Which) -> "StrongPlan":
        """The plan for some of the pictures."""
        return StrongPlan(self.weak.rows(which), self.operations[which], self.amounts[which])


@dataclass(frozen=True)
class Strong:
    """The weak view, then one of the policy's sub-policies, drawn evenly.

    `fill` is the grey of what comes from outside the picture; `resample` is "nearest" or "bilinear".
    """

    policy: Policy
    weak: Weak
    fill: int = 128
    resample: str = "nearest"

    def __post_init__(self) -> None:
        if not self.policy:
            raise UsageError("Strong(policy=()): a policy needs at least one sub-policy")
        for name in (step.operation for sub_policy in self.policy for step in sub_policy):
            if name not in OPERATIONS:
                known = ", ".join(OPERATIONS)
                raise UsageError(f'there is no operation "{name}"{suggest(name, OPERATIONS)}; known are {known}')
        if self.resample not in RESAMPLE:
            raise UsageError(f'resample "{self.resample}" is neither "nearest" nor "bilinear"')
        if not 0 <= self.fill <= 255:
            raise UsageError(f"fill {self.fill} is not a grey level from 0 to 255")

    def draw(self, count: int, shape: Shape, generator: torch.Generator) -> StrongPlan:
        """A plan for `count` pictures of `shape` (C, H, W); `generator` is a host one."""
        weak = self.weak.draw(count, shape, generator)
        chosen = torch.randint(len(self.policy), (count,), generator=generator)
        chance = torch.rand((count, STEPS), generator=generator)
        negative = torch.rand((count, STEPS), generator=generator) < 0.5
        codes = torch.tensor([[OPERATIONS.index(step.operation) for step in steps] for steps in self.policy])
        probabilities = torch.tensor([[step.probability for step in steps] for steps in self.policy])
        operations = torch.where(chance < probabilities[chosen], codes[chosen], SKIP)
        seen = weak.view_shape
        amounts = torch.where(negative, self._amounts(-1, seen)[chosen], self._amounts(1, seen)[chosen])
        return StrongPlan(weak, operations, amounts)

    def _amounts(self, sign: int, shape: Shape) -> Tensor:
        """What each step of each sub-policy hands to its operation if the sign falls so; float64 (S, 2)."""
        amounts = [[_signed(step, sign, shape) for step in steps] for steps in self.policy]
        return torch.tensor(amounts, dtype=torch.float64)

    def apply(self, images: Tensor, plan: StrongPlan) -> Tensor:
        """The planned views, uint8 (M, C, H, W), contiguous, on the images' device."""
        check_fit(images, len(plan), plan.weak.shape)
        views = torch.empty((len(images), *plan.weak.view_shape), dtype=torch.uint8, device=images.device)
        for block in spans(0, len(images), images, batches=BLOCK):
            views[block] = self._block(images[block], plan.rows(block))
        return views

    def _block(self, images: Tensor, plan: StrongPlan) -> Tensor:
        """The views of one block. `order` says which picture of the block each row of `views` holds."""
        views = self.weak.apply(images, plan.weak)
        order = np.arange(len(plan))
        for operations, amounts in zip(plan.operations.numpy().T, plan.amounts.numpy().T, strict=True):
            move = np.argsort(operations[order].astype(np.uint8), kind="stable")
            order = order[move]
            views = views.index_select(0, upload(torch.from_numpy(move), views.device))
            self._take_step(views, operations[order], amounts[order])
        return views.index_select(0, upload(torch.from_numpy(np.argsort(order)), views.device))

    def _take_step(self, views: Tensor, operations: np.ndarray, amounts: np.ndarray) -> None:
        """One operation for each view, in place; they are sorted, so an operation has one stretch of rows."""
        ends = np.searchsorted(operations, np.arange(SKIP), side="right").tolist()
        moved = ends[len(GEOMETRIC) - 1]
        maps = fixed_maps(NAMES[operations[:moved]], amounts[:moved], *views.shape[2:])
        warped = partial(warp, fill=self.fill, resample=self.resample)
        _edit(views, slice(0, moved), upload(torch.from_numpy(maps), views.device), warped)
        given = upload(torch.from_numpy(amounts.astype(np.float32)), views.device)
        for code in range(len(GEOMETRIC), SKIP):
            _edit(views, slice(ends[code - 1], ends[code]), given, TONAL[OPERATIONS[code]])

    def __call__(self, images: Tensor, generator: torch.Generator) -> Tensor:
        return self.apply(images, self.draw(len(images), shape_of(images), generator))


def _edit(views: Tensor, rows: slice, given: Tensor, change: Callable[[Tensor, Tensor], Tensor]) -> None:
    """Replaces the rows by change(rows, what is given for them), a span at a time."""
    for span in spans(rows.start, rows.stop, views):
        views[span] = change(views[span], given[span])


def _signed(step: Edit, sign: int, shape: Shape) -> float:
    """The amount as the operation takes it, for a picture of `shape` (C, H, W)."""
    amount = sign * step.amount if step.operation in SIGNED else step.amount
    if step.operation in FACTORS:
        return 1 + amount
    return amount * {"TranslateX": shape[2], "TranslateY": shape[1]}.get(step.operation, 1)


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
