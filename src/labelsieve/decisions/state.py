"""What holds now: a log of decisions goes in, the state of each sample that was ever decided on comes out.

A reviewer who saw entry r of a sample saw all before it. An entry therefore takes the place of what its reviewer had seen
(seq up to `replaces`) and of the reviewer's own earlier ones. What is left stands; where more than one stands and they come to
different things, that is a conflict, until someone who saw them all decides. The latest one counts meanwhile.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from labelsieve.decisions.decision import CLEAR, Decision


@dataclass(frozen=True)
class State:
    """`current` is None where all was taken back. `standing` are the decisions that disagree, in a conflict.

    `history` are all entries on this sample, oldest first: the last one's seq is what a new decision `replaces`.
    """

    current: Decision | None
    history: tuple[Decision, ...]
    standing: tuple[Decision, ...]

    @property
    def earlier(self) -> tuple[Decision, ...]:
        """Every entry but the current one, oldest first."""
        return tuple(entry for entry in self.history if entry is not self.current)

    @property
    def last(self) -> Decision:
        return self.history[-1]

    @property
    def conflict(self) -> bool:
        return len({entry.outcome for entry in self.standing}) > 1


def states(decisions: Iterable[Decision]) -> dict[str, State]:
    """{id: state}, by first decision. Entries are taken in the order given, which is the log's."""
    found: dict[str, State] = {}
    for entry in decisions:
        found[entry.id] = after(found.get(entry.id), entry)
    return found


def after(state: State | None, entry: Decision) -> State:
    """The state once `entry` is added; for those who follow a log as it grows."""
    history, before = ((), ()) if state is None else (state.history, state.standing)
    seen = entry.replaces or 0
    standing = tuple(one for one in before if one.seq > seen and one.who != entry.who)
    if entry.action != CLEAR:  # taking back is no opinion: what others said and were not seen saying stands
        standing = (*standing, entry)
    return State(standing[-1] if standing else None, (*history, entry), standing)
