"""What heads that have not seen a sample say of its class: they take (N, d) and labels, and give shares of the classes (N, K).

A network that trains on wrong labels memorises them, most of all on frozen features, where one layer can fit anything. So heads
are held back as far as makes labels they have *not* seen most likely. Four opinions are averaged: ridge on one-hot labels, each
row left out in closed form; logistic regression on five folds (many rows or classes: a small network by SGD); the same without
the rows that these two contradict, so that one kind of mistake is not learnt; and the labels of the nearest other rows.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from labelsieve.methods.parts.evidence import Evidence
from labelsieve.methods.parts.streams import PLAN, WEIGHTS, seeded

HEADS = ("ridge", "logistic", "again", "neighbours")
FOLDS, MANY = 5, 20_000  # folds up to so many rows, 3 beyond
RIDGES = (0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0)  # penalties, as a multiple of the number of rows
SHARPNESS = (1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0, 13.0, 16.0, 20.0, 30.0)  # ridge scores are logits times one of these
PENALTIES = (1 / 30, 1 / 10, 1 / 3)  # of the logistic head, relative to the ridge that fits best
NEAREST = (5, 10, 20, 40)  # neighbours that vote, of which the likeliest number is taken
CHOSEN_ON = 10_000  # rows that settings are compared on
LOGISTIC = 200_000  # rows times classes: with more, SGD takes the place of L-BFGS, which would need minutes
ITERATIONS = 60
BLOCK = 2_048
USUAL = 0.95  # quantile of the confirmed labels' shares that counts as full


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Opinions on N samples by those who have not seen their labels."""

    probs: Tensor  # (N, K) float32, the mean of all opinions
    said: Tensor  # (J, N) int64: the class that each says
    vectors: Tensor  # (N, d) those that were looked at
    by: str = "heads"  # whose they are, a key of issues.estimate.HOW

    @property
    def predicted(self) -> Tensor:
        return self.probs.argmax(1)

    @property
    def agree(self) -> Tensor:
        """(N,) bool: all heads say the same class."""
        return (self.said == self.said[:1]).all(0)

    def beside(self, probs: Tensor) -> "HeldOut":
        """Together with a network's shares (N, K), which count as much as all heads do."""
        both = (self.probs + probs.float()) / 2
        return HeldOut(both, torch.cat((self.said, probs.argmax(1)[None])), self.vectors, "networks")

    def evidence(self, labels: Tensor) -> Evidence:
        """As a network would leave it behind."""
        own = self.probs.gather(1, labels.unsqueeze(1)).squeeze(1)
        return Evidence(labels, -own.clamp_min(1e-12).log(), self.probs, self.vectors)


def held_out(spaces: Iterable[Tensor], labels: Tensor, classes: int, seed: int = 0, heads: Sequence[str] = HEADS) -> HeldOut:
    """All four, or the first `heads`. `spaces` are the same vectors (N, d) on different scales, made as they come where there
    are many; ridge picks one."""
    ridge = min((Ridge(space, labels, classes) for space in spaces), key=lambda fit: fit.loss)
    vectors = ridge.vectors
    # The parts are put into one sum at once: (N, K) may be large.
    total, fold = ridge.shares(), folds_of(labels, seed)
    said = [total.argmax(1)]
    logistic, again = _heads(vectors, labels, classes, fold, ridge.penalty, seed)
    total += logistic
    said.append(logistic.argmax(1))
    del logistic
    kept = total.argmax(1) == labels
    further = {"again": lambda: again(kept), "neighbours": lambda: neighbours(vectors, labels, classes, seed)}
    for name in heads[len(said) :]:
        shares = further[name]()
        total += shares
        said.append(shares.argmax(1))
        del shares
    return HeldOut(total.div_(len(said)), torch.stack(said), vectors)


def label_share(probs: Tensor, labels: Tensor) -> Tensor:
    """How well each given label holds its own, (N,) in [0, 1]: the geometric mean of two shares.

    One is the label's share of the belief against its strongest rival; the other its share among all classes, relative to what
    well-confirmed labels have, for wrong labels elsewhere lower everybody's.
    """
    own = probs.gather(1, labels.unsqueeze(1)).squeeze(1).double()
    rival = torch.zeros_like(own)
    for rows in torch.arange(len(labels)).split(BLOCK):  # (N, K) may be large
        rival[rows] = probs[rows].scatter(1, labels[rows].unsqueeze(1), -1.0).amax(1).double()
    confirmed = own[own >= rival]
    usual = confirmed.quantile(USUAL, interpolation="nearest") if len(confirmed) > 0 else own.new_ones(())
    return ((own / usual.clamp_min(1e-12)).clamp(max=1) * own / (own + rival).clamp_min(1e-12)).sqrt().clamp(0, 1)


