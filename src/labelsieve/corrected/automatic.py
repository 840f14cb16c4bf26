"""The corrections that a run vouches for by itself: `apply --auto` takes these and no others."""

from labelsieve.errors import ToolError, command
from labelsieve.issues.policy import Decision
from labelsieve.issues.rules import RELABEL
from labelsieve.results.cautions import cautions
from labelsieve.runs.findings import Findings, read_findings, read_record
from labelsieve.runs.folder import RunFolder


def automatic(folder: RunFolder) -> dict[str, Decision]:
    """{id: decision}; a `ToolError` where the run does not vouch for its suggestions."""
    found = read_findings(folder)
    standing = cautions(found, read_record(folder))
    if standing:
        raise ToolError(
            f"{folder.path}: --auto is refused while a caution stands: {standing[0]} What people decided needs no --auto: "
            f"check the labels with {command('review', folder.path)}, then apply without it"
        )
    return sure_corrections(found)


def sure_corrections(found: Findings) -> dict[str, Decision]:
    """Issues with the action relabel. Nothing is dropped: what looks like none of the classes may be labelled right."""
    columns = found.columns
    names = ("id", "action", "is_label_issue", "suggested_label", "reason")
    return {
        name: Decision(RELABEL, suggested, f"corrected by the run. {why}")
        for name, action, issue, suggested, why in zip(*(columns[column] for column in names))
        if issue and action == RELABEL
    }
