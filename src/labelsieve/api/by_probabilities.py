"""`find_label_issues(pred_probs=..., labels=...)`: ranks labels by the probabilities of your own model, without features."""

from collections.abc import Collection, Hashable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labelsieve.api.issue_table import IssueTable, identities
from labelsieve.api.labels import BadInput, numbered, plain, warn_of_order
from labelsieve.data.probabilities import shares
from labelsieve.errors import ToolError
from labelsieve.results.by_probabilities import issues_by_probabilities
from labelsieve.results.cautions import table_cautions


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
        cautions=table_cautions(wrong.share, wrong.low, wrong.high, counts),
    )


def checked_shares(probs: Any, rows: int, kinds: NDArray[Any]) -> NDArray[Any]:
    """(N, K), rows adding up to 1, or a `BadInput` that names the first bad one.

    A data frame whose columns are called as the classes is taken by their names.
    """
    if hasattr(probs, "columns") and set(probs.columns) == set(kinds.tolist()) and len(probs.columns) == len(kinds):
        probs = probs[kinds.tolist()]
    try:
        return shares(plain(probs), rows, len(kinds), "probs")
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
            f"labels: {outside[0]} is outside 0 to {values.shape[1] - 1}, which the columns of probs stand for; "
            "name the columns with classes="
        )
    return None if outside else list(range(values.shape[1]))
