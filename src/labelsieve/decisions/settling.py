"""Which one decision counts for each sample; what happens to conflicts is up to the caller."""

from collections.abc import Iterator, Mapping

from labelsieve.decisions.decision import Decision
from labelsieve.decisions.state import State
from labelsieve.errors import ToolError, UsageError, suggest

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
