"""Reads a table of decisions, and turns its rows into entries for the log, or lists every problem.

What is already so is not said again, so importing the same file twice changes nothing the second time.
"""

import csv
import hashlib
import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from labelsieve.decisions.decision import ACCEPT, ACTIONS, CLEAR, DROP, KEEP, LABELLING, RELABEL, UNSURE, Decision, State
from labelsieve.doors import Damage, lines, reading
from labelsieve.errors import ToolError, suggest
from labelsieve.texts import computed

LONGEST = {"who": 80, "when": 64, "key": 128}  # characters
MEANT = {"who": "the reviewer's name", "when": "the time", "key": "the key"}
NAMED = 10  # problems that an error names
NEAR = 20_000  # ids that are compared for a suggestion; more would take seconds
ALSO = {"review": UNSURE}  # the word of issues.csv for what is in doubt


def flaws(**signature: str) -> list[str]:
    """What is wrong with `who`, `when` and `key`, a sentence each. `decisions --to csv` hands all three on as cells."""
    return [f"{MEANT[name]} {flaw}" for name, text in signature.items() if (flaw := _flaw(text, LONGEST[name]))]


def _flaw(text: str, longest: int) -> str:
    if not text.strip():
        return "is empty; give one"
    if len(text) > longest:
        return f"has {len(text):,} characters; use {longest} at most"
    if not text.isprintable():
        return "must be printable text on one line"
    if computed(text.strip()):
        return "must not begin with =, +, - or @, as formulas do; change it"
    return ""


def read_rows(path: Path) -> list[dict[str, str]]:
    """With the columns id and action at least; a cell that is missing at a row's end is empty.

    Fields are parted by whichever of comma, semicolon and tab the first line has most of, as in a manifest.
    """
    with reading(path, "name a CSV of decisions in UTF-8, with the columns id, action and label"):
        found = lines(path, follow=True)
        first = next(found, "")
        reader = csv.DictReader(chain((first,), found), restval="", delimiter=max(",;\t", key=first.count))
        missing = [name for name in ("id", "action") if name not in (reader.fieldnames or ())]
        if missing:
            raise Damage(f'the column "{missing[0]}" is missing')
        return list(reader)


@dataclass(frozen=True)
class Sample:
    """What the run said of a sample."""

    given: str
    suggested: str
    score: float


@dataclass(frozen=True)
class Incoming:
    """A row as it was read; `place` names it in errors. `action` is empty where only a label was chosen.

    `key` tells the row from all others for good; it is empty where the source has none.
    """

    place: str
    id: str
    action: str
    label: str | None
    who: str
    when: str
    key: str = ""

    @property
    def outcome(self) -> tuple[str, str | None]:
        return ("label", self.label) if self.action in LABELLING else (self.action, None)


def entries(
    rows: Sequence[Incoming],
    samples: Mapping[str, Sample],
    classes: Sequence[str],
    known: Mapping[str, Decision],
    now: Mapping[str, State],
    place: str,
    carried: Collection[str] = (),
    dropped: Mapping[str, str] | None = None,
) -> list[Decision]:
    """What is new in the rows, for the log; a `ToolError` with every problem where any row has one.

    `known` are the log's entries by key, `now` what holds, both at least of what the rows name. `carried` are ids that were
    decided in earlier rounds, which the log does not tell of; {id: run} of those `dropped` there, which are no samples of this
    run any more.
    """
    told, problems = _checked(rows, samples, classes, dropped or {})
    problems += _contradictions(told)
    if problems:
        more = [f"and {len(problems) - NAMED} more"] if len(problems) > NAMED else []
        lines = "".join(f"\n  {line}" for line in [*problems[:NAMED], *more])
        raise ToolError(f"{place}: {len(problems)} problem(s), so nothing was brought in:{lines}")
    by_key, found = dict(known), []
    for row in told:
        entry = _entry(row, samples[row.id], by_key, now.get(row.id), row.id in carried)
        if entry is not None:
            found.append(entry)
            by_key[entry.key] = entry  # two rows of one file may claim one key, too
    return found


