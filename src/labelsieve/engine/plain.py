"""The plain engine: pictures live on the device as one byte tensor (vectors as floats), steps run as they are written.

Pictures that the device has no room for stay on the host, mapped from the cache, and are sent a chunk of steps at a time.

`NoisyData` and augmentation go in; views, evidence and predictions come out. It is the reference that any faster engine
must agree with.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from labelsieve.data.augment import VectorViews, Views
from labelsieve.data.noisy_data import NoisyData
from labelsieve.engine.device import held_by
from labelsieve.methods.learner import Learner
from labelsieve.methods.parts.evidence import Evidence
from labelsieve.methods.parts.losses import cross_entropies
from labelsieve.methods.stages import Step


@dataclass(frozen=True)
class Prediction:
    """One network's view of pictures, in eval mode and without augmentation."""

    logits: Tensor  # (N, K) float32
    features: Tensor  # (N, D) float32


class PlainEngine:
    def __init__(
        self,
        data: NoisyData,
        views: Views | VectorViews,
        device: torch.device | str = "cpu",
        eval_batch: int = 512,
        where: str = "auto",
    ) -> None:
        self.device = torch.device(device)
        self.on_device = held_by(self.device, data.images, where)
        self.images = data.images.to(self.device) if self.on_device else data.images
        self.labels = data.labels.to(self.device)
        self.labels_here = data.labels
        self.views = views
        self.eval_batch = eval_batch
        self._latest: tuple[Tensor, Tensor] | None = None

    def weak(self, rows: Tensor, generator: torch.Generator) -> Tensor:
        return self.views.weak(self.pictures(rows), generator)

    def strong(self, rows: Tensor, generator: torch.Generator) -> Tensor:
        return self.views.strong(self.pictures(rows), generator)

    def pictures(self, rows: Tensor) -> Tensor:
        """The training pictures at `rows` (M,), on the device.

        Where they lie on the host, each is sent once: a step's rows name a picture twice, and weak and strong views are
        made of the same ones. The host is ahead of the device by a chunk of steps, so fetching costs no time of its own.
        """
        if self.on_device:
            return self.images[self.place(rows)]
        if self._latest is None or self._latest[0] is not rows:
            once, places = rows.unique(return_inverse=True)
            self._latest = None  # its memory is free for the next
            self._latest = (rows, self.fetched(once)[self.place(places)])
        return self._latest[1]

    def fetched(self, rows: Tensor) -> Tensor:
        """Pictures from the host (M,), each once."""
        return self.place(self.images[rows])

    def place(self, tensor: Tensor) -> Tensor:
        return tensor.to(self.device, non_blocking=True)

    def given(self) -> Tensor:
        return self.labels

    def given_here(self) -> Tensor:
        return self.labels_here

    def prepare(self, learner: Learner, step: Step, *fixed: object) -> Step:
        return partial(step, *fixed)

    def gather(self, learner: Learner, rows: Tensor | None = None) -> Evidence:
        if rows is None:
            seen, labels = self.predict(learner, self.images), self.labels
        else:
            seen, labels = self._seen(learner, len(rows), lambda span: self._at(rows[span])), self.labels[self.place(rows)]
        return Evidence(labels, cross_entropies(seen.logits, labels), torch.softmax(seen.logits, 1), seen.features)

    def features(self, learner: Learner, views: Tensor) -> Tensor:
        return self.predict(learner, views).features

    def _at(self, rows: Tensor) -> Tensor:
        return self.images[self.place(rows)] if self.on_device else self.fetched(rows)

    def adopt(self, learner: Learner) -> None:
        """Make a learner run the way this engine runs; the plain way is how it is made."""

    def predict(self, learner: Learner, images: Tensor) -> Prediction:
        """What a network makes of pictures, or vectors, that lie anywhere."""
        return self._seen(learner, len(images), lambda span: images[span])

    @torch.no_grad()
    def _seen(self, learner: Learner, count: int, fetch: Callable[[slice], Tensor]) -> Prediction:
        """In batches of one size: a short last one is filled up, so that a compiled network sees one shape."""
        learner.network.eval()
        size = min(self.eval_batch, count)
        parts = []
        for first in range(0, count, size):
            some = fetch(slice(first, first + size))
            filled = torch.cat((some, fetch(slice(0, size - len(some))))) if len(some) < size else some
            logits, features = learner.look(self.views.plain(self.place(filled)))
            parts.append((logits[: len(some)], features[: len(some)]))
        return Prediction(torch.cat([logits for logits, _ in parts]), torch.cat([features for _, features in parts]))
