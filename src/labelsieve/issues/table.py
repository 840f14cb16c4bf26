"""The list of labels, most suspicious first: made from scores, written as issues.csv and .parquet, read back. Needs no torch.

`label_score` is in [0, 1], low = suspicious. `predicted_label` says the same as `suggested_label`: it is the older name, kept
for those who read it. `decided` is what a person did in an earlier round of review (accept, keep, relabel, unsure), or empty:
the label of all but the unsure is settled, and none of these is an issue. `sample_issue` says what is wrong with the sample
itself, whatever its label, and `copy_of` which one a near copy is like.
"""

import csv
import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from importlib import import_module
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from labelsieve import run_files
from labelsieve.decisions.decision import LABELLING as SETTLED
from labelsieve.decisions.decision import UNSURE
from labelsieve.doors import reading
from labelsieve.errors import ToolError
from labelsieve.issues import rules
from labelsieve.texts import csv_field, csv_line

# Column -> type, in the order of the file. Empty cells are numbers that are not known.
COLUMNS: dict[str, type] = {
    "id": str,
    "path": str,
    "given_label": str,
    "suggested_label": str,
    "suggested_confidence": float,
    "label_score": float,
    "is_label_issue": bool,
    "action": str,
    "reason": str,
    "kind": str,
    "chance_by_prototype": float,
    "chance_by_loss": float,
    "loss": float,
    "networks_agree": bool,
    "similarity_given": float,
    "similarity_best": float,
    "score_first": float,
    "score_trend": float,
    "predicted_label": str,
    "decided": str,
    "sample_issue": str,
    "copy_of": str,
}
PIECE = 8192  # rows
DECIMALS = 6
MOST_ROUNDED = 1e9  # beyond it, a float64 has no more decimals than these
OWN_TEXTS = ("id", "path", "reason", "copy_of")  # other texts are the same few words in all rows
ADDED = {"decided": "", "sample_issue": "", "copy_of": ""}  # columns that older files do not have, and what stands for them
EVIDENCE = (
    "chance_by_prototype",
    "chance_by_loss",
    "loss",
    "similarity_given",
    "similarity_best",
    "score_first",
    "score_trend",
)


