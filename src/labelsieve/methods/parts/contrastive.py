"""The paper's ablation "CPC w/o GMM" (appendix A.3): prototypes learnt with MoPro's objective, no mixture teaching them.

q(z_i = 0) = sigmoid(v'_i c_{y_i}^T / temperature), with v' and c of unit length, from `Evidence`. Prototypes are
momentum averages of the embeddings of their (pseudo-)class; only the projector is trained, by a prototypical contrastive
loss; pseudo-labels come from the mean of the classifier's and the prototypes' softmax.
"""

from collections.abc import Callable, Mapping

import torch
import torch.nn.functional as F
from torch import Tensor

from labelsieve.methods.parts.evidence import Evidence
from labelsieve.methods.parts.prototypes import Projector, sized_as
from labelsieve.methods.parts.sgd import Prepare, Sgd, part, plainly, restore, sorted_for
from labelsieve.methods.parts.streams import PROTOTYPES, WEIGHTS, seeded


def pseudo_labels(probs: Tensor, scores: Tensor, labels: Tensor, confident: float) -> tuple[Tensor, Tensor]:
    """MoPro's rule on soft = (p + s) / 2, as labels (N,) and a mask (N,) of the samples that have one.

    The best class where it is above `confident`; else the given label where its share is above 1/K; else none.
    """
    soft = (probs + scores) / 2
    best, predicted = soft.max(1)
    given = soft.gather(1, labels.unsqueeze(1)).squeeze(1)
    sure = best > confident
    return torch.where(sure, predicted, labels), sure | (given > 1 / probs.shape[1])


def contrastive_loss(scores: Tensor, labels: Tensor, kept: Tensor) -> Tensor:
    """The prototypical contrastive loss: cross-entropy of scores (N, K) over the prototypes, mean over the kept rows."""
    losses = F.cross_entropy(scores, labels, reduction="none")
    return (losses * kept).sum() / kept.sum().clamp_min(1)


