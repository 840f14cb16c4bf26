"""New labels against what the source says by now, row by row."""

import pytest

from labelsieve.corrected.corrections import DROPPED, Corrections, corrected_values


@pytest.mark.parametrize(
    ("label", "new", "decided", "expected"),
    [
        ("cat", "dog", False, "dog"),
        ("cat", "cat", False, "cat"),
        ("cat", None, False, None),
        ("ox", "cat", False, "ox"),  # changed in the source since the run, which has nothing against it
        ("ox", "cat", True, "cat"),  # a person said that it is a cat
        ("ox", "dog", False, "dog"),  # the run says otherwise
        ("ox", None, False, None),
        ("", "cat", False, "cat"),
    ],
)
def test_a_label_changed_since_the_run_stays_where_the_run_would_keep_the_old_one(
    label: str, new: str | None, decided: bool, expected: str | None
) -> None:
    made = Corrections({"a": new}, {"a": "cat"}, {"a"} if decided else frozenset())
    assert made.of("a", label) == expected
    changed = label == "ox"
    assert made.stayed == ({"a"} if changed and expected == "ox" else set())
    assert made.overruled == ({"a"} if changed and expected != "ox" else set())


def test_a_new_label_is_written_as_its_class_is_written_first() -> None:
    made = Corrections({"3": "dog", "4": None})
    values = ["dog ", "cat", "dog", "cat", "cat"]
    assert corrected_values("01234", values, made, "here") == ["dog ", "cat", "dog", "dog ", DROPPED]
