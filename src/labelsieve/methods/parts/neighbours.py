"""Each sample's nearest samples by the cosine of their features: exact, block by block, in bounded memory.

A million by a million cosines are never there at once: `ROOM` of them are, on a GPU and on a CPU alike.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
import torch.nn.functional as F
from torch import Tensor

VOTERS, ONE_IN = 200, 10  # so many samples vote, and of a small set no more than one in ten
PIECE = 4096  # rows whose neighbours' shares are there at one time
ROOM = {"cuda": 2**27, "cpu": 2**22}  # cosines held at one time: half a GiB on a GPU; what a CPU's cache serves well


def nearest(features: Tensor, k: int, itself: bool = True) -> tuple[Tensor, Tensor]:
    """Cosines and row numbers (N, k) of each row's k nearest rows of features (N, D), in no order.

    A row is its own nearest; without `itself` it is left out. There are never more neighbours than rows.
    """
    rows, k = len(features), min(k, len(features) - (not itself))
    unit = F.normalize(features.float(), dim=1)
    block = max(1, ROOM.get(features.device.type, ROOM["cpu"]) // max(rows, 1))
    cosines = unit.new_empty(rows, k)
    places = torch.empty(rows, k, dtype=torch.long, device=features.device)
    with torch.no_grad(), tensor_cores():
        for first in range(0, rows, block):
            alike = unit[first : first + block] @ unit.T
            if not itself:
                own = torch.arange(len(alike), device=alike.device)
                alike[own, own + first] = -torch.inf
            torch.topk(alike, k, dim=1, sorted=False, out=(cosines[first : first + block], places[first : first + block]))
    return cosines, places


def voters(samples: int, asked: int = 0) -> int:
    """How many neighbours a sample has where so many were asked for; 0: by the size of the set."""
    return asked or min(VOTERS, max(1, samples // ONE_IN))


def weighted_mean(weights: Tensor, rows: Tensor, shares: Tensor) -> Tensor:
    """The mean shares (N, K) of each sample's neighbours, by their rows and weights (N, k), which add up to 1."""
    pieces = zip(weights.split(PIECE), rows.split(PIECE))
    return torch.cat([(w.unsqueeze(2) * shares[near]).sum(1) for w, near in pieces])


def votes(features: Tensor, labels: Tensor, classes: int, k: int) -> Tensor:
    """How many of each row's k nearest rows, itself among them, have which label: (N, K)."""
    _, places = nearest(features, k)
    counts = torch.zeros(len(labels), classes, device=features.device)
    return counts.scatter_add_(1, labels[places], torch.ones((), device=features.device).expand(places.shape))


def against_the_rest(shares: Tensor, labels: Tensor) -> Tensor:
    """Each label's share (N,) against the strongest other class's, from 0 to 1; 0.5 where they are even.

    Below that it orders labels as their share over the largest one does; above, it goes on where that stays at 1.
    """
    own = shares.gather(1, labels.unsqueeze(1)).squeeze(1)
    other = shares.scatter(1, labels.unsqueeze(1), -1.0).amax(1).clamp_min(0)
    return own / (own + other)


@contextmanager
def tensor_cores() -> Iterator[None]:
    """Inside, a GPU multiplies float32 matrices in tf32: ten bits of each feature, and sums in full precision.

    With bf16 the cosines would be rounded to three digits, and hundreds of neighbours would be equally near.
    """
    before = torch.backends.cuda.matmul.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = True
    try:
        yield
    finally:
        torch.backends.cuda.matmul.allow_tf32 = before