def _checked(
    rows: Sequence[Incoming], samples: Mapping[str, Sample], classes: Sequence[str], dropped: Mapping[str, str]
) -> tuple[list[Incoming], list[str]]:
    """The rows with action and label filled in, and a line for each that is wrong; what is dropped already needs neither."""
    told: list[Incoming] = []
    problems: list[str] = []
    near, number = list(samples)[:NEAR], set(classes)
    for row in rows:
        if row.id in dropped:
            problems += [f"{row.place}: {is_dropped(row.id, dropped[row.id])}"] if row.action != DROP else []
            continue
        if row.id not in samples:
            like = suggest(row.id, near) if len(problems) < NAMED else ""
            problems.append(f'{row.place}: there is no sample "{row.id}" in this run{like}')
            continue
        try:
            told.append(_filled(row, samples[row.id], number))
        except ValueError as error:
            problems.append(f"{row.place}: {error}")
    return told, problems


def is_dropped(name: str, run: str) -> str:
    """What to say of a decision on a sample that an earlier round's `run` dropped."""
    return f'"{name}" was dropped in an earlier round, and this run has it no more; decide on it in {run}, and go on from there'


def _filled(row: Incoming, sample: Sample, classes: set[str]) -> Incoming:
    if wrong := flaws(who=row.who, when=row.when, **({"key": row.key} if row.key else {})):
        raise ValueError(wrong[0])
    action, label = ALSO.get(row.action, row.action), row.label or None
    if not action:  # a label alone
        action = KEEP if label == sample.given else ACCEPT if label == sample.suggested else RELABEL
    if action not in ACTIONS:
        raise ValueError(f'unknown action "{row.action}"{suggest(action, ACTIONS)}; write {", ".join(ACTIONS)}')
    if label is not None and label not in classes:
        raise ValueError(f'label "{label}" is not one of {len(classes)} classes{suggest(label, sorted(classes))}')
    if action not in LABELLING:
        return Incoming(row.place, row.id, action, None, row.who, row.when, row.key)
    meant = sample.given if action == KEEP else sample.suggested
    if action in (KEEP, ACCEPT) and label not in (None, meant):
        which = "given" if action == KEEP else "suggested"
        raise ValueError(f'{action} means the {which} label "{meant}", and the row says "{label}"; write relabel')
    return Incoming(row.place, row.id, action, label or meant, row.who, row.when, row.key)


def _contradictions(told: Sequence[Incoming]) -> list[str]:
    """Rows of one person on one sample that come to different things."""
    first: dict[tuple[str, str], Incoming] = {}
    problems = []
    for row in told:
        before = first.setdefault((row.id, row.who), row)
        if before.outcome != row.outcome:
            problems.append(f'{row.place}: "{row.id}" was decided otherwise by {row.who} in {before.place}; keep one')
    return problems


def _entry(row: Incoming, sample: Sample, by_key: Mapping[str, Decision], state: State | None, carried: bool) -> Decision | None:
    """None where the log says so already: by the row's own key, or because it stands."""
    same = by_key.get(row.key)
    if same is not None and (same.id, same.outcome) == (row.id, row.outcome):
        return None
    standing = () if state is None else state.standing
    # What an earlier round decided is taken back by a first entry that says so; a second would be the same file again.
    if row.action == CLEAR and not standing and (state is not None or not carried):
        return None
    if row.outcome in {one.outcome for one in standing}:
        return None
    seen = None if state is None else state.last.seq
    key = row.key
    if not key or same is not None:  # no key of its own, or one that was edited since: it is new in the light of what stands
        content = json.dumps([row.key, row.id, row.outcome, row.who, seen])
        key = f"import-{hashlib.sha256(content.encode()).hexdigest()[:32]}"
    return Decision(key, row.id, row.action, row.label, row.who, row.when, sample.score, seen)
