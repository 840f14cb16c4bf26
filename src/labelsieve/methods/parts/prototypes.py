"""CPC itself: class prototypes that learn from a teacher's partition and then judge each label (section 4.2).

q(z_i = 0) = sigmoid(v'_i c_{y_i}^T), from `Evidence` and a clean mask. The projector lives here, not in the
network: features arrive without gradient, so none can reach the backbone.
"""

import itertools
from collections.abc import Callable, Mapping, Sequence

import torch
from torch import Tensor, nn

from labelsieve.methods.parts import losses
from labelsieve.methods.parts.evidence import Evidence
from labelsieve.methods.parts.mixture import MixtureCleaner
from labelsieve.methods.parts.sgd import Prepare, cut, part, plainly, restore, slope, sorted_for, update
from labelsieve.methods.parts.streams import PROTOTYPES, WEIGHTS, seeded

# Neither v' nor c is normalised (ruling 2), so that long features, a large rate or many classes can make steps that grow without
# end. Gradients of runs that go well stay below 7 (LOG.md); longer ones are cut.
STEEPEST = 10.0


class Projector(nn.Module):
    """v -> v': `depth` linear layers, the hidden ones as wide as v. With `cosine` > 0, of length sqrt(cosine)."""

    def __init__(self, features: int, dim: int, depth: int, cosine: float, generator: torch.Generator) -> None:
        super().__init__()
        self.cosine = cosine
        widths = [features] * depth + [dim]
        layers: list[nn.Module] = []
        for i, (wide, narrow) in enumerate(itertools.pairwise(widths)):
            linear = nn.Linear(wide, narrow, device="meta").to_empty(device="cpu")
            with torch.no_grad():
                linear.weight.uniform_(-(wide**-0.5), wide**-0.5, generator=generator)
                linear.bias.zero_()
            layers += [linear] if i == depth - 1 else [linear, nn.ReLU()]
        self.layers = nn.Sequential(*layers)

    def forward(self, features: Tensor) -> Tensor:
        return projected(list(self.parameters()), features, self.cosine)


def projected(weights: Sequence[Tensor], features: Tensor, cosine: float) -> Tensor:
    """v' of v (N, D) by a projector's weights: a matrix and an offset a layer."""
    for i in range(0, len(weights), 2):
        features = nn.functional.linear(torch.relu(features) if i else features, weights[i], weights[i + 1])
    return scaled(features, cosine)


def scaled(vectors: Tensor, cosine: float) -> Tensor:
    """The vectors as they are, or (ruling 2's alternative) with length sqrt(cosine), so that products are cosine-scaled."""
    return nn.functional.normalize(vectors, dim=-1) * cosine**0.5 if cosine else vectors


def sized_as(here: Mapping[str, Tensor], state: Mapping[str, Tensor]) -> bool:
    """Has a cleaner of the state `here` the same features, classes and dimensions as one of the other state?"""
    return all(name in here and here[name].shape == state[name].shape for name in ("prototypes", "projector.layers.0.weight"))


def at_odds(scores: Tensor, prior: float) -> Tensor:
    """A chance at even odds, as it is where a share `prior` of all labels is right (Bayes' rule)."""
    return scores if prior == 0.5 else scores * prior / (scores * prior + (1 - scores) * (1 - prior))


def descent(
    weights: Sequence[Tensor],
    remembered: Sequence[Tensor],
    batch: tuple[Tensor, ...],
    rates: tuple[Tensor, float, float],
    alpha: float,
    cosine: float,
) -> Tensor:
    """One SGD step on L_C (Eq. 5), in place: the projector's weights, then the prototypes, and their momenta. Returns the loss.

    `rates` are learning rate, momentum and weight decay. One function from features to new weights, without a look back at
    autograd's graph, so that a compiler makes a few kernels of it where forward, backward, cut and update had been two dozen.
    """
    features, labels, clean, predicted, confident, weight = batch

    def risk(current: Sequence[Tensor]) -> Tensor:
        *layers, prototypes = current
        embeddings, prototypes = projected(layers, features, cosine), scaled(prototypes, cosine)
        return losses.prototype_loss(embeddings, prototypes, labels, clean, predicted, confident, alpha, weight)

    gradients, loss = slope(risk, weights)
    update(weights, remembered, cut(gradients, STEEPEST), *rates)
    return loss


