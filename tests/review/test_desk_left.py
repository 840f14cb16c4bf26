"""What the page says is left: only rows that the run itself doubts and nobody has settled speak for it."""

from pathlib import Path

import pytest

from labelsieve.decisions.log import DecisionLog
from labelsieve.issues.rules import AMBIGUOUS, FINE, KINDS
from labelsieve.review.desk import STATES, Desk
from labelsieve.review.table import ReviewTable, read_table
from review.made import made_run


@pytest.fixture
def table(tmp_path: Path) -> ReviewTable:
    return read_table(made_run(tmp_path / "run", count=400), None)


def test_rows_that_the_run_excuses_are_not_expected_to_be_wrong(table: ReviewTable, tmp_path: Path) -> None:
    """Where networks err more often than labels do, only so many are listed; the others are contradicted, too, and still fine."""
    before = Desk(table, DecisionLog(tmp_path / "run")).left()
    others = ~table.is_issue
    assert (table.kind[others] == KINDS.index(FINE)).all()
    table.suggested[others] = (table.given[others] + 1) % len(table.classes)
    table.score[others] = 0.02
    assert Desk(table, DecisionLog(tmp_path / "run")).left() == before


def test_suggestions_that_people_took_are_counted(table: ReviewTable, tmp_path: Path) -> None:
    mine = Desk(table, DecisionLog(tmp_path / "run"))
    assert mine.suggestions() == (0, 0) and mine.answers() == 0
    other = (table.suggested != table.given).nonzero()[0]
    mine.state[other[:5]], mine.state[other[5:7]] = STATES.index("accept"), STATES.index("keep")
    mine.state[other[7]] = STATES.index("unsure")
    assert mine.suggestions() == (7, 5) and mine.answers() == 7


def test_settled_rows_are_neither_left_nor_evidence(tmp_path: Path) -> None:
    """Half of the doubtful ones outside the list were put right in an earlier round: the other half is as doubtful as before."""
    table = read_table(made_run(tmp_path / "run", count=4000), None)
    others = ~table.is_issue
    table.suggested[others] = (table.given[others] + 1) % len(table.classes)
    table.kind[others], table.score[others] = KINDS.index(AMBIGUOUS), 0.7
    table.score[-1000:], table.settled[-1000:] = 1.0, True
    mine = Desk(table, DecisionLog(tmp_path / "run"))
    mine.state[:2000] = STATES.index("keep")  # all issues are decided: what is left is outside the list
    found = mine.left()
    assert 0.3 * 1000 * 0.9 < found.expected < 0.3 * 1000 * 1.2
