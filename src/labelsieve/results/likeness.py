"""Samples that are alike: for each issue what a person compares it with (neighbours.npz), and a map of all (map.npz).

neighbours.npz holds, for issues `of` (M,), the nearest clean samples of the `given` and of the `suggested` class and those most
`alike` whatever their labels: (M, k), nearest first, -1 where there are fewer. The map's plane is t-SNE's: neighbours attract
each other along the edges of an exact neighbour graph, and all samples repel each other through a grid, by FFT, which takes as
long for twice as many. It begins with the two main axes and draws nothing at random: the same features give the same map.
"""

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import fft
from scipy.sparse import csr_array
from torch import Tensor

from labelsieve.issues.table import LabelIssues
from labelsieve.methods.contract import Verdict

SHOWN = 6
ISSUES = 100_000  # so many at most, the most suspicious ones
CANDIDATES = 1024  # clean samples of a class that are looked at, evenly spread over the data
ALL = 20_000  # samples of any label that are looked at: half of them issues, most suspicious first, and a spread of the rest
AT_ONCE = 2048


def neighbours(verdict: Verdict, issues: LabelIssues) -> dict[str, np.ndarray]:
    """Clean: the networks say what the label says, and the score is in the better half of its class's such samples.

    In short runs no score is high, so the half is told by comparison. Alike by the cosine of all networks' features.
    """
    listed = issues.order[issues.is_marked[issues.order]][:ISSUES]
    of = np.sort(listed)
    clean = ~issues.is_issue & (issues.predicted == issues.given)
    features = [seen.features for seen in verdict.seen]
    pools = {k: _spread(_surest(np.flatnonzero(clean & (issues.given == k)), issues.score)) for k in _classes(issues, of)}
    found = {"of": of.astype(np.int32)}
    for name, labels in (("given", issues.given), ("suggested", issues.predicted)):
        near = np.full((len(of), SHOWN), -1, np.int32)
        for k in np.unique(labels[of]).tolist():
            rows = np.flatnonzero(labels[of] == k)
            near[rows] = _nearest(features, of[rows], pools[k])
        found[name] = near
    return found | {"alike": _nearest(features, of, _of_all(listed, len(issues.given)))}


def _classes(issues: LabelIssues, of: np.ndarray) -> list[int]:
    return np.union1d(issues.given[of], issues.predicted[of]).tolist()