@dataclass(frozen=True, eq=False)
class LabelIssues:
    """Columns by sample index; `order` lists the samples, most suspicious first. `evidence`: columns of EVIDENCE, (N,)."""

    ids: Sequence[str]
    classes: Sequence[str]
    given: np.ndarray  # (N,) int
    predicted: np.ndarray  # (N,) int
    score: np.ndarray  # (N,) in [0, 1]
    is_issue: np.ndarray  # (N,) bool
    order: np.ndarray  # (N,) int
    second: np.ndarray  # (N,) int: the class after the predicted one
    confidence: np.ndarray  # (N, 2): the shares of these two
    agree: np.ndarray  # (N,) bool: both networks predict the same
    tau: float = 0.5
    paths: Sequence[str] | None = None
    evidence: Mapping[str, np.ndarray] = field(default_factory=dict)
    decided: Sequence[str] | None = None  # (N,)
    sample_issue: Sequence[str] | None = None  # (N,) of SAMPLE_ISSUES, or ""
    copy_of: Sequence[str] | None = None  # (N,)
    excused: np.ndarray | None = None  # (N,) bool: no issues, for the networks err more often than labels do
    alone: bool = False  # by one model's probabilities

    @cached_property
    def is_marked(self) -> np.ndarray:
        """(N,) bool: a person should look, be it for the label or for the sample itself."""
        own = [bool(kind) for kind in self.sample_issue] if self.sample_issue is not None else np.zeros(len(self.given), bool)
        return np.asarray(self.is_issue | np.array(own, bool))

    @cached_property
    def signs(self) -> rules.Signs:
        with np.errstate(over="ignore"):
            best = 1 / (1 + np.exp(-self._known("similarity_best")))
        first, second = self.confidence.T
        differs = self.predicted != self.given
        excused = np.zeros(len(self.given), bool) if self.excused is None else self.excused
        doubted = rules.doubted(self.score, self.tau, differs)
        return rules.Signs(self.score, doubted, differs, self.agree, first, second, best, excused, self.alone)

    @cached_property
    def kind(self) -> np.ndarray:
        return rules.kinds(self.signs)

    @cached_property
    def action(self) -> np.ndarray:
        """What the networks are sure of and a person was not stays a person's to decide."""
        return np.where(self._unsure & (self._by_rules != rules.KEEP), rules.REVIEW, self._by_rules)

    @cached_property
    def _by_rules(self) -> np.ndarray:
        return rules.actions(self.signs, self.kind)

    @property
    def _unsure(self) -> np.ndarray:
        if self.decided is None:
            return np.zeros(len(self.given), bool)
        return np.array([action == UNSURE for action in self.decided], bool)

    @cached_property
    def reasons(self) -> list[str]:
        """(N,) in a sentence each."""
        codes = np.stack((self.given, self.predicted, self.second))
        found = rules.reasons(self.signs, self.kind, self._by_rules, self.classes, codes)
        for row, action in enumerate(self.decided or ()):
            if action in SETTLED:
                found[row] = f'A person decided that it is "{self.classes[self.given[row]]}" ({action}).'
            elif action == UNSURE:
                found[row] += " A person was unsure."
        return found

    @cached_property
    def columns(self) -> dict[str, list[Any]]:
        """Every column of COLUMNS as a list, most suspicious first, as issues.csv gives it back: numbers with six decimals,
        NaN where they are not known."""
        order = self.order.tolist()
        suggested = [self.classes[k] for k in self.predicted[self.order].tolist()]
        table: dict[str, Any] = {
            "id": [self.ids[i] for i in order],
            "path": [""] * len(order) if self.paths is None else [self.paths[i] for i in order],
            "given_label": [self.classes[k] for k in self.given[self.order].tolist()],
            "suggested_label": suggested,
            "suggested_confidence": self.confidence[self.order, 0],
            "label_score": self.score[self.order],
            "is_label_issue": self.is_issue[self.order].tolist(),
            "action": self.action[self.order].tolist(),
            "reason": [self.reasons[i] for i in order],
            "kind": self.kind[self.order].tolist(),
            "networks_agree": self.agree[self.order].tolist(),
            "predicted_label": suggested,
        }
        table |= {
            name: [""] * len(order) if texts is None else [texts[i] for i in order]
            for name, texts in (("decided", self.decided), ("sample_issue", self.sample_issue), ("copy_of", self.copy_of))
        }
        table |= {name: self._known(name)[self.order] for name in EVIDENCE}
        return {name: _as_written(table[name]) if kind is float else table[name] for name, kind in COLUMNS.items()}

    def with_decisions(self, decided: Sequence[str] | None) -> "LabelIssues":
        """The same list, knowing what people decided (N,) in earlier rounds: what is settled is no issue, whatever tau is."""
        if decided is None:
            return self
        settled = np.array([action in SETTLED for action in decided], bool)
        return replace(self, decided=decided, is_issue=self.is_issue & ~settled)

    def csv_lines(self) -> Iterator[str]:
        """issues.csv, line by line."""
        yield csv_line(list(COLUMNS))
        words: dict[str, str] = {}
        for first in range(0, len(self.order), PIECE):
            cells = [_cells(name, self.columns[name][first : first + PIECE], words) for name in COLUMNS]
            yield from (",".join(row) + "\n" for row in zip(*cells))

    def _known(self, name: str) -> np.ndarray:
        found = self.evidence.get(name)
        return np.full(len(self.given), np.nan) if found is None else np.asarray(found, np.float64)


def _as_written(values: np.ndarray) -> list[float]:
    """With so many decimals; NaN where they are not known."""
    exact = np.where(np.isfinite(values), values, np.nan).astype(np.float64)
    near = np.abs(exact) < MOST_ROUNDED
    exact[near] = np.round(exact[near], DECIMALS) + 0.0  # which leaves no minus to what rounds to nothing
    found: list[float] = exact.tolist()
    return found


def _cells(name: str, values: Sequence[Any], words: dict[str, str]) -> list[str]:
    """A part of a column as CSV has it, numbers that are not known empty; `words` are those that occur again and again."""
    kind = COLUMNS[name]
    if kind is float:
        return ["" if value != value else f"{value:.{DECIMALS}f}" for value in values]
    if kind is bool:
        return list(map(str, values))
    if name in OWN_TEXTS:
        return list(map(csv_field, values))
    words |= {word: csv_field(word) for word in {*values} - words.keys()}
    return [words[word] for word in values]


def rank(
    ids: Sequence[str],
    classes: Sequence[str],
    given: np.ndarray,
    probs: np.ndarray,
    chances: np.ndarray,
    tau: float,
    *,
    agree: np.ndarray | None = None,
    paths: Sequence[str] | None = None,
    evidence: Mapping[str, np.ndarray] | None = None,
    most: float = 1.0,
) -> LabelIssues:
    """Rank samples by the mean of `chances` (J, N), opinions on whether labels are right; `probs` (N, K): the mean softmax.

    A label is an issue when its score is not above `tau` and the networks would say something else. Equal scores are
    ordered by the share the networks give to the label. `agree` (N,) says where both predict the same (default: all). With
    `most` < 1 only the first of the issues are, up to that share of all labels; what else the networks contradict is excused.
    """
    score = np.clip(np.nan_to_num(chances.mean(0)), 0, 1)
    predicted = probs.argmax(1)
    rows = np.arange(len(given))
    order = np.lexsort((probs[rows, given], score))
    second = _second(probs, predicted)
    confidence = np.stack([probs[rows, predicted], probs[rows, second]], 1)
    agree = np.ones(len(given), bool) if agree is None else agree
    doubted = (score <= tau) & (predicted != given)
    issues = doubted
    if most < 1:
        issues = np.zeros(len(given), bool)
        issues[order[doubted[order]][: round(most * len(given))]] = True
    return LabelIssues(
        ids,
        classes,
        given,
        predicted,
        score,
        issues,
        order,
        second,
        confidence,
        agree,
        tau,
        paths,
        evidence or {},
        excused=~issues if most < 1 else None,
    )