def folds_of(labels: Tensor, seed: int) -> Tensor:
    """(N,) which fold holds each row out: every class is spread evenly, so that none is missing from a fold's training rows."""
    count = len(labels)
    folds = min(FOLDS if count <= MANY else 3, count)
    order = torch.randperm(count, generator=seeded(seed, PLAN))
    by_class = order[labels[order].argsort(stable=True)]
    fold = torch.empty(count, dtype=torch.int64)
    fold[by_class] = torch.arange(count) % folds
    return fold


class Ridge:
    """Least squares on one-hot labels by the normal equations; `penalty` and `sharpness` make left-out labels likeliest."""

    def __init__(self, vectors: Tensor, labels: Tensor, classes: int) -> None:
        self.vectors, self.labels, self.classes = vectors, labels, classes
        count, width = vectors.shape
        square = torch.zeros(width + 1, width + 1, dtype=torch.float64)
        self.sums = torch.zeros(width + 1, classes, dtype=torch.float64)
        for some, own in self._blocks():
            rows = _with_one(some)
            square += rows.T @ rows
            self.sums.index_add_(1, own, rows.T)
        self.strength, self.axes = torch.linalg.eigh(square)
        self.sums = self.axes.T @ self.sums
        compared = torch.linspace(0, count - 1, min(count, CHOSEN_ON)).long()
        self.loss, self.penalty, self.sharpness = torch.inf, 1.0, 1.0
        for penalty in RIDGES:
            scores = torch.cat([self._left_out(vectors[i], labels[i], penalty) for i in compared.split(BLOCK)])
            for sharpness in SHARPNESS:
                loss = float(F.cross_entropy(scores * sharpness, labels[compared]))
                if loss < self.loss:
                    self.loss, self.penalty, self.sharpness = loss, penalty, sharpness

    def shares(self) -> Tensor:
        """(N, K) float32."""
        found = torch.empty(len(self.vectors), self.classes)
        for rows, (some, own) in zip(found.split(BLOCK), self._blocks()):
            rows.copy_((self._left_out(some, own, self.penalty) * self.sharpness).softmax(1))
        return found

    def _left_out(self, some: Tensor, own: Tensor, penalty: float) -> Tensor:
        """Scores of rows, each by the fit of all other rows: (prediction - h * target) / (1 - h), h the row's leverage."""
        turned = _with_one(some) @ self.axes
        shrunk = turned / (self.strength.clamp_min(0) + penalty * len(self.vectors))
        leverage = (shrunk * turned).sum(1, keepdim=True).clamp(max=1 - 1e-6)
        return (shrunk @ self.sums - leverage * F.one_hot(own, self.classes)) / (1 - leverage)

    def _blocks(self) -> list[tuple[Tensor, Tensor]]:
        return list(zip(self.vectors.split(BLOCK), self.labels.split(BLOCK)))


def _with_one(rows: Tensor) -> Tensor:
    return torch.cat((rows.double(), rows.new_ones(len(rows), 1, dtype=torch.float64)), 1)


def _heads(
    vectors: Tensor, labels: Tensor, classes: int, fold: Tensor, ridge: float, seed: int
) -> tuple[Tensor, Callable[[Tensor], Tensor]]:
    """Shares (N, K) of the logistic head, and a function that gives them when only some rows (N,) are trained on."""
    everything = torch.ones(len(labels), dtype=torch.bool)
    if len(labels) * classes > LOGISTIC:
        return (
            across(fold, everything, lambda rows, number: _by_sgd(vectors, labels, rows, classes, (seed, 0, number)), vectors),
            lambda kept: across(
                fold, kept, lambda rows, number: _by_sgd(vectors, labels, rows, classes, (seed, 1, number)), vectors
            ),
        )

    def fit(penalty: float) -> Callable[[Tensor, int], Callable[[Tensor], Tensor]]:
        return lambda rows, number: _logistic(vectors[rows], labels[rows], classes, penalty)

    penalties = [ridge * each for each in PENALTIES]
    first, held = fold != 0, fold == 0
    losses = [
        float(F.cross_entropy(fit(each)(torch.nonzero(first).flatten(), 0)(vectors[held]), labels[held])) for each in penalties
    ]
    penalty = penalties[losses.index(min(losses))]
    return across(fold, everything, fit(penalty), vectors), lambda kept: across(fold, kept, fit(penalty), vectors)


def across(fold: Tensor, kept: Tensor, fit: Callable[[Tensor, int], Callable[[Tensor], Tensor]], vectors: Tensor) -> Tensor:
    """Shares (N, K), each fold's by a head that was fit to the kept rows of the others."""
    shares = torch.empty(0)
    for number in range(int(fold.max()) + 1):
        rows = torch.nonzero((fold != number) & kept).flatten()
        if len(rows) == 0:
            rows = torch.nonzero(fold != number).flatten()
        head = fit(rows, number)
        for some in torch.nonzero(fold == number).flatten().split(BLOCK):
            found = head(vectors[some]).softmax(1).float()
            shares = shares if len(shares) else found.new_empty(len(fold), found.shape[1])
            shares[some] = found
    return shares


