"""Decisions as a table: what stands goes out as a CSV, and comes back from one that a person may have written or changed."""

from collections.abc import Mapping
from pathlib import Path

from labelsieve.cells import inert
from labelsieve.decisions.incoming import Incoming, Sample
from labelsieve.decisions.rows import read_rows
from labelsieve.decisions.state import State
from labelsieve.issues.delimited import as_csv

COLUMNS = ("id", "action", "label", "given_label", "suggested_label", "label_score", "who", "when", "conflict", "key")


def decisions_csv(found: Mapping[str, State], samples: Mapping[str, Sample]) -> str:
    """A row for each decision that stands: one per sample, more where reviewers disagree (`conflict` is True there).

    Logs of older versions may be signed with a formula.
    """
    rows = []
    for name, state in found.items():
        sample = samples.get(name, Sample("", "", float("nan")))
        for one in state.standing:
            score = "" if one.score is None else f"{one.score:.6f}"
            first = (one.id, one.action, one.label or "", sample.given, sample.suggested, score)
            rows.append((*first, inert(one.who), inert(one.when), str(state.conflict), inert(one.key)))
    return as_csv(COLUMNS, rows)


def read_table(path: Path, who: str, when: str) -> list[Incoming]:
    """The rows of a CSV with the columns id and action, and if they are there label, who, when and key.

    `who` and `when` are taken where the row has none. A cell may be empty; rows that decide nothing are passed over.
    """
    found = []
    for number, row in enumerate(read_rows(path), 1):
        action, label = row["action"].strip().lower(), row.get("label") or None
        if action or label:
            said = {"who": row.get("who") or who, "when": row.get("when") or when, "key": row.get("key") or ""}
            found.append(Incoming(f"row {number}", row["id"] or "", action, label, **said))
    return found
