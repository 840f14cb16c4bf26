"""The plain engine: pictures live on the device as one byte tensor (vectors as floats), steps run as they are written.

Pictures that the device has no room for stay on the host, mapped from the cache, and are sent a chunk of steps at a time.

It makes views, evidence and predictions of a `NoisyData`, and is the reference that any faster engine must agree with.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from labelsieve.data.augment.strong import Strong, Views
from labelsieve.data.augment.vectors import Shaken, VectorViews
from labelsieve.data.augment.weak import Weak, shape_of
from labelsieve.data.noisy_data import NoisyData
from labelsieve.engine.device import held_by
from labelsieve.engine.dist import ALONE, Ranks
from labelsieve.methods.contract import Method, Phase
from labelsieve.methods.epochs import Named, Prepared
from labelsieve.methods.net import Eye
from labelsieve.methods.parts.evidence import Evidence
from labelsieve.methods.parts.losses import cross_entropies

LOOK = 4096  # samples whose varied views are looked at in one go; part of a run's identity, like the stream names


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
        self.ranks = ALONE
        self.on_device = held_by(self.device, data.images, where)
        self.images = data.images.to(self.device) if self.on_device else data.images
        self.labels = data.labels.to(self.device)
        self.views = views
        self.eval_batch = eval_batch
        self._latest: tuple[Tensor, Tensor] | None = None
        self._mine: tuple[Tensor, Tensor] | None = None

    def weak(self, rows: Tensor, generator: torch.Generator) -> Tensor:
        return self._varied(self.views.weak, rows, generator)

    def strong(self, rows: Tensor, generator: torch.Generator) -> Tensor:
        return self._varied(self.views.strong, rows, generator)

    def _varied(self, maker: Weak | Strong | Shaken, rows: Tensor, generator: torch.Generator) -> Tensor:
        """Of pictures, each of several ranks makes a part of the views; what varies all of them is drawn everywhere."""
        if not self.ranks.splits or isinstance(maker, Shaken):
            return maker(self.pictures(rows), generator)
        some = self.ranks.part(len(rows))
        if self._mine is None or self._mine[0] is not rows:
            self._mine = (rows, rows[some])
        pictures = self.pictures(self._mine[1])
        plan: Any = maker.draw(len(rows), shape_of(pictures), generator).rows(some)
        return self.ranks.gathered(maker.apply(pictures, plan), len(rows))

    def view(self, rows: Tensor, kind: str, generator: torch.Generator) -> Tensor:
        """Views of the training samples `rows` (M,): plain, weak or strong."""
        if kind == "plain":
            return self.views.plain(self.pictures(rows))
        return self.weak(rows, generator) if kind == "weak" else self.strong(rows, generator)

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

    def prepare(self, phase: Phase) -> Prepared:
        """The phase's step as it is written."""
        return Named(phase)

    def evidence(
        self, net: Eye, rows: Tensor | None = None, view: str = "plain", draw: torch.Generator | None = None
    ) -> Evidence:
        """One pass in eval mode over all samples, or those at `rows` (M,): as they are, or in views varied by `draw`."""
        labels = self.labels if rows is None else self.labels[self.place(rows)]
        if view != "plain":
            assert draw is not None, f"a {view} view needs a generator to be varied by"
            every = torch.arange(len(self.labels)) if rows is None else rows
            parts = [self.predict(net, self.view(some, view, draw)) for some in every.split(LOOK)]
            seen = Prediction(torch.cat([part.logits for part in parts]), torch.cat([part.features for part in parts]))
        elif rows is None:
            seen = self.predict(net, self.images)
        else:
            seen = self._seen(net, len(rows), lambda span: self._at(rows[span]))
        return Evidence(labels, cross_entropies(seen.logits, labels), torch.softmax(seen.logits, 1), seen.features)

    def _at(self, rows: Tensor) -> Tensor:
        return self.images[self.place(rows)] if self.on_device else self.fetched(rows)

    def adopt(self, method: Method) -> None:
        """Make a method run the way this engine runs; the plain way is how it is made."""

    def join(self, ranks: Ranks, method: Method) -> None:
        """From now on run what was adopted together with other processes."""
        self.ranks = ranks
        ranks.adopt(method)

    def predict(self, net: Eye, images: Tensor) -> Prediction:
        """What a network makes of pictures, or vectors, that lie anywhere."""
        return self._seen(net, len(images), lambda span: images[span])

    def _seen(self, net: Eye, count: int, fetch: Callable[[slice], Tensor]) -> Prediction:
        """Several ranks look at a part each, unless there are fewer samples than ranks."""
        ranks = self.ranks
        if not ranks.splits or count < ranks.count:
            return self._looked(net, slice(0, count), fetch)
        found = self._looked(net, ranks.part(count), fetch)
        return Prediction(ranks.gathered(found.logits, count), ranks.gathered(found.features, count))

    @torch.no_grad()
    def _looked(self, net: Eye, span: slice, fetch: Callable[[slice], Tensor]) -> Prediction:
        """In batches of one size: a short last one is filled up, so that a compiled network sees one shape."""
        net.network.eval()
        size = min(self.eval_batch, span.stop - span.start)
        parts = []
        with self.ranks.alone():
            for first in range(span.start, span.stop, size):
                some = fetch(slice(first, min(first + size, span.stop)))
                filled = torch.cat((some, fetch(slice(span.start, span.start + size - len(some))))) if len(some) < size else some
                logits, features = net.look(self.views.plain(self.place(filled)))
                parts.append((logits[: len(some)], features[: len(some)]))
        return Prediction(torch.cat([logits for logits, _ in parts]), torch.cat([features for _, features in parts]))
