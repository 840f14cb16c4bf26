"""Decisions on rows made by hand."""

from pathlib import Path
from typing import Any

import pytest

from labelsieve.errors import ToolError
from labelsieve.issues.policy import Change, Correction, changes_of, read_decisions

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


def only(verdict: list[Change]) -> tuple[str | None, str]:
    [one] = verdict
    return one.new, one.action


def test_what_nobody_decided_stays() -> None:
    rows = columns({"id": "a"}, {"id": "b"}, {"id": "c"}, {"id": "d"}, {"id": "e", "action": "drop"})
    told = {"a": Correction("keep", None), "b": Correction("relabel", CLASSES[2]), "c": Correction("relabel", None)}
    found = changes_of(rows, CLASSES, told | {"d": Correction("drop", None)})
    assert [(one.new, one.action) for one in found] == [
        ("cat", "keep"),
        (CLASSES[2], "relabel"),
        ("dog", "relabel"),
        (None, "drop"),
        ("cat", "keep"),
    ]
    assert found[1].why == "decided by a person" and found[4].why == "Because."


def test_a_relabelling_to_the_same_label_is_none() -> None:
    assert only(changes_of(columns({}), CLASSES, {"a": Correction("relabel", "cat")})) == ("cat", "keep")


def test_misspelt_ids_labels_and_actions_are_named() -> None:
    rows = columns({"id": "sample-17"})
    with pytest.raises(ToolError, match='did you mean "sample-17"'):
        changes_of(rows, CLASSES, {"sample-71": Correction("drop", None)})
    with pytest.raises(ToolError, match='"dgo" is not one of 3 classes.*did you mean "dog"'):
        changes_of(rows, CLASSES, {"sample-17": Correction("relabel", "dgo")})
    with pytest.raises(ToolError, match='sample-17: keep means the given label "cat", and the row says "dog"; write relabel'):
        changes_of(rows, CLASSES, {"sample-17": Correction("keep", "dog")})


def test_decisions_are_read_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "decisions.csv"
    file.write_text('\ufeffid,action,label\n"x, ""1""",Relabel,dog\ny,drop,\ny,drop,\nz,review,\n', encoding="utf-8")
    file.write_bytes(file.read_bytes() + b'"two\r\nlines",keep,\n')
    assert read_decisions(file) == {
        "two\r\nlines": Correction("keep", None),
        'x, "1"': Correction("relabel", "dog"),
        "y": Correction("drop", None),
        "z": Correction("review", None),
    }


def test_a_table_may_be_filled_in_in_part(tmp_path: Path) -> None:
    """As `labelsieve decisions --from` reads it: a label alone says enough, and an empty row says nothing."""
    file = tmp_path / "decisions.csv"
    file.write_text("id,action,label\na,,\nb,,dog\nc, ,\nd,keep,\n")
    assert read_decisions(file) == {"b": Correction("relabel", "dog"), "d": Correction("keep", None)}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("id,label\n", '"action" is missing'),
        ("id,action\na,dorp\n", 'row 1: unknown action "dorp".*did you mean "drop"'),
        ("id,action,label\na,drop,\na,keep,\n", "row 2.*decided otherwise"),
        (None, "no such file; name a CSV of decisions"),
    ],
)
def test_bad_decisions_are_named(tmp_path: Path, text: str | None, words: str) -> None:
    file = tmp_path / "decisions.csv"
    if text is not None:
        file.write_text(text)
    with pytest.raises(ToolError, match=words):
        read_decisions(file)
