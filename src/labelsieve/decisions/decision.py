"""One decision of a person on one label, as an object and as a JSON line; and what holds now of a sample.

accept: the suggested label. keep: the given one. relabel: another one. drop: the sample goes. unsure: looked at and still in
doubt. clear: what was decided before is taken back.
"""

import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Any

from labelsieve.errors import ToolError, UsageError, suggest

ACCEPT, KEEP, RELABEL, DROP, UNSURE, CLEAR = ACTIONS = ("accept", "keep", "relabel", "drop", "unsure", "clear")
LABELLING = (ACCEPT, KEEP, RELABEL)  # these say which class it is
MOST = 2**53  # no seq is higher: a page reads it as a double

# (seq, key, id, action, label, who, replaces or 0): what the index keeps of a decision.
Row = tuple[int, str, str, str, str | None, str, int]


@dataclass(frozen=True, slots=True)
class Decision:
    """`label` is the resulting class for accept, keep and relabel, otherwise None. `seq` is 0 until the log gives a place.

    `key` is made by whoever sends the decision, and is unique: sent twice, it counts once. `when` is ISO 8601 in UTC. `score`
    is the label_score it had. `replaces` is the seq of the latest entry on this id that the reviewer had seen, or None.
    """

    key: str
    id: str
    action: str
    label: str | None
    who: str
    when: str
    score: float | None = None
    replaces: int | None = None
    seq: int = 0

    def __post_init__(self) -> None:
        if self.action not in ACTIONS:
            raise ToolError(f'{self.id}: unknown action "{self.action}"{suggest(self.action, ACTIONS)}; use {", ".join(ACTIONS)}')
        if not self.key or not self.id:
            raise ToolError("a decision needs a key and the id of a sample; one of them is empty")
        if (self.action in LABELLING) != bool(self.label):
            wanted = "needs a label" if self.action in LABELLING else "has no label"
            raise ToolError(f'{self.id}: "{self.action}" {wanted}, and here it is {self.label!r}; correct it')

    @property
    def outcome(self) -> tuple[str, str | None]:
        """What it comes to: two decisions with the same outcome agree, whichever key was pressed."""
        return ("label", self.label) if self.action in LABELLING else (self.action, None)

    @property
    def row(self) -> Row:
        return self.seq, self.key, self.id, self.action, self.label, self.who, self.replaces or 0

    def line(self) -> bytes:
        """One line of JSON in ASCII, so that every name survives, also one that is no proper Unicode."""
        known = self.score is not None and math.isfinite(self.score)
        facts = {name: getattr(self, name) for name in ORDER} | {"score": self.score if known else None}
        return json.dumps(facts, allow_nan=False).encode() + b"\n"


ORDER = ("seq", "key", "id", "action", "label", "who", "when", "score", "replaces")
TYPES: dict[str, tuple[type, ...]] = {
    "seq": (int,), "key": (str,), "id": (str,), "action": (str,), "label": (str, type(None)), "who": (str,), "when": (str,),
    "score": (float, int, type(None)), "replaces": (int, type(None)),
}  # fmt: skip
assert set(ORDER) == {field.name for field in fields(Decision)}


# A line as `Decision.line` writes it, without escapes: read this way in a third of the time that JSON takes.
_TEXT, _SOME, _COUNT = '"([ !#-\\[\\]-~]*)"', '"([ !#-\\[\\]-~]+)"', "([1-9][0-9]{0,14})"
USUAL = re.compile(
    f'{{"seq": {_COUNT}, "key": {_SOME}, "id": {_SOME}, "action": "(?:({"|".join(LABELLING)})", "label": {_SOME}|'
    f'({"|".join(action for action in ACTIONS if action not in LABELLING)})", "label": null), "who": {_TEXT}, "when": {_TEXT}, '
    f'"score": (?:null|(-?[0-9]+(?:\\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)), "replaces": (?:null|{_COUNT})}}\n'
)


