"""Checks decisions that a page sends and turns them into entries for the log; a `UsageError` says what is wrong."""

from datetime import UTC, datetime

from pydantic import BaseModel, ConfigDict, Field

from labelsieve.decisions.decision import ACCEPT, KEEP, RELABEL, Decision
from labelsieve.decisions.signature import flaws
from labelsieve.errors import UsageError
from labelsieve.review.table import IssueTable

MOST = 5000  # decisions in one request


class Said(BaseModel):
    """One decision. `key` is made by the page and unique; `replaces` is the seq of the latest one it had seen on this id."""

    model_config = ConfigDict(extra="forbid", strict=True)
    key: str = Field(pattern=r"^[A-Za-z0-9_-]{8,64}$")
    id: str = Field(min_length=1, max_length=4096)
    action: str = Field(pattern=r"^(accept|keep|relabel|drop|unsure|clear)$")
    label: str | None = Field(default=None, max_length=4096)
    who: str = Field(min_length=1, max_length=80)
    replaces: int | None = Field(default=None, ge=1, le=2**53)


class Sent(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)
    decisions: list[Said] = Field(min_length=1, max_length=MOST)


def entries(sent: Sent, table: IssueTable) -> list[Decision]:
    now = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return [_entry(said, table, now) for said in sent.decisions]


def _entry(said: Said, table: IssueTable, now: str) -> Decision:
    row = table.row_of.get(said.id)
    if row is None:
        raise UsageError("there is no such sample in this run")
    if wrong := flaws(who=said.who, key=said.key):
        raise UsageError(f"{wrong[0]} (your name is at the top of the page)")
    label = None
    if said.action == RELABEL:
        if said.label not in table.classes:
            raise UsageError(f"the new label is not one of {len(table.classes)} classes")
        label = said.label
    elif said.action in (ACCEPT, KEEP):
        label = table.classes[(table.suggested if said.action == ACCEPT else table.given)[row]]
    return Decision(
        said.key, said.id, said.action, label, said.who.strip(), now, round(float(table.score[row]), 6), said.replaces
    )
