"""Samples that are odd themselves, and the map: what is listed, what is told of copies, what a decision on them means."""

import csv
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from labelsieve.issues.rules import SAMPLE_ISSUES
from labelsieve.issues.table import read_issues, write_parquet
from labelsieve.texts import as_csv
from review.conftest import Page
from review.made import made_run

ODD = {
    5: ("blurred", ""),
    25: ("off topic", ""),
    30: ("near copy", "s031"),
    31: ("near copy", "s030"),
    35: ("near copy", "test:t7"),
}


@pytest.fixture(params=[True, False], ids=["parquet", "csv"])
def run(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """40 rows, of which the first 20 are label issues; five are odd themselves, one of them a label issue, too."""
    path = made_run(tmp_path / "run", parquet=False)
    rows = list(csv.DictReader(io.StringIO((path / "issues.csv").read_text(encoding="utf-8"))))
    for row, (kind, other) in ODD.items():
        rows[row] |= {"sample_issue": kind, "copy_of": other}
    text = as_csv(list(rows[0]), [list(row.values()) for row in rows])
    (path / "issues.csv").write_text(text, encoding="utf-8", newline="")
    if request.param:
        pytest.importorskip("pyarrow")
        write_parquet(read_issues(path / "issues.csv"), path / "issues.parquet")
    line = np.linspace(0, 1, 40, dtype=np.float32)  # by sample: the table upside down
    np.savez(path / "map.npz", at=np.stack((line, 1 - line), 1))
    return path


def ids(answer: Any) -> list[str]:
    return [row["id"] for row in answer.json()["rows"]]


def test_they_are_listed_by_themselves_and_by_kind(page: Page) -> None:
    facts = page.get("/api/start").json()
    assert facts["own"] == [["near copy", 3, SAMPLE_ISSUES["near copy"]], ["blurred", 1, SAMPLE_ISSUES["blurred"]],
                            ["off topic", 1, SAMPLE_ISSUES["off topic"]]] and facts["map"]  # fmt: skip
    assert len(ids(page.get("/api/rows"))) == 20 and facts["progress"]["counts"]["issues"] == 20
    assert ids(page.get("/api/rows", own="odd")) == ["s005", "s025", "s030", "s031", "s035"]
    assert ids(page.get("/api/rows", own="near copy", everything=True)) == ["s030", "s031", "s035"]
    assert page.get("/api/rows", own="blurred").json()["rows"][0]["own"] == "blurred"
    assert page.get("/api/rows", own="blurry").status_code == 400


def test_a_copy_is_told_with_its_other_one(page: Page) -> None:
    other = page.get("/api/row", id="s030").json()["copy"]
    assert other["id"] == "s031" and other["state"] == "open" and other["given"] == 1
    assert page.get("/api/row", id="s035").json()["copy"] == {"id": "test:t7"}
    assert page.get("/api/row", id="s025").json()["copy"] is None


def test_decisions_on_them_say_nothing_of_labels(page: Page) -> None:
    before = page.get("/api/start").json()["progress"]["left"]
    assert page.decide(*(page.said(name, "drop") for name in ("s005", "s025", "s030", "s035"))).status_code == 200
    after = page.get("/api/start").json()["progress"]
    assert after["counts"]["drop"] == 4
    assert after["left"]["expected"] <= before["expected"] and after["left"]["expected"] > before["expected"] - 1.5
    assert ids(page.get("/api/rows", own="odd")) == ["s031"]
    assert ids(page.get("/api/rows", own="odd", state="drop")) == ["s005", "s025", "s030", "s035"]


def test_the_map_comes_as_numbers_and_an_area_lists_its_rows(page: Page) -> None:
    content = page.get("/api/map").content
    count = int(np.frombuffer(content[:4], "<u4")[0])
    assert count == 40 and len(content) == 4 + 11 * count
    rows = np.frombuffer(content[4:164], "<u4")
    at = np.frombuffer(content[164:324], "<u2").reshape(-1, 2) / 65535
    given, flags = np.frombuffer(content[324:404], "<u2"), np.frombuffer(content[404:], "u1")
    assert sorted(rows) == list(range(40)) and (given == rows % 5).all()
    assert np.allclose(at[:, 0], 1 - rows / 39, atol=2e-4) and np.allclose(at.sum(1), 1, atol=2e-4)
    assert {int(row): int(flag) for row, flag in zip(rows, flags) if row >= 20 and flag} == {25: 2, 30: 2, 31: 2, 35: 2}
    assert flags[rows == 5] == 3 and set(flags[(rows < 20) & (rows != 5)]) == {1}
    corner = "0.9,0;1,0;1,0.1;0.9,0.1"
    assert ids(page.get("/api/rows", area=corner, everything=True, state="any")) == ["s000", "s001", "s002", "s003"]
    assert ids(page.get("/api/rows", area="0,0;1,0;1,1", everything=True, own="odd")) != []
    assert page.get("/api/at", row=7).json()["id"] == "s007"


@pytest.mark.parametrize("area", ["1,1", "0,0;1,1", "0,0;1,1;2,0", "0,0;1,1;a,b", "0,0;1,1;0.12345,0", ";".join(["0,0"] * 101)])
def test_no_area_is_answered_in_words(page: Page, area: str) -> None:
    answer = page.get("/api/rows", area=area)
    assert answer.status_code == 400 and "corners" in answer.json()["error"]


@pytest.mark.parametrize("row", [-1, 40])
def test_rows_that_are_not_there(page: Page, row: int) -> None:
    assert page.get("/api/at", row=row).status_code == 404


@pytest.mark.parametrize("at", [None, np.zeros((39, 2), np.float32), np.full((40, 2), np.nan, np.float32)])
def test_without_a_map_that_fits_there_is_none(tmp_path: Path, page_of: Callable[[Path], Page], at: np.ndarray | None) -> None:
    path = made_run(tmp_path / "bare")
    if at is not None:
        np.savez(path / "map.npz", at=at)
    page = page_of(path)
    assert page.get("/api/start").json()["map"] is False and page.get("/api/map").status_code == 404
    assert page.get("/api/rows", area="0,0;1,0;1,1", everything=True).json()["total"] == 0


def test_a_kind_that_is_not_known_is_refused(tmp_path: Path, page_of: Callable[[Path], Page]) -> None:
    from labelsieve.errors import ToolError

    path = made_run(tmp_path / "changed", parquet=False)
    lines = (path / "issues.csv").read_text(encoding="utf-8").splitlines()
    (path / "issues.csv").write_text("\n".join([lines[0], *(line[:-1] + "spoilt," for line in lines[1:])]), encoding="utf-8")
    with pytest.raises(ToolError, match='sample_issue "spoilt" is not one of 7 kinds'):
        page_of(path)
