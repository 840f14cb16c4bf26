"""Class shares for every row of vectors, each from a head that has not seen the row: (N, d) and labels go in, (N, K) comes out.

A head is Linear-ReLU-Linear, trained by SGD. There are two rounds: the second trains only on rows whose label the first agrees
with, which keeps wrong labels of one kind (cat always called dog) from being learnt.
"""

import torch
import torch.nn.functional as F
from torch import Tensor

from labelsieve.methods.parts.streams import PLAN, WEIGHTS, seeded

WIDTH, BATCH, LR, MOMENTUM, DECAY, ROUNDS = 128, 128, 0.05, 0.9, 1e-3, 2
STEPS = 320  # of a fold, about; at least 3 epochs and at most 12


def cross_fitted(vectors: Tensor, labels: Tensor, classes: int, seed: int = 0) -> Tensor:
    """(N, K): five folds up to 20,000 rows, three beyond, where every fold has enough."""
    folds = min(5 if len(vectors) <= 20_000 else 3, len(vectors))
    fold = torch.randperm(len(vectors), generator=seeded(seed, PLAN)) % folds
    kept = torch.ones(len(vectors), dtype=torch.bool)
    probs = torch.empty(len(vectors), classes)
    for turn in range(ROUNDS):
        for number in range(folds):
            rows = torch.nonzero((fold != number) & kept).flatten()
            if len(rows) == 0:
                rows = torch.nonzero(fold != number).flatten()
            weights = trained(vectors, labels, rows, classes, seed, turn, number)
            held = torch.nonzero(fold == number).flatten()
            for some in held.split(8192):
                probs[some] = torch.softmax(forward(weights, vectors[some]), 1)
        kept = probs.argmax(1) == labels
    return probs


def forward(weights: tuple[Tensor, ...], rows: Tensor) -> Tensor:
    first, bias, second, last = weights
    return torch.addmm(last, torch.relu(torch.addmm(bias, rows, first)), second)


def rate_for(classes: int) -> float:
    """Of many classes each is seen in few steps: beyond a hundred the rate grows with them, up to ten times (LOG.md)."""
    return LR * min(max(classes / 100, 1.0), 10.0)


def trained(vectors: Tensor, labels: Tensor, rows: Tensor, classes: int, seed: int, turn: int, number: int) -> tuple[Tensor, ...]:
    """A head's weights after a few epochs over `rows`, the learning rate falling to 0."""
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
