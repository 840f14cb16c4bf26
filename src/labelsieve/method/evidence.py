"""What one plain pass of one network over the training set leaves behind: the only thing a cleaner ever sees."""

from dataclasses import dataclass, fields

from torch import Tensor


@dataclass(frozen=True)
class Evidence:
    """Row i belongs to sample i: given label, loss, softmax and feature. No pictures, no true labels, no gradients.

    Tensors are cut from their graph here, so nothing that a cleaner learns can reach the backbone (section 4.1).
    """

    labels: Tensor  # (N,) int64
    losses: Tensor  # (N,)
    probs: Tensor  # (N, K)
    features: Tensor  # (N, D)

    def __post_init__(self) -> None:
        rows = {len(self.labels), len(self.losses), len(self.probs), len(self.features)}
        if len(rows) != 1:
            raise ValueError(
                f"evidence columns differ in length: {len(self.labels)} labels, {len(self.losses)} losses, "
                f"{len(self.probs)} probs, {len(self.features)} features"
            )
        for column in fields(self):
            object.__setattr__(self, column.name, getattr(self, column.name).detach())

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def classes(self) -> int:
        return self.probs.shape[1]

    @property
    def predicted(self) -> Tensor:
        return self.probs.argmax(1)
