"""What holds now of a sample on which somebody decided."""

from dataclasses import dataclass

from labelsieve.decisions.decision import Decision


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
