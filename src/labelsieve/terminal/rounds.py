"""The table of rounds, as the terminal shows it: one line a round of review and training."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.table import Table

from labelsieve.issues.estimate import BY_THE_RUN
from labelsieve.terminal.console import console

if TYPE_CHECKING:
    from labelsieve.runs.rounds import RoundFacts


def say_rounds(found: "Sequence[RoundFacts]") -> None:
    """What is not measured in any round has no column."""
    from labelsieve.runs.rounds import table_of

    header, rows = table_of(found)
    table = Table(title="rounds", title_justify="left")
    for name in header:
        table.add_column(name, justify="right")
    for row in rows:
        table.add_row(*row)
    console.print(table)
    console.print(BY_THE_RUN)
