"""Picks the rows that a reviewer asked to see, most suspicious first."""

from dataclasses import dataclass

import numpy as np

from labelsieve.errors import UsageError, suggest
from labelsieve.review.map import inside
from labelsieve.review.table import OWN_KINDS, IssueTable
from labelsieve.review.texts import folded

OPEN, CONFLICT, DECIDED, ANY = "open", "conflict", "decided", "any"
# The code of a state is its place here; the rest of the names are groups of them.
STATES = (OPEN, "accept", "keep", "relabel", "drop", "unsure")
CHOICES = (*STATES, CONFLICT, DECIDED, ANY)
ODD = "odd"  # samples with any issue of their own


@dataclass(frozen=True)
class Filter:
    """Empty texts do not filter. `everything` shows rows that are not listed as issues, too.

    `own` lists samples that are odd themselves in place of label issues, of one kind or any; `area` is a piece of the map.
    """

    given: str = ""
    suggested: str = ""
    state: str = OPEN
    text: str = ""
    everything: bool = False
    own: str = ""
    area: str = ""


def chosen(table: IssueTable, asked: Filter, state: np.ndarray, conflict: np.ndarray) -> np.ndarray:
    """(M,) rows: `state` (N,) are codes of STATES, `conflict` (N,) bool."""
    keep = _listed(table, asked)
    for name, codes in ((asked.given, table.given), (asked.suggested, table.suggested)):
        if name:
            keep &= codes == _class(table, name)
    if asked.state == CONFLICT:
        keep &= conflict
    elif asked.state == DECIDED:
        keep &= state > 0
    elif asked.state != ANY:
        keep &= state == _state(asked.state)
    if asked.text.strip():
        keep &= _matching(table, asked.text.strip())
    if asked.area:
        keep &= inside(np.zeros((len(table), 2), np.float32) - 1 if table.at is None else table.at, asked.area)
    return np.flatnonzero(keep).astype(np.int32)


def _listed(table: IssueTable, asked: Filter) -> np.ndarray:
    if asked.own == ODD:
        return table.own > 0
    if asked.own:
        if asked.own not in OWN_KINDS:
            name = asked.own[:80]
            raise UsageError(
                f'"{name}" is no kind of sample issue{suggest(name, OWN_KINDS)}; use one of {", ".join(OWN_KINDS[1:])}'
            )
        return table.own == OWN_KINDS.index(asked.own)
    return np.ones(len(table), bool) if asked.everything else table.is_issue.copy()


def _class(table: IssueTable, name: str) -> int:
    if name not in table.classes:
        raise UsageError(f'"{name[:80]}" is not one of {len(table.classes)} classes{suggest(name[:80], table.classes)}')
    return table.classes.index(name)


def _state(name: str) -> int:
    if name not in STATES:
        raise UsageError(f'"{name[:80]}" is no state{suggest(name[:80], CHOICES)}; use one of {", ".join(CHOICES)}')
    return STATES.index(name)


def _matching(table: IssueTable, text: str) -> np.ndarray:
    """(N,) bool: the text is in the id, the path or the name of one of both classes."""
    named = np.array([folded(text) in folded(name) for name in table.classes])
    found = table.ids.containing(text) | table.paths.containing(text)
    return np.asarray(found | named[table.given] | named[table.suggested])
