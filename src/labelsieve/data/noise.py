"""Adds label noise by a spec and a seed; the result is the same on every machine.

`none`, `sym:0.5` (over all classes, the own one included), `sym-other:0.5` (over the others), `asym:0.4`
(CIFAR's maps), `pair:0.3` (k to k + 1), `confuse:0.2` (what a weak model confuses, sample by sample), `votes:FILE:0.2` (drawn
from people's votes), `matrix:FILE` (chances for each class), `file:FILE` (ready labels), `cifar-n:FILE:KIND` (labels that people
gave CIFAR's pictures).
"""

import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from labelsieve.data.draws import Draws, IntArray
from labelsieve.data.label_files import HUMAN_FORM, Noise, human_labels, label_hash, read_json, read_labels
from labelsieve.data.npz import read_npy, read_npz
from labelsieve.doors import Damage, read_text, reading
from labelsieve.errors import ToolError, UsageError, suggest

Floats = NDArray[np.float64]

FOLDS = 5
COARSE = 8  # pixels a side: enough to tell a ship from a frog, not a cat from a dog
SHRINK = 0.1  # of the mean variance, added to every direction
CHUNK = 4096
LEAST = 1e-9  # weight of a sample that the model is sure of: a rate of 1 takes these, too


def confused(samples: Tensor, labels: IntArray, classes: int, count: int, draws: Draws) -> IntArray:
    """Labels (N,) of which exactly `count` are wrong.

    The surer the model is that a label is right, the less likely it is drawn; the wrong class is drawn from what the model
    thinks of the others. A smaller count of the same seed draws a part of a larger one's rows.
    """
    logits = out_of_fold(coarse(samples), labels, classes, draws)
    rows = np.arange(len(labels))
    others = logits.copy()
    others[rows, labels] = -np.inf
    doubt = 1 / (1 + np.exp(np.clip(logits[rows, labels] - _logsumexp(others), -700, 700)))
    # The smallest of exponential variables with these rates: a draw without replacement by weight.
    waits = -np.log1p(-draws.uniform(len(labels))) / np.maximum(doubt, LEAST)
    chosen = np.argsort(waits, kind="stable")[:count]
    shares = np.exp(others - _logsumexp(others)[:, None]).cumsum(1)
    towards = (shares > draws.uniform(len(labels))[:, None] * shares[:, -1:]).argmax(1)
    noisy = labels.copy()
    noisy[chosen] = towards[chosen]
    return noisy


def coarse(samples: Tensor) -> Floats:
    """(N, D): pictures at 8 pixels a side at most, vectors as they are; every dimension by its spread."""
    parts = []
    for some in samples.split(CHUNK):
        if some.ndim == 4:
            side = (min(COARSE, some.shape[2]), min(COARSE, some.shape[3]))
            some = torch.nn.functional.adaptive_avg_pool2d(some.float(), side)
        parts.append(some.flatten(1).double().numpy())
    rows = np.nan_to_num(np.concatenate(parts))
    spread = rows.std(0)
    return (rows - rows.mean(0)) / np.where(spread > 0, spread, 1)


def out_of_fold(rows: Floats, labels: IntArray, classes: int, draws: Draws) -> Floats:
    """(N, K): log-odds of the classes up to a constant, each row by a model of the other folds."""
    fold = np.empty(len(rows), np.int64)
    fold[draws.order(len(rows))] = np.arange(len(rows)) % FOLDS
    logits = np.zeros((len(rows), classes))
    for number in range(FOLDS):
        held = fold == number
        if not held.all():
            logits[held] = _discriminant(rows[~held], labels[~held], classes)(rows[held])
    return logits


def _discriminant(rows: Floats, labels: IntArray, classes: int) -> Callable[[Floats], Floats]:
    counts = np.bincount(labels, minlength=classes)
    means = np.zeros((classes, rows.shape[1]))
    np.add.at(means, labels, rows)
    means /= np.maximum(counts, 1)[:, None]
    within = rows - means[labels]
    spread = within.T @ within / len(rows)
    spread[np.diag_indices_from(spread)] += SHRINK * max(np.trace(spread) / len(spread), 1e-12)
    turned = np.linalg.solve(spread, means.T)
    constant = np.log(np.maximum(counts, 0.5) / len(rows)) - 0.5 * (means.T * turned).sum(0)
    return lambda held: held @ turned + constant


def _logsumexp(logits: Floats) -> Floats:
    """(N,) over the classes."""
    most = logits.max(1)
    found: Floats = most + np.log(np.exp(logits - most[:, None]).sum(1))
    return found


Matrix = NDArray[np.float64]
LARGEST = 2**30  # bytes
MOST_VOTES = 10**9  # of one sample for one class
UNSEEN = 0.02  # of a vote for classes that nobody named: at high rates people's errors reach beyond those
NOISE_STREAM = 3
# truck to automobile, bird to airplane, deer to horse, cat and dog to each other; the rest keep theirs.
CIFAR10_MAP = {9: 1, 2: 0, 4: 7, 3: 5, 5: 3}


