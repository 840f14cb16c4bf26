"""`find_label_issues(features, labels)`: ranks the labels of your own embeddings, most suspicious first.

Heads that have not seen a sample judge its label (`methods/parts/heads.py`), or the probabilities that you bring; a mixture over
their losses teaches prototypes, which say how clean each label is. 5,000 x 1,280 takes seconds on a CPU, 50,000 x 512 a minute;
about 3 kB of memory per row beside the input.
"""

import warnings
from collections.abc import Collection, Hashable, Iterator
from contextlib import contextmanager, suppress
from os import PathLike
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from labelsieve.api.labels import BadInput, IssueTable, identities, numbered, plain, warn_of_order
from labelsieve.api.samples import MAKE_VECTORS, Seen, check_no_names, seen_through
from labelsieve.data.probabilities import shares
from labelsieve.engine.device import callers_settings_kept, set_threads
from labelsieve.errors import ToolError
from labelsieve.issues.estimate import Share
from labelsieve.methods.parts.cleaners import Evidence, MixtureCleaner, PrototypeCleaner
from labelsieve.methods.parts.estimate import NoiseEstimate, knows_classes, noise_by
from labelsieve.methods.parts.heads import BATCH, held_out, label_share
from labelsieve.methods.parts.scaling import DIMENSIONS, BrokenRow, compact
from labelsieve.results.by_probabilities import estimate_by_probabilities, issues_by_probabilities
from labelsieve.results.card import table_cautions


def numbers(features: Any) -> NDArray[Any]:
    """(N, D) as they lie in memory or on the disk; objects (a frame's numbers that may be missing) become floats."""
    if hasattr(features, "toarray") and hasattr(features, "nnz"):
        raise BadInput(
            "features: they are a sparse matrix; make them dense, by .toarray() or, where they are wide, by TruncatedSVD"
        )
    values = np.asarray(plain(features))
    if values.ndim == 2 and len(values) == 0:
        raise BadInput("features: there are no rows; give at least one sample of two classes each")
    if values.ndim != 2 or 0 in values.shape:
        raise BadInput(f"features: the shape is {values.shape}; they must be (N, D), one row per sample")
    if values.dtype.kind == "O":
        with suppress(TypeError, ValueError):
            values = values.astype(np.float64)
    if values.dtype.kind not in "fiub":
        raise BadInput(f"features: the values are {values.dtype}; they must be numbers")
    return values


def found_by_probabilities(
    probs: Any, labels: Any, classes: Collection[Hashable] | None, ids: Collection[Any] | None
) -> IssueTable:
    """Columns are the `classes`; else those of a data frame; else, of labels that are whole numbers, 0 to K - 1."""
    warn_of_order(probs, labels, 5)
    values = np.asarray(plain(probs))
    codes, kinds = numbered(labels, _columns(probs, values, labels) if classes is None else classes)
    if len(kinds) < 2:
        raise BadInput(f"labels: there is {len(kinds)} class; at least two are needed to tell a wrong label")
    values = checked_shares(probs, len(codes), kinds)
    named = identities(ids, len(codes), probs, labels)
    issues, wrong = issues_by_probabilities(values, codes, list(map(str, named.tolist())), list(map(str, kinds.tolist())))
    known = Share(wrong.share, wrong.low, wrong.high)
    if not known.known:
        _warn_of_columns(values, codes, kinds)
    counts = dict(zip(issues.classes, np.bincount(codes, minlength=len(kinds)).tolist()))
    unknown = np.full(len(codes), np.nan, np.float32)
    return IssueTable(
        id=named,
        given_label=kinds[codes],
        suggested_label=kinds[issues.predicted],
        label_score=issues.score,
        is_label_issue=issues.is_issue,
        order=issues.order,
        probs=values.astype(np.float32),
        clean_by_loss=unknown,
        clean_by_prototype=unknown,
        classes=kinds,
        wrong_share=known,
        cautions=table_cautions(known, counts),
    )


def _warn_of_columns(values: NDArray[Any], codes: NDArray[np.int64], kinds: NDArray[Any]) -> None:
    """Where most labels of each class go with one column, and that is another class's, the columns have another order."""
    found = np.zeros((len(kinds), len(kinds)), np.int64)
    np.add.at(found, (codes, values.argmax(1)), 1)
    column = found.argmax(1)
    if 2 * found.max(1).sum() > len(codes) and len(set(column.tolist())) == len(kinds):
        own = next(number for number, other in enumerate(column) if number != other)
        warnings.warn(
            f"pred_probs: column {column[own]} goes with {kinds[own].item()!r}, not column {own}, as the sorted labels would "
            f"have it; name the columns in their order with classes=[...]",
            stacklevel=4,
        )


