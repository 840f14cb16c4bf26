"""Which labels count as clean: a threshold on chances, labels that are known to be right, and what a collapse looks like."""

from collections.abc import Sequence

import torch
from torch import Tensor

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
