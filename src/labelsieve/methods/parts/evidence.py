"""What a network saw of each sample, which is all that cleaners see; and the partition that their chances make of labels."""

from collections.abc import Sequence
from dataclasses import dataclass, fields

import torch
from torch import Tensor

AXES = {"labels": 1, "losses": 1, "probs": 2, "features": 2}


@dataclass(frozen=True, eq=False)
class Evidence:
    """Row i belongs to sample i: given label, loss, softmax and feature. No pictures, no true labels, no gradients.

    Tensors are cut from their graph here, so nothing that a cleaner learns can reach the backbone (section 4.1).
    """

    labels: Tensor  # (N,) int64
    losses: Tensor  # (N,)
    probs: Tensor  # (N, K)
    features: Tensor  # (N, D)

    def __post_init__(self) -> None:
        for column in fields(self):
            object.__setattr__(self, column.name, _column(column.name, getattr(self, column.name)))
        rows = {len(self.labels), len(self.losses), len(self.probs), len(self.features)}
        if len(rows) != 1:
            raise ValueError(
                f"evidence columns differ in length: {len(self.labels)} labels, {len(self.losses)} losses, "
                f"{len(self.probs)} probs, {len(self.features)} features"
            )
        # Elsewhere a look at the values would hold up the device.
        if (
            self.labels.device.type == "cpu"
            and len(self.labels)
            and not 0 <= self.labels.amin() <= self.labels.amax() < self.classes
        ):
            low, high = int(self.labels.amin()), int(self.labels.amax())
            raise ValueError(
                f"evidence labels run from {low} to {high}; probs have {self.classes} columns, so 0 to {self.classes - 1}"
            )

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def classes(self) -> int:
        return self.probs.shape[1]

    @property
    def predicted(self) -> Tensor:
        return self.probs.argmax(1)


def _column(name: str, values: object) -> Tensor:
    """Without gradient, labels as int64; a `TypeError` or `ValueError` that names the column otherwise."""
    if not isinstance(values, Tensor):
        raise TypeError(
            f"evidence {name} are a {type(values).__name__}; give a torch tensor, as torch.as_tensor makes of an array"
        )
    if values.ndim != AXES[name]:
        raise ValueError(
            f"evidence {name} have the shape {tuple(values.shape)}; they must be {'(N,)' if AXES[name] == 1 else '(N, columns)'}"
        )
    values = values.detach()
    if name != "labels":
        return values
    if values.is_floating_point() or values.dtype == torch.bool:
        raise TypeError(f"evidence labels are {values.dtype}; they must be the classes' whole numbers")
    return values.long()


MOSTLY_CLEAN = 0.9  # what is taken as clean in any case, from which on all of it may well be


def at(pinned: Tensor | None, rows: Tensor | None) -> Tensor | None:
    """The mask (N,) at some rows (M,), on the host."""
    return pinned if pinned is None or rows is None else pinned[rows.to(pinned.device)]


def pin(chances: Tensor, pinned: Tensor | None) -> Tensor:
    """The chances (N,) with 1 where the label is known to be right, so that w = 1 there and the label stands as it is."""
    return chances if pinned is None else torch.where(pinned, torch.ones_like(chances), chances)


def taken(chances: Tensor, threshold: float, pinned: Tensor | None, least: float = 0.0) -> Tensor:
    """Which labels (N,) count as clean: those strictly above the threshold, and the pinned ones even where it is 1.

    Two components are found in the losses of clean labels too. So the likeliest are taken until they are `least` of all.
    """
    above = chances > threshold
    count = round(least * len(chances))
    if count:
        above = above | (chances >= chances.sort(descending=True).values[count - 1])
    return above if pinned is None else above | pinned


def weighed(chances: Tensor, clean: Tensor, threshold: float, least: float) -> Tensor:
    """w (N,): the chances; for labels taken in spite of them, for the sake of the share `least`, that share.

    Otherwise these would be there with their guesses and not with their labels.
    """
    return torch.where(clean & (chances <= threshold), chances.clamp_min(least), chances) if least else chances


def collapse(
    clean: Tensor,
    predicted: Tensor,
    classes: int,
    given: Tensor | None = None,
    least_clean: float = 0.0,
    names: Sequence[str] | None = None,
) -> str | None:
    """In words, when a partition has collapsed: almost nothing or everything clean, or one class swallows the rest.

    A class counts as swallowing when over half of all predictions are its, with more than two classes to choose from and
    over three times what its share would be; where it is that common among the `given` labels already, once and a half that.
    It is called by its number, or as `names` (K,) have it.
    That all count as clean is no collapse where the noise found is so small that `least_clean` of them are taken as such anyway.
    """
    share = float(clean.double().mean())
    if share < 0.01:
        return f"almost nothing counts as clean ({100 * share:.1f} % of the labels)"
    if share > 0.995 and least_clean < MOSTLY_CLEAN:
        return f"almost everything counts as clean ({100 * share:.1f} % of the labels)"
    counts = torch.bincount(predicted.cpu(), minlength=classes).double() / max(len(predicted), 1)
    largest = float(counts.max())
    common = 0.0 if given is None else float((given == counts.argmax().to(given.device)).double().mean())
    if classes > 2 and largest > 0.5 and largest > 3 / classes and largest > min(1.5 * common, 0.99):
        name = int(counts.argmax()) if names is None else names[int(counts.argmax())]
        return f"class {name} swallows the rest ({100 * largest:.0f} % of all predictions)"
    return None
