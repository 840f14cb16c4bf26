"""Labels of any kind (hashables) as numbers 0..K-1 and back; and `IssueTable`: one value per sample, with the ranking beside."""

import importlib
import warnings
from collections.abc import Collection, Hashable, Iterable, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labelsieve.errors import UsageError, suggest
from labelsieve.issues.estimate import NOTHING_KNOWN, Share, in_words


class BadInput(UsageError, ValueError):
    """An argument that cannot be used; a `ValueError` too, because that is what scikit-learn's users expect."""


def plain(values: Any) -> Any:
    """What numpy understands stays as it is; torch tensors come to the host, without gradient, and bfloat16 as float32."""
    if not hasattr(values, "detach"):
        return values
    values = values.detach().cpu()
    return (values.float() if str(values.dtype) == "torch.bfloat16" else values).numpy()


def plain_labels(labels: Any) -> Any:
    """As `plain`; of pandas' columns in which gaps are allowed, whole numbers and truth values stay such, and no floats."""
    labels, dtype = plain(labels), getattr(labels, "dtype", None)
    kind = getattr(dtype, "kind", "O")
    if not hasattr(labels, "to_numpy") or isinstance(dtype, np.dtype) or kind not in "iub":
        return labels
    return labels.to_numpy(dtype=np.bool_ if kind == "b" else np.int64)


def numbered(labels: Any, classes: Collection[Hashable] | None = None) -> tuple[NDArray[np.int64], NDArray[Any]]:
    """Numbers (N,) and classes (K,): those given, else all that occur, sorted where they can be, else as they first occur."""
    labels = _one_axis(plain(labels))
    if classes is None and isinstance(labels, np.ndarray) and labels.ndim == 1 and labels.dtype.kind in "biuUS":
        found, codes = np.unique(labels, return_inverse=True)
        return codes.astype(np.int64), found
    names = _listed(labels)
    missing = next((row for row, name in enumerate(names) if is_missing(name)), None)
    if missing is not None:
        raise BadInput(f"labels: row {missing} has no label ({names[missing]!r}); fill it in or leave the row out")
    kinds = _sorted(dict.fromkeys(_hashable(names))) if classes is None else list(classes)
    place = {name: number for number, name in enumerate(kinds)}
    if len(place) < len(kinds):
        twice = next(name for name in kinds if kinds.count(name) > 1)
        raise BadInput(f"classes: {twice!r} is there {kinds.count(twice)} times; name each class once")
    for row, name in enumerate(names):
        if name not in place:
            near = suggest(str(name), [str(kind) for kind in kinds])
            raise BadInput(f"labels: row {row} has {name!r}, which is not one of the {len(kinds)} classes{near}")
    return np.array([place[name] for name in names], dtype=np.int64), as_array(kinds)


def is_missing(name: Any) -> bool:
    """None, NaN (which differs from itself), or what pandas puts for a gap (which refuses to say)."""
    try:
        return name is None or bool(name != name)
    except (TypeError, ValueError):
        return type(name).__name__ == "NAType"


def check_present(labels: Any) -> None:
    """`BadInput` for a gap among labels, with its row, which scikit-learn's own check does not name."""
    kind = getattr(labels, "dtype", None)
    certain = isinstance(kind, np.dtype) and kind.kind not in "Of"
    if certain or isinstance(labels, str) or not hasattr(labels, "__len__") or not hasattr(labels, "__iter__"):
        return
    row = next((row for row, name in enumerate(labels) if is_missing(name)), None)
    if row is not None:
        raise BadInput(f"y: row {row} has no label; fill it in or leave the row out")


def warn_of_order(samples: Any, labels: Any, level: int) -> None:
    """Tables are joined by position, as everywhere in scikit-learn: say so where their indexes tell that it is the wrong way."""
    if not (hasattr(samples, "iloc") and hasattr(labels, "iloc")) or len(samples) != len(labels):
        return
    ours, theirs = samples.index, labels.index
    if not ours.equals(theirs) and ours.is_unique and theirs.is_unique and ours.isin(theirs).all():
        warnings.warn(
            "samples and labels have the same index in another order, and are joined row by row, not by index; to join them by "
            "index, give labels.loc[samples.index]",
            stacklevel=level,
        )


def _one_axis(labels: Any) -> Any:
    """A column (N, 1), as of a frame, is one label per row too."""
    shape: tuple[int, ...] = getattr(labels, "shape", ())
    if len(shape) != 2 or shape[1] != 1:
        return labels
    return labels.iloc[:, 0] if hasattr(labels, "iloc") else labels[:, 0]


def _listed(labels: Any) -> list[Hashable]:
    """One label a row, as Python's own values: 3 rather than numpy's int64(3) or torch's tensor(3)."""
    shape = getattr(labels, "shape", None)
    if (shape is not None and len(shape) > 1) or not hasattr(labels, "__iter__"):
        what = type(labels).__name__ + (f" of shape {tuple(shape)}" if shape else "")
        raise BadInput(f"labels: this is {what}; one label per row belongs here, (N,), of one-hot rows labels.argmax(1)")
    names = labels.tolist() if isinstance(labels, np.ndarray) else list(labels)
    return [name.item() if isinstance(name, np.generic) or getattr(name, "ndim", None) == 0 else name for name in names]


def as_array(names: Sequence[Hashable]) -> NDArray[Any]:
    """One axis, whatever the names are: tuples stay tuples, mixed types stay what they are."""
    if names and len({type(name) for name in names}) == 1 and isinstance(names[0], (str, bool, int, float)):
        return np.array(names)
    result = np.empty(len(names), dtype=object)
    result[:] = names
    return result