@dataclass(frozen=True)
class Given:
    """What a noise works on: labels (N,), how many classes, draws, and what is known of the data set."""

    labels: IntArray
    classes: int
    draws: Draws
    groups: Sequence[int] | None
    name: str
    samples: Tensor | None = None
    ids: Sequence[str] = ()  # in arrays, each sample's place in them


def inject(
    spec: str,
    labels: Tensor,
    classes: int,
    seed: int,
    *,
    groups: Sequence[int] | None = None,
    name: str = "",
    samples: Tensor | None = None,
    ids: Sequence[str] = (),
) -> Noise:
    """Labels (N,) with the noise of `spec`; `asym` needs the set's `name` or `groups` (K,), `confuse` the samples (N, ...),
    `votes` their ids."""
    check_form(spec)
    kind, _, argument = spec.partition(":")
    given = Given(labels.numpy().astype(np.int64), classes, Draws(NOISE_STREAM, seed), groups, name, samples, ids)
    noisy = torch.from_numpy(NOISES[kind](argument, given))
    return Noise(noisy, spec, seed, noisy != labels, label_hash(noisy))


def check_form(spec: str) -> None:
    """A `UsageError` for what can be seen without data, so that nobody waits for pictures to be decoded first."""
    kind, _, argument = spec.partition(":")
    if kind not in NOISES:
        raise UsageError(f'unknown noise "{kind}"{suggest(kind, NOISES)}; the forms are {", ".join(FORMS)}')
    if f"{kind}:RATE" in FORMS:
        _rate(argument)
    elif f"{kind}:FILE" in FORMS:
        _file(kind, argument)


def _none(argument: str, given: Given) -> IntArray:
    if argument:
        raise UsageError(f'"none" takes nothing after it, not "{argument}"; for a rate write sym:{argument}')
    return given.labels.copy()


def _sym(argument: str, given: Given) -> IntArray:
    rows = _drawn_rows(argument, given)
    noisy = given.labels.copy()
    noisy[rows] = given.draws.below(given.classes, len(rows))
    return noisy


def _sym_other(argument: str, given: Given) -> IntArray:
    rows = _drawn_rows(argument, given)
    noisy = given.labels.copy()
    noisy[rows] = (noisy[rows] + 1 + given.draws.below(given.classes - 1, len(rows))) % given.classes
    return noisy


def _asym(argument: str, given: Given) -> IntArray:
    if given.name == "cifar10" and given.classes == 10:
        target = np.array([CIFAR10_MAP.get(k, k) for k in range(10)])
    elif given.groups is not None:
        target = next_in_group(given.groups)
    else:
        rate = argument or "0.4"
        raise UsageError(
            f'asym is defined for cifar10 and for data with superclasses, not for "{given.name}"; '
            f"write pair:{rate} (each class to the next) or matrix:FILE (your own chances)"
        )
    return _mapped(target, argument, given)


def _pair(argument: str, given: Given) -> IntArray:
    return _mapped((np.arange(given.classes) + 1) % given.classes, argument, given)


def _confuse(argument: str, given: Given) -> IntArray:
    count = round(_rate(argument) * len(given.labels))
    if given.samples is None:
        raise UsageError("confuse needs the pictures or vectors themselves; write sym-other:RATE where there are labels alone")
    return confused(given.samples, given.labels, given.classes, count, given.draws)


def _votes(argument: str, given: Given) -> IntArray:
    """One vote drawn for each sample, from counts to the power that makes as many wrong as asked for."""
    name, _, rate = argument.rpartition(":")
    wanted, place = _rate(rate), _file("votes", name)
    with reading(place, "write counts (N, K): how many people gave each row of the data each class"):
        counts = _numbers(read_npz(place)["counts"] if place.suffix == ".npz" else read_npy(place))
        if not ((counts >= 0) & (counts <= MOST_VOTES)).all():
            raise Damage(f"a count is not within 0 to {MOST_VOTES:,}")
    rows = np.array([int(one) if one.isdecimal() and len(one) < 16 else -1 for one in given.ids])
    fits = counts.ndim == 2 and counts.shape[1] == given.classes and len(rows) == len(given.labels)
    if not (fits and 0 <= rows.min() <= rows.max() < len(counts)):
        raise UsageError(f"{place}: counts of the shape {counts.shape} do not fit these {len(given.labels):,} samples")
    votes, here = counts[rows] + UNSEEN, np.arange(len(rows))
    if (votes.argmax(1) == given.labels).mean() < 0.5:
        raise UsageError(f"{place}: most people said otherwise than the labels do, so these are votes on other pictures")
    low, high = 0.0, 3.0
    for _ in range(40):
        power = (low + high) / 2
        shares = votes**power / (votes**power).sum(1, keepdims=True)
        low, high = (power, high) if 1 - shares[here, given.labels].mean() > wanted else (low, power)
    return (shares.cumsum(1) > given.draws.uniform(len(rows))[:, None] * shares.sum(1, keepdims=True)).argmax(1)


