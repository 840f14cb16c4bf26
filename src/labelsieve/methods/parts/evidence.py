"""What one plain pass of one network over the training set leaves behind: the only thing a cleaner ever sees."""

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
