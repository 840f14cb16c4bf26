"""What holds now, with one reviewer and with two."""

import pytest

from decisions.made import decision
from labelsieve.decisions.decision import Decision
from labelsieve.decisions.state import State, states
from labelsieve.errors import ToolError


def state_of(*told: tuple[str, str, str, int | None]) -> State:
    """(who, action, label, replaces) each, on one sample, in this order."""
    log = [
        decision(str(n), "a", action, label, who=who, replaces=seen, seq=n)
        for n, (who, action, label, seen) in enumerate(told, 1)
    ]
    return states(log)["a"]


def test_the_last_one_counts_and_the_earlier_ones_are_kept() -> None:
    state = state_of(("ada", "keep", "cat", None), ("ada", "relabel", "dog", 1))
    assert state.current is state.history[1] is state.last and state.earlier == state.history[:1] and not state.conflict


def test_clear_takes_back_and_can_be_decided_again() -> None:
    state = state_of(("ada", "keep", "cat", None), ("ada", "clear", "", 1))
    assert state.current is None and len(state.history) == 2 and state.last.seq == 2 and not state.conflict
    again = state_of(("ada", "keep", "cat", None), ("ada", "clear", "", 1), ("bob", "drop", "", 2))
    assert again.current is again.last and not again.conflict


@pytest.mark.parametrize(
    ("told", "conflict"),
    [
        ([("ada", "keep", "cat", None), ("bob", "relabel", "dog", 1)], False),  # bob saw it
        ([("ada", "keep", "cat", None), ("bob", "relabel", "dog", None)], True),  # he did not
        ([("ada", "accept", "dog", None), ("bob", "relabel", "dog", None)], False),  # by other keys to the same
        ([("ada", "keep", "cat", None), ("bob", "unsure", "", None)], True),
        ([("ada", "keep", "cat", None), ("bob", "drop", "", None), ("ada", "keep", "cat", 1)], True),  # ada has not seen bob's
        ([("ada", "keep", "cat", None), ("bob", "drop", "", None), ("ada", "drop", "", 1)], False),  # and comes to agree
        ([("ada", "keep", "cat", None), ("bob", "drop", "", None), ("eve", "keep", "cat", 2)], False),  # eve saw both
        ([("ada", "keep", "cat", None), ("bob", "drop", "", None), ("eve", "keep", "cat", 1)], True),  # eve saw one
        ([("ada", "keep", "cat", None), ("bob", "drop", "", None), ("bob", "clear", "", 2)], False),
        ([("ada", "keep", "cat", None), ("ada", "drop", "", None)], False),  # one reviewer with two windows
    ],
)
def test_a_conflict_is_what_was_said_without_having_seen_something_else(
    told: list[tuple[str, str, str, int | None]], conflict: bool
) -> None:
    assert state_of(*told).conflict is conflict


def test_taking_back_ones_own_leaves_what_another_said_unseen() -> None:
    state = state_of(("bob", "drop", "", None), ("ada", "keep", "cat", None), ("bob", "clear", "", 1))
    assert state.current is state.history[1] and not state.conflict


def test_samples_are_apart() -> None:
    found = states([decision("1", "a", seq=1), decision("2", "b", "drop", who="bob", seq=2)])
    assert set(found) == {"a", "b"} and not any(state.conflict for state in found.values())


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"action": "kepe"}, 'unknown action "kepe".*did you mean "keep"'),
        ({"label": None}, "needs a label"),
        ({"action": "drop"}, "has no label"),
        ({"key": ""}, "needs a key"),
    ],
)
def test_what_is_no_decision_is_refused(changes: dict[str, str | None], message: str) -> None:
    whole = {"key": "1", "id": "a", "action": "keep", "label": "cat", "who": "ada", "when": "now"} | changes
    with pytest.raises(ToolError, match=message):
        Decision(**whole)  # type: ignore[arg-type]
