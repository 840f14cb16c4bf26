"""What becomes of each label: issues.csv and a policy or a person's decisions go in, one `Verdict` a row comes out.

Without thresholds and decisions, the column `action` is followed: relabel and drop are done, review and keep change nothing.
With thresholds: an issue whose suggested_confidence is above `relabel_above` gets the suggested label; of the rest, a row whose
label_score is below `drop_below` is dropped; all others stay. A decision always comes before the policy; beside decisions,
what is undecided stays unless thresholds are given or it is said to follow the column. Needs no torch.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from labelsieve.decisions.rows import read_rows
from labelsieve.errors import ToolError, UsageError, suggest
from labelsieve.issues.reading import Columns
from labelsieve.issues.rules import ACTIONS, DROP, KEEP, RELABEL, REVIEW

PAGE = {"accept": RELABEL, "unsure": REVIEW}  # what the review page calls them


@dataclass(frozen=True)
class Policy:
    """Thresholds in [0, 1], or None where a step is left out; both None: follow the column `action`."""

    relabel_above: float | None = None
    drop_below: float | None = None

    def __post_init__(self) -> None:
        for name, value in (("--relabel-above", self.relabel_above), ("--drop-below", self.drop_below)):
            if value is not None and not 0 <= value <= 1:
                raise UsageError(f"{name} {value:g} is not between 0 and 1; it is a share, such as 0.9")


@dataclass(frozen=True)
class Decision:
    """What a person said about one sample; `label` is None where the suggested one is meant."""

    action: str
    label: str | None
    why: str = "decided by a person"


@dataclass(frozen=True)
class Verdict:
    """`new` is None for a dropped sample, and `old` for one that stays."""

    id: str
    old: str
    new: str | None
    action: str
    why: str


def verdicts(
    columns: Columns,
    classes: Sequence[str],
    policy: Policy,
    decisions: Mapping[str, Decision] | None = None,
    follow: bool | None = None,
) -> list[Verdict]:
    """One for each row of the columns. `follow` says whether the column `action` counts for rows without a decision.

    By default it counts where there are no decisions at all; with decisions and no thresholds, the other rows stay.
    """
    decided = decisions or {}
    _check_ids(decided, columns["id"])
    follow = decisions is None if follow is None else follow
    found, known = [], set(classes)
    for row, name in enumerate(columns["id"]):
        if name in decided:
            _check_kept(name, decided[name], columns["given_label"][row])
            action, label, why = decided[name].action, decided[name].label, decided[name].why
        else:
            action, why = _by_policy(columns, row, policy, follow)
            label = None
        old = columns["given_label"][row]
        new = (label or columns["suggested_label"][row]) if action == RELABEL else None if action == DROP else old
        if new is not None and new not in known:
            raise ToolError(f'{name}: label "{new}" is not one of {len(classes)} classes{suggest(new, classes)}; correct it')
        found.append(Verdict(name, old, new, KEEP if new == old else action, why))
    return found


def _by_policy(columns: Columns, row: int, policy: Policy, follow: bool) -> tuple[str, str]:
    if policy.relabel_above is None and policy.drop_below is None:
        action = columns["action"][row] if follow else KEEP
        if action not in ACTIONS:
            raise ToolError(f'issues.csv: {columns["id"][row]}: unknown action "{action}"{suggest(action, ACTIONS)}; put it back')
        return action, columns["reason"][row]
    confidence, score = columns["suggested_confidence"][row], columns["label_score"][row]
    if policy.relabel_above is not None and columns["is_label_issue"][row] and confidence > policy.relabel_above:
        return RELABEL, f"suggested with confidence {confidence:.3f}, above {policy.relabel_above:g}. {columns['reason'][row]}"
    if policy.drop_below is not None and score < policy.drop_below:
        return DROP, f"label score {score:.3f}, below {policy.drop_below:g}. {columns['reason'][row]}"
    return KEEP, columns["reason"][row]


def _check_ids(decided: Mapping[str, Decision], ids: Sequence[str]) -> None:
    known = set(ids)
    for name in decided:
        if name not in known:
            raise ToolError(
                f'decisions: there is no sample "{name}" in this run{suggest(name, known)}; correct or remove the row'
            )


def _check_kept(name: str, said: Decision, given: str) -> None:
    if said.action == KEEP and said.label not in (None, given):
        raise ToolError(
            f'decisions: {name}: keep means the given label "{given}", and the row says "{said.label}"; write relabel'
        )


def read_decisions(path: Path) -> dict[str, Decision]:
    """{id: decision} of a CSV with the columns id, action and (for relabel; empty means the suggested one) label.

    The review page's words are taken, too: accept is relabel, unsure is review. A label without an action is relabel; rows that
    decide nothing are passed over.
    """
    found: dict[str, Decision] = {}
    for number, row in enumerate(read_rows(path), 1):
        name, action, label = row["id"], row["action"].strip().lower(), row.get("label") or None
        if not action and label is None:
            continue
        action = PAGE.get(action, action) or RELABEL
        if action not in ACTIONS:
            raise ToolError(
                f'{path}: row {number}: unknown action "{row["action"]}"{suggest(action, ACTIONS)}; write {", ".join(ACTIONS)}'
            )
        decision = Decision(action, label)
        if found.setdefault(name, decision) != decision:
            raise ToolError(f'{path}: row {number}: "{name}" was decided otherwise above; keep one decision for each id')
    return found
