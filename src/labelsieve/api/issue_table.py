"""`IssueTable`: one value per sample in the order they were given, and the ranking beside it."""

import importlib
from collections.abc import Collection
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labelsieve.api.labels import BadInput, plain
from labelsieve.issues.estimate import NOTHING_KNOWN, Share, in_words

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
            f"  {name!r}: {given!r}, {'no other suggested' if other == given else f'rather {other!r}'} (score {score:.3f})"
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
