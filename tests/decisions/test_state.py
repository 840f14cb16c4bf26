"""What holds now, with one reviewer and with several."""

import random
from collections.abc import Callable
from pathlib import Path

import pytest

from decisions.made import decision
from labelsieve.decisions.decision import ACTIONS, CLEAR, LABELLING, Decision, State
from labelsieve.decisions.index import NONE, Index
from labelsieve.decisions.log import NAME, DecisionLog
from labelsieve.errors import ToolError

Told = tuple[str, str, str, int | None]  # who, action, label, replaces
StateOf = Callable[..., State]


@pytest.fixture
def state_of(tmp_path: Path) -> StateOf:
    """What holds of one sample after what was told on it, in this order."""

    def state(*told: Told) -> State:
        entries = [
            decision(str(n), "a", action, label, who=who, replaces=seen, seq=n)
            for n, (who, action, label, seen) in enumerate(told, 1)
        ]
        (tmp_path / NAME).write_bytes(b"".join(entry.line() for entry in entries))
        return DecisionLog(tmp_path).states()["a"]

    return state


def test_the_last_one_counts(state_of: StateOf) -> None:
    state = state_of(("ada", "keep", "cat", None), ("ada", "relabel", "dog", 1))
    assert state.current == state.last and state.last.seq == 2 and state.standing == (state.last,) and not state.conflict


def test_clear_takes_back_and_can_be_decided_again(state_of: StateOf) -> None:
    state = state_of(("ada", "keep", "cat", None), ("ada", "clear", "", 1))
    assert state.current is None and state.last.seq == 2 and not state.conflict and not state.over_taken_back
    again = state_of(("ada", "keep", "cat", None), ("ada", "clear", "", 1), ("bob", "drop", "", 2))
    assert again.current == again.last and not again.conflict and not again.over_taken_back


@pytest.mark.parametrize(
    ("actions", "over"), [(["clear"], True), (["keep", "clear", "clear"], True), (["keep", "clear", "keep", "clear"], False)]
)
def test_taking_back_more_than_was_said(state_of: StateOf, actions: list[str], over: bool) -> None:
    assert state_of(*(("ada", action, "cat", n or None) for n, action in enumerate(actions))).over_taken_back is over


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
    state_of: StateOf, told: list[Told], conflict: bool
) -> None:
    assert state_of(*told).conflict is conflict


def test_taking_back_ones_own_leaves_what_another_said_unseen(state_of: StateOf) -> None:
    state = state_of(("bob", "drop", "", None), ("ada", "keep", "cat", None), ("bob", "clear", "", 1))
    assert state.current is not None and state.current.seq == 2 and not state.conflict


def test_samples_are_apart(tmp_path: Path) -> None:
    log = DecisionLog(tmp_path)
    log.append([decision("1", "a"), decision("2", "b", "drop", who="bob")])
    found = log.states()
    assert list(found) == ["a", "b"] and not any(state.conflict for state in found.values())
    assert list(log.states(["b", "c"])) == ["b"]


def stands(entries: list[Decision]) -> list[Decision]:
    """The rule word by word, entry by entry and without any thought of time."""
    found: list[Decision] = []
    for entry in entries:
        found = [one for one in found if one.seq > (entry.replaces or 0) and one.who != entry.who]
        found += [] if entry.action == CLEAR else [entry]
    return found


@pytest.mark.parametrize("in_order", [True, False])
def test_the_index_follows_the_rule_at_every_step(in_order: bool) -> None:
    """Also where a log was put together by hand, and its numbers do not rise."""
    rng = random.Random(5)
    for _ in range(150):
        index, entries = Index(), []
        for n in range(1, rng.randint(2, 30)):
            action = rng.choice(ACTIONS)
            seen = rng.choice([None, n - 1, rng.randint(1, n)]) or None
            seq, label = (n if in_order else rng.randint(1, 12)), rng.choice("xy") if action in LABELLING else None
            entries.append(decision(str(n), "a", action, label, who=rng.choice("abcd"), replaces=seen, seq=seq))
            index.add(entries[-1].row, n)
        for count in range(1, len(entries) + 1):
            wanted = stands(entries[:count])
            conflict = len({one.outcome for one in wanted}) > 1
            assert index.then(0, count) == (entries.index(wanted[-1]) if wanted else NONE, conflict)
        assert [entries[entry] for entry in index.standing(0)] == wanted
        assert index.now(0) == index.then(0, len(entries)) and list(index.history(0)) == list(range(len(entries)))[::-1]


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
