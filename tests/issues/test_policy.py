"""Policies and decisions on rows made by hand."""

from pathlib import Path
from typing import Any

import pytest

from labelsieve.errors import ToolError, UsageError
from labelsieve.issues.policy import Decision, Policy, Verdict, read_decisions, verdicts

CLASSES = ("cat", "dog", 'a, "b"\n')


def columns(*rows: dict[str, Any]) -> dict[str, list[Any]]:
    usual = {
        "id": "a",
        "given_label": "cat",
        "suggested_label": "dog",
        "suggested_confidence": 0.95,
        "label_score": 0.05,
        "is_label_issue": True,
        "action": "relabel",
        "reason": "Because.",
    }
    return {name: [(usual | row)[name] for row in rows] for name in usual}


def only(verdict: list[Verdict]) -> tuple[str | None, str]:
    [one] = verdict
    return one.new, one.action


@pytest.mark.parametrize(
    ("action", "expected"),
    [("relabel", ("dog", "relabel")), ("drop", (None, "drop")), ("review", ("cat", "keep")), ("keep", ("cat", "keep"))],
)
def test_without_thresholds_the_action_is_followed(action: str, expected: tuple[str | None, str]) -> None:
    assert only(verdicts(columns({"action": action}), CLASSES, Policy())) == expected


@pytest.mark.parametrize(
    ("row", "policy", "expected"),
    [
        ({}, Policy(relabel_above=0.9), ("dog", "relabel")),
        ({"suggested_confidence": 0.9}, Policy(relabel_above=0.9), ("cat", "keep")),  # above, not at
        ({"is_label_issue": False}, Policy(relabel_above=0.9), ("cat", "keep")),
        ({"action": "keep"}, Policy(relabel_above=0.9), ("dog", "relabel")),  # thresholds replace the action
        ({}, Policy(drop_below=0.1), (None, "drop")),
        ({"label_score": 0.1}, Policy(drop_below=0.1), ("cat", "keep")),  # below, not at
        ({"is_label_issue": False}, Policy(drop_below=0.1), (None, "drop")),
        ({}, Policy(0.9, 0.1), ("dog", "relabel")),  # relabelling comes first
        ({"suggested_confidence": 0.5}, Policy(0.9, 0.1), (None, "drop")),
        ({"suggested_confidence": 0.5, "label_score": 0.3}, Policy(0.9, 0.1), ("cat", "keep")),
    ],
)
def test_thresholds(row: dict[str, Any], policy: Policy, expected: tuple[str | None, str]) -> None:
    assert only(verdicts(columns(row), CLASSES, policy)) == expected


@pytest.mark.parametrize(("above", "below"), [(1.5, None), (None, -0.1), (90, None)])
def test_thresholds_are_shares(above: float | None, below: float | None) -> None:
    with pytest.raises(UsageError, match="between 0 and 1"):
        Policy(above, below)


def test_decisions_come_first_and_leave_the_rest_alone() -> None:
    rows = columns({"id": "a"}, {"id": "b"}, {"id": "c"}, {"id": "d"})
    told = {"a": Decision("keep", None), "b": Decision("relabel", CLASSES[2]), "c": Decision("relabel", None)}
    found = verdicts(rows, CLASSES, Policy(), told)
    assert [(one.new, one.action) for one in found] == [
        ("cat", "keep"),
        (CLASSES[2], "relabel"),
        ("dog", "relabel"),
        ("cat", "keep"),
    ]
    assert [one.new for one in verdicts(rows, CLASSES, Policy(), told, follow=True)] == ["cat", CLASSES[2], "dog", "dog"]
    assert [one.new for one in verdicts(rows, CLASSES, Policy(), None, follow=False)] == ["cat"] * 4
    with_policy = verdicts(rows, CLASSES, Policy(drop_below=0.1), told)
    assert [one.new for one in with_policy] == ["cat", CLASSES[2], "dog", None]
    assert with_policy[0].why == "decided by a person" and "below 0.1" in with_policy[3].why


def test_a_relabelling_to_the_same_label_is_none() -> None:
    assert only(verdicts(columns({}), CLASSES, Policy(), {"a": Decision("relabel", "cat")})) == ("cat", "keep")


def test_misspelt_ids_labels_and_actions_are_named() -> None:
    rows = columns({"id": "sample-17"})
    with pytest.raises(ToolError, match='did you mean "sample-17"'):
        verdicts(rows, CLASSES, Policy(), {"sample-71": Decision("drop", None)})
    with pytest.raises(ToolError, match='"dgo" is not one of 3 classes.*did you mean "dog"'):
        verdicts(rows, CLASSES, Policy(), {"sample-17": Decision("relabel", "dgo")})
    with pytest.raises(ToolError, match='sample-17: keep means the given label "cat", and the row says "dog"; write relabel'):
        verdicts(rows, CLASSES, Policy(), {"sample-17": Decision("keep", "dog")})
    with pytest.raises(ToolError, match='unknown action "relable"'):
        verdicts(columns({"action": "relable"}), CLASSES, Policy())


def test_decisions_are_read_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "decisions.csv"
    file.write_text('\ufeffid,action,label\n"x, ""1""",Relabel,dog\ny,drop,\ny,drop,\nz,review,\n', encoding="utf-8")
    file.write_bytes(file.read_bytes() + b'"two\r\nlines",keep,\n')
    assert read_decisions(file) == {
        "two\r\nlines": Decision("keep", None),
        'x, "1"': Decision("relabel", "dog"),
        "y": Decision("drop", None),
        "z": Decision("review", None),
    }


def test_a_table_may_be_filled_in_in_part(tmp_path: Path) -> None:
    """As `labelsieve decisions --from` reads it: a label alone says enough, and an empty row says nothing."""
    file = tmp_path / "decisions.csv"
    file.write_text("id,action,label\na,,\nb,,dog\nc, ,\nd,keep,\n")
    assert read_decisions(file) == {"b": Decision("relabel", "dog"), "d": Decision("keep", None)}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("id,label\n", '"action" is missing'),
        ("id,action\na,dorp\n", 'row 1: unknown action "dorp".*did you mean "drop"'),
        ("id,action,label\na,drop,\na,keep,\n", "row 2.*decided otherwise"),
        (None, "no such file; check the path"),
    ],
)
def test_bad_decisions_are_named(tmp_path: Path, text: str | None, words: str) -> None:
    file = tmp_path / "decisions.csv"
    if text is not None:
        file.write_text(text)
    with pytest.raises(ToolError, match=words):
        read_decisions(file)