class ContrastiveCleaner:
    """Unit prototypes by momentum, a linear projector by SGD. A teacher's `clean` mask is ignored: that is the ablation."""

    def __init__(
        self,
        dim: int = 128,
        temperature: float = 0.1,
        prototype_momentum: float = 0.99,
        confident: float = 0.8,
        batch: int = 128,
        lr: float = 0.02,
        momentum: float = 0.9,
        weight_decay: float = 5e-4,
        seed: int = 0,
    ) -> None:
        self.dim, self.temperature, self.prototype_momentum = dim, temperature, prototype_momentum
        self.confident, self.batch = confident, batch
        self.lr, self.momentum, self.weight_decay, self.seed = lr, momentum, weight_decay, seed
        self.learnt_ = 0
        self.prepare: Prepare = plainly  # an engine may put a faster way here, and here:
        self.inner: Callable[..., Tensor] = contrastive_loss
        self.projector_: Projector | None = None
        self.prototypes_: Tensor | None = None  # (K, d), unit length
        self.optimiser_: Sgd | None = None
        self.rate_ = torch.zeros(())  # the learning rate, where steps read it

    @property
    def cosine(self) -> float:
        """The scale of the cosine scores, as `PrototypeCleaner` names it."""
        return 1 / self.temperature

    def learn(self, seen: Evidence, clean: Tensor | None = None) -> None:
        if self.projector_ is None:
            self._start(seen.features.shape[1], seen.features.device)
        if self.prototypes_ is None:
            self.prototypes_ = self._class_means(seen)
        assert self.optimiser_ is not None
        self.rate_.fill_(self.lr)
        labels, kept = pseudo_labels(seen.probs, torch.softmax(self.classify(seen.features), 1), seen.labels, self.confident)
        order = torch.randperm(len(seen), generator=seeded(self.seed, PROTOTYPES, self.learnt_))
        whole_pass = self.prepare(self, "contrastive", self._step, self._tensors, ())
        whole_pass(sorted_for((seen.features.float(), labels, kept), order, self.batch), self.batch)
        self.learnt_ += 1

    def judge(self, seen: Evidence) -> Tensor:
        return torch.sigmoid(self.classify(seen.features).gather(1, seen.labels.unsqueeze(1)).squeeze(1))

    @torch.no_grad()
    def classify(self, features: Tensor) -> Tensor:
        """v' c^T / temperature for every class: (N, K)."""
        if self.projector_ is None or self.prototypes_ is None:
            raise RuntimeError("this ContrastiveCleaner has not learnt yet: call learn(seen) first")
        chunks = [self._embed(rows.float()) @ self.prototypes_.T for rows in features.split(8192)]
        return (torch.cat(chunks) if chunks else features.new_zeros(0, len(self.prototypes_))) / self.temperature

    def _step(self, features: Tensor, labels: Tensor, kept: Tensor, weight: Tensor) -> Tensor:
        assert self.prototypes_ is not None and self.optimiser_ is not None
        kept = kept * weight
        embeddings = self._embed(features)
        loss = self.inner(embeddings @ self.prototypes_.T / self.temperature, labels, kept)
        self.optimiser_.descend(loss, self.rate_)
        with torch.no_grad():
            members = F.one_hot(labels, len(self.prototypes_)).to(embeddings.dtype) * kept.unsqueeze(1)
            count = members.sum(0).unsqueeze(1)
            means = (members.T @ embeddings.detach()) / count.clamp_min(1)
            moved = self.prototype_momentum * self.prototypes_ + (1 - self.prototype_momentum) * means
            self.prototypes_.copy_(F.normalize(torch.where(count > 0, moved, self.prototypes_), dim=1))
        return loss.detach()

    def _tensors(self) -> list[Tensor]:
        assert self.prototypes_ is not None and self.optimiser_ is not None
        return [*self.optimiser_.tensors(), self.prototypes_]

    def _embed(self, features: Tensor) -> Tensor:
        assert self.projector_ is not None
        return F.normalize(self.projector_(features), dim=1)

    @torch.no_grad()
    def _class_means(self, seen: Evidence) -> Tensor:
        """The start: each class at the mean of the embeddings that were given its label, a class without any at random."""
        embeddings = torch.cat([self._embed(rows.float()) for rows in seen.features.split(8192)])
        members = F.one_hot(seen.labels, seen.classes).to(embeddings.dtype)
        random = torch.randn(seen.classes, self.dim, generator=seeded(self.seed, WEIGHTS, 1)).to(embeddings)
        means = torch.where(members.sum(0).unsqueeze(1) > 0, members.T @ embeddings, random)
        return F.normalize(means, dim=1)

    def _start(self, features: int, device: torch.device) -> None:
        self.projector_ = Projector(features, self.dim, 1, 0.0, seeded(self.seed, WEIGHTS)).to(device)
        self.optimiser_ = Sgd(self.projector_.parameters(), self.momentum, self.weight_decay)
        self.rate_ = torch.zeros((), device=device)

    def state_dict(self) -> dict[str, Tensor]:
        if self.projector_ is None or self.prototypes_ is None or self.optimiser_ is None:
            return {}
        state = {f"projector.{name}": value for name, value in self.projector_.state_dict().items()}
        state |= {"prototypes": self.prototypes_, "learnt": torch.tensor(self.learnt_)}
        return state | self.optimiser_.named_momenta()

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        if not state:
            return
        weight, prototypes = state["projector.layers.0.weight"], state["prototypes"]
        if not sized_as(self.state_dict(), state):
            self._start(weight.shape[1], weight.device)
            self.prototypes_ = torch.empty_like(prototypes)
        assert self.projector_ is not None and self.prototypes_ is not None and self.optimiser_ is not None
        self.projector_.load_state_dict(part(state, "projector"))
        restore({"prototypes": self.prototypes_} | self.optimiser_.named_momenta(), state)
        self.learnt_ = int(state["learnt"])
