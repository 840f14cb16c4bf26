"""The plain engine: pictures live on the device as one byte tensor (vectors as floats), steps run as they are written.

`NoisyData` and augmentation go in; views, evidence and predictions come out. It is the reference that any faster engine
must agree with.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from labelsieve.data.augment import VectorViews, Views
from labelsieve.data.noisy_data import NoisyData
from labelsieve.method.equations import cross_entropies
from labelsieve.method.evidence import Evidence
from labelsieve.method.learner import Learner
from labelsieve.method.stages import Step


@dataclass(frozen=True)
class Prediction:
    """One network's view of pictures, in eval mode and without augmentation."""

    logits: Tensor  # (N, K) float32
    features: Tensor  # (N, D) float32


class PlainEngine:
    def __init__(
        self, data: NoisyData, views: Views | VectorViews, device: torch.device | str = "cpu", eval_batch: int = 512
    ) -> None:
        self.device = torch.device(device)
        self.images = data.images.to(self.device)
        self.labels = data.labels.to(self.device)
        self.views = views
        self.eval_batch = eval_batch

    def weak(self, rows: Tensor, generator: torch.Generator) -> Tensor:
        return self.views.weak(self.images[self.place(rows)], generator)

    def strong(self, rows: Tensor, generator: torch.Generator) -> Tensor:
        return self.views.strong(self.images[self.place(rows)], generator)

    def place(self, tensor: Tensor) -> Tensor:
        return tensor.to(self.device, non_blocking=True)

    def given(self) -> Tensor:
        return self.labels

    def prepare(self, learner: Learner, step: Step, *fixed: object) -> Step:
        return partial(step, *fixed)

    def together(self, jobs: Sequence[Callable[[], Tensor]]) -> list[Tensor]:
        return [job() for job in jobs]

    def gather(self, learner: Learner) -> Evidence:
        seen = self.predict(learner, self.images)
        losses = cross_entropies(seen.logits, self.labels)
        return Evidence(self.labels, losses, torch.softmax(seen.logits, 1), seen.features)

    def adopt(self, learner: Learner) -> None:
        """Make a learner run the way this engine runs; the plain way is how it is made."""

    @torch.no_grad()
    def predict(self, learner: Learner, images: Tensor) -> Prediction:
        """In batches of one size: a short last one is filled up, so that a compiled network sees one shape."""
        learner.network.eval()
        size = min(self.eval_batch, len(images))
        parts = []
        for some in images.split(size):
            filled = torch.cat((some, images[: size - len(some)])) if len(some) < size else some
            logits, features = learner.look(self.place(filled))
            parts.append((logits[: len(some)], features[: len(some)]))
        return Prediction(torch.cat([logits for logits, _ in parts]), torch.cat([features for _, features in parts]))