class PrototypeCleaner:
    """One pass over cached features a call of `learn`, by SGD on L_C (Eq. 5); `judge` is Eq. 2's score of the given label.

    `clean` is the teacher's partition; without one, a class-agnostic mixture over the losses makes it. The constructor
    stores, the first `learn` sizes the projector and the prototypes to the evidence.

    L_X and L_U are means over their own sets, so the score is a chance at even odds. `prior` is the share of right labels that
    is expected before anything is seen; other than 0.5, it turns the score into a chance at those odds. With `memory` > 1
    the mean of the last so many scores is judged by, as the mixture does with losses at 90 % noise.

    >>> from labelsieve import Evidence
    >>> labels = torch.arange(60) % 2
    >>> features = 3 * torch.eye(2)[labels]
    >>> labels[:4] = 1 - labels[:4]
    >>> seen = Evidence(labels, torch.zeros(60), torch.full((60, 2), 0.5), features)
    >>> cleaner = PrototypeCleaner(dim=8, passes=20, batch=16)
    >>> cleaner.learn(seen, clean=torch.arange(60) >= 8)
    >>> torch.nonzero(cleaner.judge(seen) < 0.5).flatten().tolist()
    [0, 1, 2, 3]
    """

    def __init__(
        self,
        dim: int = 128,
        alpha: float = 0.0,
        passes: int = 1,
        batch: int = 128,
        lr: float = 0.02,
        momentum: float = 0.9,
        weight_decay: float = 5e-4,
        depth: int = 1,
        cosine: float = 0.0,
        memory: int = 1,
        prior: float = 0.5,
        seed: int = 0,
    ) -> None:
        self.dim, self.alpha, self.passes, self.batch = dim, alpha, passes, batch
        self.lr, self.momentum, self.weight_decay = lr, momentum, weight_decay
        self.depth, self.cosine, self.memory, self.prior, self.seed = depth, cosine, memory, prior, seed
        self.learnt_ = 0  # calls of learn so far: names the next call's random order
        self.prepare: Prepare = plainly  # an engine may put a faster way here, and here:
        self.inner: Callable[..., Tensor] = descent
        self.projector_: Projector | None = None
        self.prototypes_: nn.Parameter | None = None
        self.momenta_: list[Tensor] = []  # one for each of the weights
        self.rate_ = torch.zeros(())  # the learning rate, where steps read it
        self.past_: Tensor | None = None  # (up to memory, N): the scores after each call of learn, the newest last

    def learn(self, seen: Evidence, clean: Tensor | None = None, features: Tensor | None = None) -> None:
        """From the evidence's features, or from others (N, D) of the same samples; what is judged are the evidence's."""
        if self.projector_ is None:
            self._start(seen.features.shape[1], seen.classes, seen.features.device)
        if clean is None:
            clean = self._own_teacher(seen)
        if not isinstance(clean, Tensor) or clean.dtype != torch.bool or clean.shape != seen.labels.shape:
            raise ValueError(f"clean must be a tensor of {len(seen)} truth values, such as teacher.judge(seen) > 0.5")
        predicted = seen.predicted
        confident = losses.confident_noisy(seen.probs, seen.labels, clean)
        columns = ((seen.features if features is None else features).float(), seen.labels, clean, predicted, confident)
        self.rate_.fill_(self.lr)
        whole_pass = self.prepare(self, "prototypes", self._step, self._tensors, (self.alpha,))
        for turn in range(self.passes):
            order = torch.randperm(len(seen), generator=seeded(self.seed, PROTOTYPES, self.learnt_, turn))
            whole_pass(sorted_for(columns, order, self.batch), self.batch)
        self.learnt_ += 1
        if self.memory > 1:
            latest = self._scores(seen).unsqueeze(0)
            same_rows = self.past_ is not None and self.past_.shape[1] == len(seen)
            self.past_ = torch.cat((self.past_, latest))[-self.memory :] if same_rows and self.past_ is not None else latest

    def judge(self, seen: Evidence) -> Tensor:
        scores = self._scores(seen)
        if self.past_ is not None and self.past_.shape[1] == len(seen):
            scores = torch.cat((self.past_[:-1], scores.unsqueeze(0))).mean(0)
        return at_odds(scores, self.prior)

    def _scores(self, seen: Evidence) -> Tensor:
        """sigmoid(v'_i c_{y_i}^T), (N,)."""
        return torch.sigmoid(self.classify(seen.features).gather(1, seen.labels.unsqueeze(1)).squeeze(1))

    @torch.no_grad()
    def classify(self, features: Tensor) -> Tensor:
        """v' c^T for every class, (N, K): the prototypes as a classifier."""
        if self.projector_ is None or self.prototypes_ is None:
            raise RuntimeError("this PrototypeCleaner has not learnt yet: call learn(seen, clean) first")
        chunks = [
            losses.similarity(self.projector_(rows.float()), scaled(self.prototypes_, self.cosine))
            for rows in features.split(8192)
        ]
        return torch.cat(chunks) if chunks else features.new_zeros(0, len(self.prototypes_))

    def _step(
        self, features: Tensor, labels: Tensor, clean: Tensor, predicted: Tensor, confident: Tensor, weight: Tensor
    ) -> Tensor:
        """One SGD step on L_C. Shapes are static: a short last batch is filled up with rows of weight 0."""
        batch = (features, labels, clean, predicted, confident, weight)
        rates = (self.rate_, self.momentum, self.weight_decay)
        return self.inner(self._weights(), self.momenta_, batch, rates, self.alpha, self.cosine)

    def _tensors(self) -> list[Tensor]:
        return [*self._weights(), *self.momenta_]

    def _named_momenta(self) -> dict[str, Tensor]:
        return {f"momentum.{i}": momentum for i, momentum in enumerate(self.momenta_)}

    def _weights(self) -> list[Tensor]:
        """The projector's, then the prototypes."""
        assert self.projector_ is not None and self.prototypes_ is not None
        return [*self.projector_.parameters(), self.prototypes_]

    def _start(self, features: int, classes: int, device: torch.device) -> None:
        generator = seeded(self.seed, WEIGHTS)
        self.projector_ = Projector(features, self.dim, self.depth, self.cosine, generator).to(device)
        self.prototypes_ = nn.Parameter((0.01 * torch.randn(classes, self.dim, generator=generator)).to(device))
        self.momenta_ = [torch.zeros_like(weight, requires_grad=False) for weight in self._weights()]
        self.rate_ = torch.zeros((), device=device)

    @staticmethod
    def _own_teacher(seen: Evidence) -> Tensor:
        teacher = MixtureCleaner()
        teacher.learn(seen)
        return teacher.judge(seen) > 0.5

    def state_dict(self) -> dict[str, Tensor]:
        if self.projector_ is None or self.prototypes_ is None:
            return {}
        state = {f"projector.{name}": value for name, value in self.projector_.state_dict().items()}
        state |= {"prototypes": self.prototypes_.detach(), "learnt": torch.tensor(self.learnt_)}
        if self.past_ is not None:
            state["past"] = self.past_
        return state | self._named_momenta()

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        if not state:
            return
        prototypes = state["prototypes"]
        if not sized_as(self.state_dict(), state):
            self._start(state["projector.layers.0.weight"].shape[1], len(prototypes), prototypes.device)
        assert self.projector_ is not None and self.prototypes_ is not None
        self.projector_.load_state_dict(part(state, "projector"))
        restore({"prototypes": self.prototypes_} | self._named_momenta(), state)
        self.learnt_ = int(state["learnt"])
        # A cleaner that remembers less than the one whose state it is judges by no more than it would remember itself.
        self.past_ = state["past"][-self.memory :] if self.memory > 1 and "past" in state else None