def checked_shares(probs: Any, rows: int, kinds: NDArray[Any]) -> NDArray[Any]:
    """(N, K), rows adding up to 1, or a `BadInput` that names the first bad one.

    A data frame whose columns are called as the classes is taken by their names.
    """
    if hasattr(probs, "columns") and set(probs.columns) == set(kinds.tolist()) and len(probs.columns) == len(kinds):
        probs = probs[kinds.tolist()]
    try:
        return shares(plain(probs), rows, len(kinds), "pred_probs")
    except ToolError as error:
        raise BadInput(str(error)) from None


def _columns(probs: Any, values: NDArray[Any], labels: Any) -> Collection[Hashable] | None:
    """The classes that the columns stand for, where nobody said; None: the labels that occur."""
    _, kinds = numbered(labels)
    names = list(getattr(probs, "columns", ()))
    if names and set(kinds.tolist()) <= set(names):
        return names
    if values.ndim != 2 or kinds.dtype.kind not in "iu":
        return None
    outside = [kind for kind in kinds.tolist() if not 0 <= kind < values.shape[1]]
    if outside and len(kinds) != values.shape[1]:
        raise BadInput(
            f"labels: {outside[0]} is outside 0 to {values.shape[1] - 1}, which the columns of pred_probs stand for; "
            "name the columns with classes="
        )
    return None if outside else list(range(values.shape[1]))


PASSES, DIM = 5, 64


def find_label_issues(
    features: Any = None,
    labels: Any = None,
    probs: Any = None,
    *,
    pred_probs: Any = None,
    pictures: Any = None,
    backbone: str | None = None,
    weights: str | PathLike[str] | None = None,
    classes: Collection[Hashable] | None = None,
    ids: Collection[Any] | None = None,
    seed: int = 0,
    device: str = "cpu",
    offline: bool = False,
) -> IssueTable:
    """The labels that are probably wrong, by the samples' features.

    `features` (N, D): numbers, such as a numpy array, a memory map, a data frame or a torch tensor. `labels` (N,): any
    hashables. `probs` (N, K): shares of the classes, out of sample, columns in the order of `classes` (default: the labels that
    occur, sorted), or a data frame with columns called as the classes; without it they are estimated here. `ids` (N,) name the
    samples; without them the index of a data frame or series does, where no name is there twice, else the rows' numbers. The
    same seed gives the same table.

    Give `pictures` (N,) in place of features: paths, Pillow's pictures or arrays. They are seen through `backbone`, a network of
    timm; without a name, one whose weights are on this machine. `weights` is a file; None takes timm's own, which are downloaded
    if need be, after that is printed (`offline`: never). Each picture is looked at once: its features are kept in the cache
    folder. Pictures that cannot be read are left out, with a warning. `ids` are the paths unless you name them.

    Without features, `pred_probs` (N, K) and `labels` are enough: labels are ranked by these probabilities alone. They must be
    out of sample, by cross-validation for instance: a model agrees with labels it was trained on, wrong ones too, and nobody can
    tell that from the numbers. `pred_probs` is another name for `probs`.

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> truth = np.arange(300) % 3
    >>> features = 4 * np.eye(3)[truth] + rng.normal(size=(300, 3))
    >>> labels = np.array(["cat", "dog", "owl"])[truth]
    >>> labels[:6] = ["dog", "owl", "cat", "owl", "cat", "dog"]
    >>> found = find_label_issues(features, labels)
    >>> sorted(found.order[:6].tolist())
    [0, 1, 2, 3, 4, 5]
    >>> print(found.suggested_label[0], found.given_label[0])
    cat dog
    """
    if pred_probs is not None:
        if probs is not None:
            raise BadInput("probs and pred_probs are two names for one thing; give one of them")
        probs = pred_probs
    if labels is None or (features is not None and pictures is not None) or (features is pictures is probs is None):
        raise BadInput("give features and labels, or pictures=... and labels=..., or pred_probs=... and labels=...")
    if pictures is None and (backbone is not None or weights is not None):
        raise BadInput("backbone and weights are for pictures=...; features are taken as they are")
    if pictures is not None:
        seen = seen_through(backbone, weights, pictures, "pictures", device, offline)
        features, labels, probs, ids = _readable(seen, labels, probs, ids)
    if features is None:
        return found_by_probabilities(probs, labels, classes, ids)
    with few_threads():
        return _found(features, labels, probs, classes, ids, seed)