def _matrix(argument: str, given: Given) -> IntArray:
    chances = read_matrix(_file("matrix", argument), given.classes)
    return sample_rows(chances, given.labels, given.draws)


def read_matrix(path: Path, classes: int) -> Matrix:
    """The row-stochastic matrix (K, K) in an .npy, .csv or .json file."""
    readers = {".npy": read_npy, ".csv": _read_csv, ".json": read_json}
    if path.suffix not in readers:
        raise ToolError(f'{path}: a noise matrix is an .npy, .csv or .json file, not "{path.suffix}"')
    with reading(path, f"write {classes} rows of {classes} numbers"):
        matrix = _numbers(readers[path.suffix](path))
    if matrix.shape != (classes, classes):
        raise ToolError(f"{path}: the shape is {matrix.shape}; {classes} classes need ({classes}, {classes})")
    for k, row in enumerate(matrix):
        if not (np.isfinite(row).all() and (row >= 0).all()):
            raise ToolError(f"{path}: row {k} has a negative or infinite entry or NaN; chances are 0 to 1")
        if abs(row.sum() - 1) > 1e-6:
            raise ToolError(f"{path}: row {k} sums to {row.sum():.7g}; each row must sum to 1")
    return matrix


def _numbers(values: object) -> Matrix:
    found = np.asarray(values)
    if found.dtype.kind not in "fiub":
        raise Damage(f"its values are {found.dtype}, not numbers")
    with np.errstate(over="ignore"):
        return found.astype(np.float64)


def sample_rows(chances: Matrix, labels: IntArray, draws: Draws) -> IntArray:
    """For each label (N,) a new one, drawn from its row of `chances` (K, K)."""
    drawn = draws.uniform(len(labels))
    edges = np.cumsum(chances, axis=1)
    edges /= edges[:, -1:]  # ends at exactly 1, so that no draw falls past the last class
    noisy = np.empty_like(labels)
    for k in range(len(chances)):
        rows = labels == k
        noisy[rows] = np.searchsorted(edges[k], drawn[rows], side="right")
    return noisy


def _read_csv(path: Path) -> Matrix:
    text = read_text(path, LARGEST, follow=True)
    if not text.strip():
        raise Damage("it is empty")
    return np.loadtxt(io.StringIO(text), delimiter=",", ndmin=2)


def _from_file(argument: str, given: Given) -> IntArray:
    place, key = _file("file", argument), "labels"
    if not place.exists() and ".npz:" in argument:
        name, _, key = argument.rpartition(":")
        place = _file("file", name)
    found: IntArray = read_labels(place, torch.from_numpy(given.labels), given.classes, key).numpy()
    return found


def _human(argument: str, given: Given) -> IntArray:
    if given.name not in ("cifar10", "cifar100"):
        raise UsageError(f'cifar-n holds labels for cifar10 and cifar100, not for "{given.name}"; write file:FILE for others')
    return human_labels(argument, given.labels, given.classes)


def next_in_group(groups: Sequence[int]) -> IntArray:
    """The class (K,) after each one within its superclass, by class number, the last back to the first."""
    members = np.asarray(groups)
    target = np.zeros(len(members), np.int64)
    for group in np.unique(members):
        classes = np.flatnonzero(members == group)
        target[classes] = np.roll(classes, -1)
    return target


def _mapped(target: IntArray, argument: str, given: Given) -> IntArray:
    """Rows drawn over the whole set go where their class's `target` (K,) says."""
    rows = _drawn_rows(argument, given)
    noisy = given.labels.copy()
    noisy[rows] = target[noisy[rows]]
    return noisy


def _drawn_rows(argument: str, given: Given) -> IntArray:
    """Exactly round(rate N) different rows; a smaller rate of the same seed draws a part of them."""
    count = round(_rate(argument) * len(given.labels))
    return given.draws.order(len(given.labels))[:count]


def _rate(argument: str) -> float:
    try:
        rate = float(argument)
    except ValueError:
        rate = float("nan")
    if not 0 <= rate <= 1:
        raise UsageError(f'noise rate "{argument}" is not a number from 0 to 1; write for example sym:0.5')
    return rate


def _file(kind: str, argument: str) -> Path:
    if not argument:
        raise UsageError(f"{kind} needs a file; write {kind}:FILE")
    return Path(argument).expanduser()


NOISES: dict[str, Callable[[str, Given], IntArray]] = {
    "none": _none,
    "sym": _sym,
    "sym-other": _sym_other,
    "asym": _asym,
    "pair": _pair,
    "confuse": _confuse,
    "votes": _votes,
    "matrix": _matrix,
    "file": _from_file,
    "cifar-n": _human,
}
FORMS = (
    "none",
    "sym:RATE",
    "sym-other:RATE",
    "asym:RATE",
    "pair:RATE",
    "confuse:RATE",
    "votes:FILE:RATE",
    "matrix:FILE",
    "file:FILE[:KEY]",
    HUMAN_FORM,
)