def _hashable(names: Iterable[Any]) -> list[Hashable]:
    names = list(names)
    try:
        hash(tuple(names))
    except TypeError:
        row = next(row for row, name in enumerate(names) if not isinstance(name, Hashable))
        raise BadInput(f"labels: row {row} is a {type(names[row]).__name__}; one label per row belongs here, (N,)") from None
    return names


def _sorted(names: Iterable[Any]) -> list[Any]:
    names = list(names)
    try:
        return sorted(names)
    except TypeError:  # of different types: in the order in which they first occur
        return names


COLUMNS = ("id", "given_label", "suggested_label", "label_score", "is_label_issue", "rank")


@dataclass(frozen=True, eq=False, repr=False)  # whole columns can neither be compared by == nor be read
class IssueTable:
    """Row i is sample i. `label_score` is in [0, 1], low = suspicious; `order` lists samples, most suspicious first."""

    id: NDArray[Any]  # (N,) what was given, else the row number
    given_label: NDArray[Any]  # (N,) as the user wrote it
    suggested_label: NDArray[Any]  # (N,)
    label_score: NDArray[np.float64]  # (N,)
    is_label_issue: NDArray[np.bool_]  # (N,)
    order: NDArray[np.int64]  # (N,) rows, most suspicious first
    probs: NDArray[np.float32]  # (N, K) the shares of the classes that the suggestion comes from
    clean_by_loss: NDArray[np.float32]  # (N,) chance to be clean by the mixture over the losses; NaN without features
    clean_by_prototype: NDArray[np.float32]  # (N,) the same by class prototypes
    classes: NDArray[Any]  # (K,)
    wrong_share: Share = NOTHING_KNOWN  # how many labels are wrong: share, low, high; `known` is False where that cannot be told
    cautions: tuple[str, ...] = ()  # when not to trust this, gravest first; empty where there is nothing to warn of

    def __len__(self) -> int:
        return len(self.label_score)

    @property
    def _found(self) -> str:
        wrong = int(self.is_label_issue.sum())
        listed = f"{len(self):,} samples, {len(self.classes):,} classes, {wrong:,} label{'s' if wrong != 1 else ''} listed"
        lead, aside = in_words(self.wrong_share)
        return f"{listed}, {lead} wrong ({aside})" if self.wrong_share.known else listed

    def _repr_html_(self) -> str:
        """For notebooks: a plain table, which takes its colours from the page, light or dark."""
        rows = [(*map(repr, row[:3]), f"{row[3]:.3f}") for row in self.top(10)]
        lines = ["".join(f"<td>{escape(cell)}</td>" for cell in row) for row in rows]
        head = "".join(f"<th>{name}</th>" for name in COLUMNS[:4])
        warned = "".join(f"<p>Caution: {escape(caution)}</p>" for caution in self.cautions)
        table = f"<table><thead><tr>{head}</tr></thead><tbody><tr>{'</tr><tr>'.join(lines)}</tr></tbody></table>"
        return f"<p><b>IssueTable</b>: {self._found}; the most suspicious:</p>{table}{warned}"

    def __repr__(self) -> str:
        lines = [
            f"  {name!r}: {given!r}, {'no other suggested' if other == given else f'looks like {other!r}'} (score {score:.3f})"
            for name, given, other, score in self.top(5)
        ]
        warned = [f"  caution: {caution}" for caution in self.cautions]
        return "\n".join([f"IssueTable: {self._found}; the most suspicious:", *lines, *warned])

    @property
    def rank(self) -> NDArray[np.int64]:
        """(N,) each sample's place in the order: 0 is the most suspicious."""
        rank = np.empty(len(self), dtype=np.int64)
        rank[self.order] = np.arange(len(self))
        return rank

    def to_frame(self) -> Any:
        """A pandas data frame of `COLUMNS`, rows in the samples' order; without pandas, a numpy structured array of the same."""
        columns = {name: getattr(self, name) for name in COLUMNS}
        try:
            return importlib.import_module("pandas").DataFrame(columns)
        except ImportError:
            records = np.empty(len(self), dtype=[(name, column.dtype) for name, column in columns.items()])
            for name, column in columns.items():
                records[name] = column
            return records

    def top(self, count: int = 10) -> list[tuple[Any, Any, Any, float]]:
        """The most suspicious samples as (id, given label, suggested label, score)."""
        rows = self.order[:count]
        columns = (self.id, self.given_label, self.suggested_label, self.label_score)
        return list(zip(*(column[rows].tolist() for column in columns)))


def identities(ids: Collection[Any] | None, count: int, *tables: Any) -> NDArray[Any]:
    """The ids as one axis, all different and one a sample; else the index of the first pandas table; else the row numbers.

    After a filter or a split, row numbers would name other rows of a table than those that were judged.
    """
    if ids is None:
        index = next((np.asarray(table.index) for table in tables if hasattr(table, "iloc")), np.arange(count))
        whole = index.shape == (count,) and len({str(name) for name in index}) == count
        return index if whole else np.arange(count)
    named = np.asarray(plain(ids))
    if named.shape != (count,) or len(set(named.tolist())) != count:
        raise BadInput(f"ids must be {count} different names, one per sample; {_trouble(named, count)}")
    return named


def _trouble(named: NDArray[Any], count: int) -> str:
    if named.shape != (count,):
        return f"there are {len(named)}" if named.ndim == 1 else f"their shape is {named.shape}"
    seen: dict[Any, int] = {}
    name = next(name for row, name in enumerate(named.tolist()) if seen.setdefault(name, row) != row)
    return f"{name!r} names {named.tolist().count(name)} samples"
