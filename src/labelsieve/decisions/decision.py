"""One decision of a person on one label: it goes in as an object, a JSON line comes out, and the other way round.

accept: the suggested label. keep: the given one. relabel: another one. drop: the sample goes. unsure: looked at and still in
doubt. clear: what was decided before is taken back.
"""

import json
import math
from dataclasses import dataclass, fields
from typing import Any

from labelsieve.errors import ToolError, suggest

ACCEPT, KEEP, RELABEL, DROP, UNSURE, CLEAR = ACTIONS = ("accept", "keep", "relabel", "drop", "unsure", "clear")
LABELLING = (ACCEPT, KEEP, RELABEL)  # these say which class it is


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
        if wrong:
            raise ValueError(f"{wrong[0]} is {values[wrong[0]]!r}")
        return Decision(**values)
    except (ValueError, KeyError, TypeError, ToolError) as error:
        raise _none(place, error) from None


def _none(place: str, error: Exception) -> ToolError:
    return ToolError(f"{place}: not a decision ({error}); the file was changed by hand or damaged: put it back")