def _of_all(listed: np.ndarray, count: int) -> np.ndarray:
    """Samples of any label: all, or the most suspicious issues and an even spread of the others."""
    first = np.sort(listed[: ALL // 2])
    others = np.setdiff1d(np.arange(count), first)
    return np.union1d(first, _spread(others, ALL - len(first)))


def _surest(rows: np.ndarray, score: np.ndarray) -> np.ndarray:
    """The better half by score; all where that would leave too few to show."""
    if len(rows) < 2 * SHOWN:
        return rows
    return rows[score[rows] >= np.median(score[rows])]


def _spread(rows: np.ndarray, count: int = CANDIDATES) -> np.ndarray:
    """At most `count` of them, evenly spaced."""
    if len(rows) <= count:
        return rows
    return rows[np.linspace(0, len(rows) - 1, count).astype(np.int64)]


def _nearest(features: Sequence[Tensor], rows: np.ndarray, pool: np.ndarray) -> np.ndarray:
    """(len(rows), SHOWN) samples of the pool, nearest first, -1 where it has fewer. No row is its own neighbour."""
    near = np.full((len(rows), SHOWN + 1), -1, np.int32)
    count = min(SHOWN + 1, len(pool))
    if not count:
        return near[:, :SHOWN]
    keys = [_unit(one, pool) for one in features]
    for first in range(0, len(rows), AT_ONCE):
        some = rows[first : first + AT_ONCE]
        likeness = sum((_unit(one, some) @ key.T for one, key in zip(features, keys)), torch.zeros((), device=features[0].device))
        near[first : first + AT_ONCE, :count] = pool[likeness.topk(count, 1).indices.cpu().numpy()]
    last = np.argsort(near == rows[:, None], axis=1, kind="stable")  # itself, where it is there
    return np.take_along_axis(np.where(near == rows[:, None], -1, near), last, 1)[:, :SHOWN]


def _unit(features: Tensor, rows: np.ndarray) -> Tensor:
    some = torch.nan_to_num(features[torch.from_numpy(rows).to(features.device)].float())
    return torch.nn.functional.normalize(some, dim=1)


AXES = 50  # main axes of the features in which neighbours are looked for
FITTED = 10_000  # samples by which the axes are found
MAPPED = 50_000  # samples that are laid out; others lie among their neighbours of these
NEAREST, PERPLEXITY = 20, 8.0
EARLY, STEPS = 120, 300  # of them the first with stronger attraction, in which groups come together
STRONGER = 12.0
CELL = 0.5  # of the grid, where that takes at most
CELLS = 256  # a side
FEW = 150  # samples, of which all pairs take less time than the grid
CHUNK = 1024
Floats = NDArray[np.float32]


def features_of(verdict: Verdict, images: Tensor) -> list[Tensor]:
    """What samples are compared by: vectors as they were given, of pictures what each network sees."""
    return [images] if images.ndim == 2 else [seen.features for seen in verdict.seen]


def unit(features: Sequence[Tensor], rows: NDArray[np.int64] | None = None) -> Tensor:
    """(N, D) rows whose products are the mean cosine over all features."""
    chosen = slice(None) if rows is None else torch.from_numpy(rows)
    parts = [torch.nan_to_num(one[chosen].float()) for one in features]
    return torch.cat([torch.nn.functional.normalize(part, dim=1) for part in parts], 1) / len(parts) ** 0.5


def spread(count: int, most: int) -> NDArray[np.int64]:
    """At most so many of `count` rows, evenly spaced."""
    return np.arange(count) if count <= most else np.linspace(0, count - 1, most).astype(np.int64)


def nearest(values: Tensor, pool: NDArray[np.int64], k: int) -> tuple[NDArray[np.int64], Floats]:
    """(N, k) rows of the pool, nearest first, and how far they are; no row is its own neighbour."""
    keys = values[torch.from_numpy(pool)]
    norms = (keys**2).sum(1)
    place = torch.full((len(values),), -1, dtype=torch.long)
    place[torch.from_numpy(pool)] = torch.arange(len(pool))
    found, far = np.empty((len(values), k), np.int64), np.empty((len(values), k), np.float32)
    for first in range(0, len(values), CHUNK):
        some = values[first : first + CHUNK]
        apart = torch.addmm(norms, some, keys.T, alpha=-2)
        own = place[first : first + CHUNK]
        inside = torch.nonzero(own >= 0).flatten()
        apart[inside.to(apart.device), own[inside].to(apart.device)] = torch.inf
        low, near = apart.topk(k, 1, largest=False)
        rest = (some**2).sum(1, keepdim=True)
        far[first : first + CHUNK] = (low + rest).clamp_min(0).sqrt().cpu().numpy()
        found[first : first + CHUNK] = pool[near.cpu().numpy()]
    return found, far


def main_axes(values: Tensor, count: int = AXES) -> Tensor:
    """The rows along their main axes, (N, count) at most; each axis points to where most of it lies."""
    some = values[torch.from_numpy(spread(len(values), FITTED)).to(values.device)]
    middle = some.mean(0)
    axes = torch.linalg.eigh((some - middle).T @ (some - middle))[1].flip(1)[:, : min(count, values.shape[1])]
    axes = axes * axes.gather(0, axes.abs().argmax(0, keepdim=True)).sign()
    return (values - middle) @ axes


def laid_out(features: Sequence[Tensor]) -> Floats:
    """(N, 2) places in the unit square. Fewer than four samples, or samples that are all alike, lie in its middle."""
    count = len(features[0])
    values = main_axes(unit(features))
    rows = spread(count, MAPPED)
    if count < 4 or not bool((values.amax(0) - values.amin(0)).max() > 1e-6):
        return np.full((count, 2), 0.5, np.float32)
    some = values[torch.from_numpy(rows).to(values.device)]
    near, far = nearest(some, np.arange(len(rows)), min(NEAREST, len(rows) - 1))
    places = _embedded(_attraction(near, far), _start(some))
    if len(rows) < count:
        near, far = nearest(values, rows, 3)
        among = places[np.searchsorted(rows, near)]
        closeness = 1 / np.maximum(far, 1e-6)[..., None]
        whole = (among * closeness).sum(1) / closeness.sum(1)
        whole[rows] = places
        places = whole
    return _framed(places)


def _start(values: Tensor) -> Floats:
    first: Floats = values[:, :2].cpu().numpy().astype(np.float32)
    if first.shape[1] < 2:
        first = np.concatenate((first, np.zeros_like(first)), 1)
    return first / max(float(first[:, 0].std()), 1e-12) * 1e-2


def _framed(places: Floats) -> Floats:
    """In the unit square, as wide as high; a few that lie far out are drawn to the edge."""
    low, high = np.quantile(places, (0.001, 0.999), axis=0)
    middle, half = (low + high) / 2, max(float((high - low).max()) / 2, 1e-6) * 1.04
    return np.clip((places - middle) / (2 * half) + 0.5, 0, 1).astype(np.float32)


def _attraction(near: NDArray[np.int64], far: Floats) -> csr_array:
    """(M, M) shares that add up to 1: how much two samples belong together, by distances that are comparable everywhere."""
    count, k = near.shape
    squares = far.astype(np.float64) ** 2
    squares -= squares[:, :1]
    aim = np.log(min(PERPLEXITY, k / 2) + 1e-9)
    low, high = np.full((count, 1), -30.0), np.full((count, 1), 30.0)  # of the logarithm of a Gaussian's sharpness
    scale = np.maximum(squares.mean(1, keepdims=True), 1e-12)
    for _ in range(30):
        middle = (low + high) / 2
        weights = np.exp(-squares / scale * np.exp(middle))
        share = weights / weights.sum(1, keepdims=True)
        entropy = -(share * np.log(np.maximum(share, 1e-30))).sum(1, keepdims=True)
        low, high = np.where(entropy > aim, middle, low), np.where(entropy > aim, high, middle)
    one_way = csr_array((share.ravel(), near.ravel(), np.arange(0, count * k + 1, k)), shape=(count, count))
    both = csr_array(one_way + one_way.T)
    both.data = (both.data / both.data.sum()).astype(np.float32)
    return both


def _embedded(attraction: csr_array, places: Floats) -> Floats:
    """Places (M, 2) after STEPS of gradient descent with momentum, each coordinate with a gain of its own."""
    count = len(places)
    edges = attraction.copy()
    one = np.repeat(np.arange(count), np.diff(attraction.indptr))
    other = attraction.indices
    speed, gain = np.zeros_like(places), np.ones_like(places)
    repel = _by_pairs if count <= FEW else _Repulsion()
    for step in range(STEPS):
        early = step < EARLY
        apart = places[one] - places[other]
        edges.data = attraction.data / (1 + np.einsum("ij,ij->i", apart, apart))
        pull = edges.sum(1)[:, None] * places - edges @ places
        push, total = repel(places)
        slope = (STRONGER if early else 1.0) * pull - push / total
        gain = np.maximum(np.where((slope > 0) == (speed > 0), gain * 0.8, gain + 0.2), 0.01).astype(np.float32)
        rate = max(count / STRONGER if early else count / 2, 50.0)
        speed = (0.5 if early else 0.8) * speed - rate * gain * slope
        length = np.sqrt((speed**2).sum(1, keepdims=True))
        places = places + speed * np.minimum(1, 5 / np.maximum(length, 1e-12))  # no sample jumps over the map
        places = (places - places.mean(0)).astype(np.float32)
    return places


def _by_pairs(places: Floats) -> tuple[Floats, float]:
    """What `_Repulsion` gives, of each pair by itself."""
    apart = places[:, None] - places
    close = 1 / (1 + np.einsum("ijk,ijk->ij", apart, apart))
    return np.einsum("ijk,ij->ik", apart, close**2), max(float(close.sum()) - len(places), 1e-6)


class _Repulsion:
    """Sums over all other samples of t-SNE's kernels, by a grid: what is on it is convolved with them at once."""

    def __init__(self) -> None:
        self.cells, self.cell = 0, 0.0
        self.kernels: list[NDArray[np.complex64]] = []

    def __call__(self, places: Floats) -> tuple[Floats, float]:
        """(M, 2) how samples push each one, before it is divided by the `total` of all closeness."""
        self._fit(float(np.abs(places).max()))
        size = 2 * self.cells
        at = places / self.cell + self.cells / 2
        middle = np.clip(np.rint(at).astype(np.int32), 1, self.cells - 2)
        off = (at - middle).astype(np.float32)
        # Each sample lies on three by three points of the grid, more on the nearer ones: on fewer, they gather along its lines.
        shares = np.stack((0.5 * (0.5 - off) ** 2, 0.75 - off**2, 0.5 * (0.5 + off) ** 2))
        base = middle[:, 0] * size + middle[:, 1]
        spots = [(base + (i - 1) * size + (j - 1), shares[i, :, 0] * shares[j, :, 1]) for i in range(3) for j in range(3)]
        mass = np.zeros(size * size, np.float32)
        for cell, share in spots:
            mass += np.bincount(cell, share, size * size).astype(np.float32)
        spectrum = fft.rfft2(mass.reshape(size, size))
        fields = [fft.irfft2(spectrum * kernel, (size, size)).ravel() for kernel in self.kernels]
        across, along, close = (sum(field[cell] * share for cell, share in spots) for field in fields)
        push = np.stack((across, along), 1)
        return push, max(float(close.sum()) - len(places), 1e-6)

    def _fit(self, reach: float) -> None:
        """Make the grid as large as it has to be; a larger one than needed stays."""
        wanted = 2 * reach / CELL + 4
        if self.cells and wanted * CELL <= self.cells * self.cell:
            return
        cells = 32
        while cells < min(1.15 * wanted, CELLS):
            cells += 16
        self.cells, self.cell = cells, max(CELL, 1.15 * 2 * reach / (cells - 4))
        far = self.cell * np.minimum(np.arange(2 * cells), 2 * cells - np.arange(2 * cells)).astype(np.float32)
        along = np.where(np.arange(2 * cells) < cells, far, -far).astype(np.float32)
        close = 1 / (1 + far[:, None] ** 2 + far**2)
        shapes = (along[:, None] * close**2, along[None, :] * close**2, close)
        self.kernels = [fft.rfft2(shape.astype(np.float32)) for shape in shapes]