def _readable(seen: Seen, labels: Any, probs: Any, ids: Any) -> tuple[Any, Any, Any, Any]:
    """What is known of the pictures that can be read; of the others a warning."""
    ids = seen.paths if ids is None else ids
    if not seen.unread:
        return seen.features, labels, probs, ids
    warnings.warn(f"{seen.words()}; they are left out", stacklevel=3)
    keep = np.array([row not in seen.unread for row in range(len(seen.features))])

    def kept(values: Any) -> Any:
        if values is None:
            return None
        found = np.asarray(plain(values))
        if len(found) != len(keep):
            raise BadInput(f"{len(keep)} pictures, and {len(found)} labels, ids or rows of pred_probs; the counts must agree")
        return found[keep]

    return seen.features[keep], kept(labels), kept(probs), kept(ids)


def _found(
    features: Any, labels: Any, probs: Any, classes: Collection[Hashable] | None, ids: Collection[Any] | None, seed: int
) -> IssueTable:
    if not hasattr(seed, "__index__"):
        raise BadInput(f"seed={seed!r} is no whole number")
    if len(getattr(labels, "shape", ())) == 2 and len(getattr(features, "shape", ())) == 1:
        raise BadInput(
            "labels have two axes and features one, as if exchanged; call find_label_issues(features, labels), and give what a "
            "model says of each class as pred_probs="
        )
    warn_of_order(features, labels, 4)
    codes, kinds = numbered(labels, classes)
    check_no_names(features, "features", MAKE_VECTORS)
    values = numbers(features)
    if len(values) != len(codes):
        raise BadInput(f"{len(values)} rows of features, {len(codes)} labels; the counts must agree")
    if len(kinds) < 2:
        raise BadInput(f"labels: there is {len(kinds)} class; at least two are needed to tell a wrong label")
    named = identities(ids, len(codes), features, labels)
    given = torch.from_numpy(codes)
    if probs is None:
        heads = held_out(_spaces(values), given, len(kinds), seed)
        seen, wrong = heads.evidence(given), noise_by(heads, given)
    else:
        shares = torch.from_numpy(checked_shares(probs, len(codes), kinds).astype(np.float32))
        own = shares.gather(1, given.unsqueeze(1)).squeeze(1)
        seen = Evidence(given, -own.clamp_min(1e-12).log(), shares, scaled(values))
        wrong = estimate_by_probabilities(shares.numpy(), codes)
    return _table(seen, wrong, named, kinds, seed)


def _spaces(values: NDArray[Any]) -> Iterator[Tensor]:
    """On two scales, one after the other: of a million rows each has a gigabyte."""
    vectors = scaled(values)
    if torch.equal(vectors, vectors[:1].expand_as(vectors)):
        raise BadInput("features: all rows are the same, so that nothing can be told from them; check how they were computed")
    yield vectors
    del vectors
    yield scaled(values, alike=True)


def scaled(values: NDArray[Any], alike: bool = False) -> Tensor:
    """`compact`, or a `BadInput` that names the first row that is broken."""
    try:
        return compact(values, alike)
    except BrokenRow as error:
        raise BadInput(f"features: {error}; remove or fix it") from None


@contextmanager
def few_threads() -> Iterator[None]:
    """As many as a step of the heads is worth: on busy cores, several wait for each other most of the time."""
    with callers_settings_kept():
        set_threads(0, BATCH * DIMENSIONS)
        yield


def judged(seen: Evidence, seed: int) -> tuple[Tensor, Tensor]:
    """The chance to be clean by loss and by prototype, (N,) each."""
    teacher = MixtureCleaner(per_class=True)
    teacher.learn(seen)
    by_loss = teacher.judge(seen)
    judge = PrototypeCleaner(dim=DIM, passes=PASSES, seed=seed)
    judge.learn(seen, by_loss > 0.5)
    return by_loss, judge.judge(seen)


def _table(seen: Evidence, wrong: NoiseEstimate, ids: NDArray[Any], kinds: NDArray[Any], seed: int) -> IssueTable:
    by_loss, by_prototype = judged(seen, seed)
    score = label_share(seen.probs, seen.labels).numpy()
    given, suggested = seen.labels.numpy(), seen.predicted.numpy()
    order = np.argsort(score, kind="stable")
    counts = dict(zip(map(str, kinds.tolist()), np.bincount(given, minlength=len(kinds)).tolist()))
    flagged = np.zeros(len(given), dtype=bool)
    if knows_classes(seen):
        flagged[order[: round(wrong.share * len(given))]] = True
    return IssueTable(
        id=ids,
        given_label=kinds[given],
        suggested_label=kinds[suggested],
        label_score=score,
        is_label_issue=flagged & (score <= 0.5) & (suggested != given),
        order=order,
        probs=seen.probs.numpy(),
        clean_by_loss=by_loss.numpy(),
        clean_by_prototype=by_prototype.numpy(),
        classes=kinds,
        wrong_share=Share(wrong.share, wrong.low, wrong.high),
        cautions=table_cautions(Share(wrong.share, wrong.low, wrong.high), counts),
    )
