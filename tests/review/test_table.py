"""The issues as columns: Parquet and CSV give the same, and what does not fit is named."""

import os
from pathlib import Path

import numpy as np
import pytest

from labelsieve.errors import ToolError
from labelsieve.review.evidence import arrays_of, read_evidence
from labelsieve.review.table import read_table
from review.made import CLASSES, made_run


def test_parquet_and_csv_give_the_same(run: Path) -> None:
    fast = read_table(run, CLASSES)
    (run / "issues.parquet").unlink()
    plain = read_table(run, CLASSES)
    assert fast.ids.tolist() == plain.ids.tolist() and fast.reasons.tolist() == plain.reasons.tolist()
    for name in ("given", "suggested", "kind", "action", "confidence", "score", "is_issue"):
        assert np.array_equal(getattr(fast, name), getattr(plain, name)), name
    assert plain.classes == CLASSES and plain.row_of["s007"] == 7 and plain.is_issue.sum() == 20


def test_a_csv_changed_after_the_parquet_is_what_counts(run: Path) -> None:
    text = (run / "issues.csv").read_text(encoding="utf-8").replace("s000,cat/0.png,cat", "s000,cat/0.png,ox")
    (run / "issues.csv").write_text(text, encoding="utf-8")
    later = (run / "issues.parquet").stat().st_mtime_ns + 10**9
    os.utime(run / "issues.csv", ns=(later, later))
    assert read_table(run, CLASSES).given[0] == CLASSES.index("ox")


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("label_score", "label_scores", 'the column "label_score" is missing'),
        ("0.025000", "1.5", "outside of 0..1"),
        ("0.025000", "-0.5", "outside of 0..1"),
        ("0.025000", "much", "row 2"),
        ("s001,", "s000,", "more than once"),
        ("True,relabel", "Maybe,relabel", "neither True nor False"),
        (",dog,", ",wolf,", '"wolf" is not one of 5 classes'),
        (",relabel,", ",explode,", '"explode" is not one of 4 actions'),
    ],
)
def test_a_damaged_file_is_named_with_the_place(run: Path, old: str, new: str, said: str) -> None:
    (run / "issues.parquet").unlink()
    text = (run / "issues.csv").read_text(encoding="utf-8")
    assert old in text
    (run / "issues.csv").write_text(text.replace(old, new), encoding="utf-8")
    with pytest.raises(ToolError, match=said):
        read_table(run, CLASSES)


def test_parquet_that_is_none_is_named(run: Path) -> None:
    (run / "issues.parquet").write_bytes(b"PAR1 and then nothing")
    later = (run / "issues.csv").stat().st_mtime_ns + 10**9
    os.utime(run / "issues.parquet", ns=(later, later))
    with pytest.raises(ToolError, match="issues.parquet: damaged"):
        read_table(run, CLASSES)


def test_a_run_without_issues_says_how_to_go_on(tmp_path: Path) -> None:
    with pytest.raises(ToolError, match="labelsieve resume"):
        read_table(tmp_path)


def test_evidence_is_joined_by_id(run: Path) -> None:
    """scores.npz lists the samples the other way round."""
    table = read_table(run, CLASSES)
    found = read_evidence(run, table, arrays_of(run / "scores.npz"))
    assert found.sample[0] == 39 and found.place[39] == 0
    assert found.likeliest(0)[0][0] == table.suggested[0]
    assert found.moved(3)[0] == (2, pytest.approx(0.9, abs=0.01)) and len(found.moved(3)) == 4
    assert found.neighbours(0) == ([39], [39], []) and found.neighbours(30) == ([], [], [])


def test_an_older_run_without_evidence_still_opens(run: Path) -> None:
    for name in ("scores.npz", "neighbours.npz"):
        (run / name).unlink()
    table = read_table(run)
    found = read_evidence(run, table, {})
    assert found.likeliest(0) == [] and found.moved(0) == [] and found.neighbours(0) == ([], [], [])


def test_scores_of_other_samples_are_refused(run: Path, tmp_path: Path) -> None:
    other = made_run(tmp_path / "other", count=30)
    with pytest.raises(ToolError, match="not of the same samples"):
        read_evidence(run, read_table(run, CLASSES), arrays_of(other / "scores.npz"))


@pytest.mark.parametrize("value", [40, -2])
def test_neighbours_that_point_outside_are_left_out(run: Path, value: int) -> None:
    near = np.full((20, 2), value, np.int32)
    np.savez(run / "neighbours.npz", of=np.arange(20, 40), given=near, suggested=near)
    table = read_table(run, CLASSES)
    assert read_evidence(run, table, arrays_of(run / "scores.npz")).neighbours(0) == ([], [], [])
