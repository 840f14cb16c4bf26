"""Leaves out classes that an .npz names and no training row has."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from labelsieve.data.noisy_data import Held
from labelsieve.data.pictures.listing import TEST, TRAIN, VAL, trained_classes

SPLITS = {"val": VAL, "test": TEST}


@dataclass(frozen=True)
class Numbered:
    """Labels (N,), true ones or None, and sets to measure on, all as numbers of `classes`; and what should be said."""

    labels: Tensor
    truth: Tensor | None
    held: Mapping[str, Held]  # of "test" and "val"
    classes: tuple[str, ...]
    notes: tuple[str, ...] = ()


def without_empty(found: Numbered, path: Path) -> Numbered:
    """Numbered anew, less the classes without a training row and the rows to measure on that are of these.

    Labels that number no class, and classes that only true labels have, are left to who checks the rows.
    """
    count = len(found.classes)
    parts = {TRAIN: found.labels} | {split: found.held[name].labels for name, split in SPLITS.items() if name in found.held}
    if any(len(codes) and not (int(codes.min()) >= 0 and int(codes.max()) < count) for codes in parts.values()):
        return found
    present = torch.bincount(found.labels, minlength=count) > 0
    if present.all() or (found.truth is not None and not present[found.truth.clamp(0, count - 1)].all()):
        return found
    splits = np.repeat(np.array(list(parts), np.int8), [len(codes) for codes in parts.values()])
    joined, classes, notes = trained_classes(torch.cat(list(parts.values())).numpy(), splits, found.classes, path)
    anew = torch.cumsum(present, 0) - 1
    held = {name: _known(one, torch.from_numpy(joined[splits == SPLITS[name]])) for name, one in found.held.items()}
    truth = None if found.truth is None else anew[found.truth]
    return Numbered(anew[found.labels], truth, {name: one for name, one in held.items() if len(one.labels)}, classes, notes)


def _known(held: Held, codes: Tensor) -> Held:
    """The rows that have a class, with their new numbers; one too few or too many is told by who checks the rows."""
    if len(held.images) != len(codes):
        return Held(held.images, codes)
    return Held(held.images[codes >= 0], codes[codes >= 0])