def _logistic(rows: Tensor, labels: Tensor, classes: int, penalty: float) -> Callable[[Tensor], Tensor]:
    """Logistic regression with half `penalty` times the squared weights, by L-BFGS from zero."""
    weights = torch.zeros(rows.shape[1], classes, requires_grad=True)
    offsets = torch.zeros(classes, requires_grad=True)
    optimiser = torch.optim.LBFGS((weights, offsets), max_iter=ITERATIONS, tolerance_grad=1e-5, line_search_fn="strong_wolfe")

    def risk() -> Tensor:
        optimiser.zero_grad()
        loss = F.cross_entropy(torch.addmm(offsets, rows, weights), labels) + penalty * weights.square().sum() / 2
        loss.backward()
        return loss

    with torch.enable_grad():
        optimiser.step(risk)
    return lambda some: torch.addmm(offsets.detach(), some, weights.detach())


def neighbours(vectors: Tensor, labels: Tensor, classes: int, seed: int = 0) -> Tensor:
    """Shares (N, K) of the nearest rows' labels by cosine, the row itself left out, and a little of every class."""
    count = len(vectors)
    order = torch.randperm(count, generator=seeded(seed))[:MANY]
    references, theirs = F.normalize(vectors[order].float(), dim=1), labels[order].int()
    place = torch.full((count,), -1)
    place[order] = torch.arange(len(order))
    most = min(NEAREST[-1], max(len(order) - 1, 1))
    near = torch.empty(count, most, dtype=torch.int32)
    for rows in torch.arange(count).split(1024):
        alike = F.normalize(vectors[rows].float(), dim=1) @ references.T
        own = place[rows]
        here = torch.nonzero(own >= 0).flatten()
        alike[here, own[here]] = -torch.inf
        near[rows] = theirs[alike.topk(most, 1).indices]
    asked = [each for each in NEAREST if each <= most] or [most]
    compared = torch.linspace(0, count - 1, min(count, CHOSEN_ON)).long()
    losses = [float(-_counted(near[compared, :each], classes).gather(1, labels[compared, None]).log().mean()) for each in asked]
    return _counted(near[:, : asked[losses.index(min(losses))]], classes)


def _counted(near: Tensor, classes: int) -> Tensor:
    counts = torch.full((len(near), classes), 1 / classes)
    for rows, some in zip(counts.split(BLOCK), near.split(BLOCK)):
        rows.scatter_add_(1, some.long(), torch.ones(some.shape))
    return counts.div_(near.shape[1] + 1)


WIDTH, BATCH, LR, MOMENTUM, DECAY = 128, 128, 0.05, 0.9, 1e-3
STEPS = 320  # of a fold, about; at least 3 epochs and at most 12


def rate_for(classes: int) -> float:
    """Of many classes each is seen in few steps: beyond a hundred the rate grows with them, up to ten times (LOG.md)."""
    return LR * min(max(classes / 100, 1.0), 10.0)


def _by_sgd(
    vectors: Tensor, labels: Tensor, rows: Tensor, classes: int, stream: tuple[int, int, int]
) -> Callable[[Tensor], Tensor]:
    weights = trained(vectors, labels, rows, classes, *stream)
    return lambda some: forward(weights, some)


def forward(weights: tuple[Tensor, ...], rows: Tensor) -> Tensor:
    first, bias, second, last = weights
    return torch.addmm(last, torch.relu(torch.addmm(bias, rows, first)), second)


def trained(vectors: Tensor, labels: Tensor, rows: Tensor, classes: int, seed: int, turn: int, number: int) -> tuple[Tensor, ...]:
    """The weights of Linear-ReLU-Linear after a few epochs of SGD over `rows`, the learning rate falling to 0."""
    dimensions = vectors.shape[1]
    first = torch.randn(dimensions, WIDTH, generator=seeded(seed, WEIGHTS, turn, number)) * dimensions**-0.5
    start = (first, torch.zeros(WIDTH), torch.zeros(WIDTH, classes), torch.zeros(classes))
    weights = tuple(weight.requires_grad_() for weight in start)
    rate = rate_for(classes)
    optimiser = torch.optim.SGD(weights, lr=rate, momentum=MOMENTUM, weight_decay=DECAY)
    per_epoch = -(-len(rows) // BATCH)
    epochs = min(max(STEPS // per_epoch, 3), 12)
    done = 0
    for epoch in range(epochs):
        order = rows[torch.randperm(len(rows), generator=seeded(seed, PLAN, turn, number, epoch))]
        for some in order.split(BATCH):
            optimiser.param_groups[0]["lr"] = rate * (1 - done / (epochs * per_epoch))
            loss = F.cross_entropy(forward(weights, vectors[some]), labels[some])
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            done += 1
    return tuple(weight.detach() for weight in weights)
