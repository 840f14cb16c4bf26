"""What holds now of a sample on which somebody decided."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from labelsieve.decisions.decision import Decision
from labelsieve.errors import ToolError, UsageError, suggest


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
