"""The corrections that a run vouches for by itself: `apply --auto` takes these and no others."""

from labelsieve.errors import ToolError, command
from labelsieve.issues.policy import Decision
from labelsieve.issues.rules import RELABEL
from labelsieve.results.cautions import cautions
from labelsieve.runs.findings import Findings, read_record
from labelsieve.runs.folder import RunFolder

# Measured (RESULTS.md): where the estimate promised so much, 77 % or more were right and no set ended with fewer right labels.
VOUCHED = 0.6


def automatic(folder: RunFolder, found: Findings) -> dict[str, Decision]:
    """{id: decision} by what the run found; a `ToolError` where it does not vouch for its suggestions."""
    standing = cautions(found, read_record(folder))
    if standing:
        raise ToolError(
            f"{folder.path}: --auto is refused while a caution stands: {standing[0]} What people decided needs no --auto: "
            f"check the labels with {command('review', folder.path)}, then apply without it"
        )
    taken = sure_corrections(found)
    right = least_right(found)
    if taken and right < VOUCHED:
        raise ToolError(
            f"{folder.path}: --auto is refused: as few as {100 * right:.0f} % of its {len(taken):,} corrections may be right; "
            f"{100 * VOUCHED:.0f} % is the least. Check the labels with {command('review', folder.path)}, then apply without it"
        )
    return taken


def least_right(found: Findings) -> float:
    """Of the sure corrections, the share of labels that are wrong at least, by the opinion that finds fewest."""
    columns = zip(found.columns["action"], found.columns["is_label_issue"])
    rows = found.order[[place for place, (action, issue) in enumerate(columns) if issue and action == RELABEL]]
    return float(found.chances.opinions[:, rows].mean(1).min()) if len(rows) else 1.0


def sure_corrections(found: Findings) -> dict[str, Decision]:
    """Issues with the action relabel. Nothing is dropped: what looks like none of the classes may be labelled right."""
    columns = found.columns
    names = ("id", "action", "is_label_issue", "suggested_label", "reason")
    return {
        name: Decision(RELABEL, suggested, f"corrected by the run. {why}")
        for name, action, issue, suggested, why in zip(*(columns[column] for column in names))
        if issue and action == RELABEL
    }
