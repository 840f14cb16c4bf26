"""Decides what becomes of each label: one `Change` per row, from issues.csv and people's decisions.

A label changes only where a decision says so: a person's, or one of the corrections that a run vouches for
(`corrected/apply.py`). Needs no torch.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from labelsieve.decisions.incoming import read_rows
from labelsieve.errors import ToolError, suggest
from labelsieve.issues.rules import ACTIONS, DROP, KEEP, RELABEL, REVIEW
from labelsieve.issues.table import Columns

PAGE = {"accept": RELABEL, "unsure": REVIEW}  # what the review page calls them


@dataclass(frozen=True)
class Correction:
    """What is to be done about one sample; `label` is None where the suggested one is meant."""

    action: str
    label: str | None
    why: str = "decided by a person"


@dataclass(frozen=True)
class Change:
    """`new` is None for a dropped sample, and `old` for one that stays."""

    id: str
    old: str
    new: str | None
    action: str
    why: str


def changes_of(columns: Columns, classes: Sequence[str], decisions: Mapping[str, Correction]) -> list[Change]:
    """One for each row of the columns; rows without a decision stay as they are."""
    _check_ids(decisions, columns["id"])
    found, known = [], set(classes)
    for row, (name, old) in enumerate(zip(columns["id"], columns["given_label"])):
        said = decisions.get(name, Correction(KEEP, None, columns["reason"][row]))
        _check_kept(name, said, old)
        suggested = said.label or columns["suggested_label"][row]
        new = suggested if said.action == RELABEL else None if said.action == DROP else old
        if new is not None and new not in known:
            raise ToolError(f'{name}: label "{new}" is not one of {len(classes)} classes{suggest(new, classes)}; correct it')
        found.append(Change(name, old, new, KEEP if new == old else said.action, said.why))
    return found


def _check_ids(decided: Mapping[str, Correction], ids: Sequence[str]) -> None:
    known = set(ids)
    for name in decided:
        if name not in known:
            raise ToolError(
                f'decisions: there is no sample "{name}" in this run{suggest(name, known)}; correct or remove the row'
            )


def _check_kept(name: str, said: Correction, given: str) -> None:
    if said.action == KEEP and said.label not in (None, given):
        raise ToolError(
            f'decisions: {name}: keep means the given label "{given}", and the row says "{said.label}"; write relabel'
        )


def read_decisions(path: Path) -> dict[str, Correction]:
    """{id: decision} of a CSV with the columns id, action and (for relabel; empty means the suggested one) label.

    The review page's words are taken, too: accept is relabel, unsure is review. A label without an action is relabel; rows that
    decide nothing are passed over.
    """
    found: dict[str, Correction] = {}
    for number, row in enumerate(read_rows(path), 1):
        name, action, label = row["id"], row["action"].strip().lower(), row.get("label") or None
        if not action and label is None:
            continue
        action = PAGE.get(action, action) or RELABEL
        if action not in ACTIONS:
            raise ToolError(
                f'{path}: row {number}: unknown action "{row["action"]}"{suggest(action, ACTIONS)}; write {", ".join(ACTIONS)}'
            )
        decision = Correction(action, label)
        if found.setdefault(name, decision) != decision:
            raise ToolError(f'{path}: row {number}: "{name}" was decided otherwise above; keep one decision for each id')
    return found