def rows(text: str, place: str, first: int) -> Iterator[tuple[Row, int]]:
    """What the index keeps of each line, and where the line ends; `text` are whole lines as Latin-1, `first` is their number."""
    at, number = 0, first
    while at < len(text):
        usual = USUAL.match(text, at)
        if usual is not None:
            seq, key, name, labelling, label, other, who, _, _, seen = usual.groups()
            at = usual.end()
            yield (int(seq), key, name, labelling or other, label, who, int(seen) if seen else 0), at
        else:
            end = text.index("\n", at)
            yield parse(text[at:end].encode("latin-1"), f"{place}, line {number}").row, end + 1
            at = end + 1
        number += 1


def parse(line: bytes, place: str) -> Decision:
    """The decision in a line of the log; a `ToolError` that names the place where it is none."""
    try:
        return from_facts(json.loads(line), place)
    except (ValueError, RecursionError) as error:
        raise _none(place, error) from None


def from_facts(facts: Any, place: str) -> Decision:
    """The same of what was read from JSON already."""
    try:
        values = {name: facts[name] for name in ORDER}
        wrong = [name for name in ORDER if not isinstance(values[name], TYPES[name]) or isinstance(values[name], bool)]
        wrong += [name for name in ("seq", "replaces") if abs(values[name] or 0) > MOST]
        if wrong:
            raise ValueError(f"{wrong[0]} is {values[wrong[0]]!r}")
        return Decision(**values)
    except (ValueError, KeyError, TypeError, ToolError) as error:
        raise _none(place, error) from None


def _none(place: str, error: Exception) -> ToolError:
    return ToolError(f"{place}: not a decision ({error}); the file was changed by hand or damaged: put it back")


@dataclass(frozen=True)
class State:
    """`standing` are the decisions that nobody replaced, oldest first; `index.py` has the rule.

    `last` is the latest entry on the sample: its seq is what a new decision `replaces`. `over_taken_back`: more was taken back
    than had been said here, so a decision of an earlier round is taken back, too.
    """

    standing: tuple[Decision, ...]
    last: Decision
    over_taken_back: bool = False

    @property
    def current(self) -> Decision | None:
        """The decision that counts; None where all was taken back."""
        return self.standing[-1] if self.standing else None

    @property
    def conflict(self) -> bool:
        return len({entry.outcome for entry in self.standing}) > 1


REFUSE, LATEST, UNDECIDED = ON_CONFLICT = ("refuse", "latest", "undecided")
NAMED = 5  # conflicts that an error names


def settled(found: Mapping[str, State], on_conflict: str = REFUSE, place: str = "decisions") -> dict[str, Decision]:
    """{id: decision}. A conflict is refused, decided by the latest, or left as though nobody had said anything."""
    if on_conflict not in ON_CONFLICT:
        raise UsageError(f'--on-conflict "{on_conflict}"{suggest(on_conflict, ON_CONFLICT)}; use {", ".join(ON_CONFLICT)}')
    conflicts = {name: state for name, state in found.items() if state.conflict}
    if conflicts and on_conflict == REFUSE:
        lines = "".join(f"\n  {line}" for line in said(dict(list(conflicts.items())[:NAMED])))
        more = f"\n  and {len(conflicts) - NAMED} more" if len(conflicts) > NAMED else ""
        raise ToolError(
            f"{place}: reviewers disagree about {len(conflicts)} sample(s):{lines}{more}\n"
            f"decide them on the review page, or add --on-conflict latest (the later one counts) or undecided (nobody's does)"
        )
    left = {name: state for name, state in found.items() if name not in conflicts or on_conflict == LATEST}
    return {name: state.current for name, state in left.items() if state.current is not None}


def said(conflicts: Mapping[str, State]) -> Iterator[str]:
    """A line for each: `img_7.png: ada says relabel "dog", bob says drop`."""
    for name, state in conflicts.items():
        words = [f"{one.who} says {one.action}" + (f' "{one.label}"' if one.label else "") for one in state.standing]
        yield f"{name}: {', '.join(words)}"