def _second(probs: np.ndarray, predicted: np.ndarray) -> np.ndarray:
    """(N,) the likeliest class beside the `predicted` one. In pieces, for (N, K) may be large."""
    found = np.zeros(len(predicted), np.int64)
    for first in range(0, len(predicted), PIECE):
        piece = slice(first, first + PIECE)
        others = np.array(probs[piece], np.float64)
        others[np.arange(len(others)), predicted[piece]] = -np.inf
        found[piece] = others.argmax(1)
    return found


Columns = dict[str, list[Any]]
BLOCK = 10_000  # rows in one go: a million of them as texts would take gigabytes


def read_issues(path: Path) -> Columns:
    """Every column of COLUMNS, a list each, in the file's order; an empty number is NaN. Columns more are left alone."""
    csv.field_size_limit(min(sys.maxsize, 2**31 - 1))
    found: Columns = {name: [] for name in COLUMNS}
    words: dict[str, str] = {}
    with reading(path, run_files.REMEDY):
        reader = csv.reader(run_files.lines(path))
        places = {name: place for place, name in enumerate(next(reader, []))}
        missing = [name for name in COLUMNS if name not in (*places, *ADDED)]
        if missing:
            raise ToolError(
                f'{path}: the column "{missing[0]}" is missing; the file was made by an older labelsieve or changed by hand: '
                f"put it back, or repeat the run"
            )
        while rows := list(islice(reader, BLOCK)):
            _take([row for row in rows if row], places, found, words, path)
    return found


def _take(rows: Sequence[Sequence[str]], places: Mapping[str, int], found: Columns, words: dict[str, str], path: Path) -> None:
    """Put some rows below those that were found before."""
    before = len(found["id"])
    whole = len(set(map(len, rows))) == 1
    cells_of = list(zip(*rows)) if whole else []
    for name, kind in COLUMNS.items():
        place = places.get(name)
        if place is None:
            cells: Sequence[Any] = [ADDED[name]] * len(rows)
        elif place < len(cells_of):
            cells = cells_of[place]
        else:  # some rows end before it
            cells = [row[place] if place < len(row) else None for row in rows]
        try:
            found[name] += _typed(cells, kind, None if name in OWN_TEXTS else words)
        except ValueError:
            row, cell = next((row, cell) for row, cell in enumerate(cells, before + 1) if not _is_typed(cell, kind))
            raise ToolError(
                f'{path}: row {row}: "{name}" is {cell!r}; the file was changed by hand or damaged: put it back'
            ) from None


def _typed(cells: Sequence[Any], kind: type, words: dict[str, str] | None) -> Sequence[Any]:
    """The cells as values of that kind, with `words` equal texts as one; a `ValueError` where one is no such value."""
    if None in cells:
        raise ValueError
    if kind is float:
        return [float(text) if text else math.nan for text in cells]
    if words is None and kind is str:
        return cells
    known = {*cells}
    if kind is bool:
        if not {text.lower() for text in known} <= {"true", "false"}:
            raise ValueError
        flags = {text: text.lower() == "true" for text in known}
        return [flags[text] for text in cells]
    assert words is not None
    words |= {text: text for text in known - words.keys()}
    return [words[text] for text in cells]


def _is_typed(cell: Any, kind: type) -> bool:
    try:
        return bool(_typed([cell], kind, None))
    except ValueError:
        return False


def can_write_parquet() -> bool:
    return find_spec("pyarrow") is not None


def write_parquet(columns: Mapping[str, Sequence[Any]], path: Path) -> None:
    """The columns as Parquet: text, float64 and bool; a number that is not known is null."""
    arrow, parquet = import_module("pyarrow"), import_module("pyarrow.parquet")
    types = {str: arrow.string(), float: arrow.float64(), bool: arrow.bool_()}
    arrays = [arrow.array(columns[name], type=types[kind], from_pandas=True) for name, kind in COLUMNS.items()]
    parquet.write_table(arrow.table(arrays, names=list(COLUMNS)), path)
