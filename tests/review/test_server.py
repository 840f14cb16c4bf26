"""What the page is told and what it may say: rows by page and filter, details, decisions, changes, conflicts, a full disk."""

import errno
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unicodedata import normalize

import numpy as np
import pytest

from labelsieve.decisions.log import DecisionLog
from review.conftest import Page
from review.made import CLASSES, made_run


def lines(run: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (run / "decisions.jsonl").read_text().splitlines()]


def test_the_start_says_what_the_run_is(page: Page) -> None:
    facts = page.get("/api/start").json()
    assert facts["classes"] == list(CLASSES) and facts["who"] == "anna" and facts["pictures"] is False
    assert facts["progress"]["counts"] | {"issues": 20, "rows": 40, "open": 20, "conflict": 0} == facts["progress"]["counts"]
    assert facts["pairs"][0] == [0, 1, 4] and len(facts["pairs"]) == 5
    left = facts["progress"]["left"]
    assert 0 <= left["low"] <= left["expected"] <= left["high"] <= 40 and left["stop"] is False


def test_rows_come_by_page_most_suspicious_first(page: Page) -> None:
    first = page.get("/api/rows", limit=8).json()
    assert [row["id"] for row in first["rows"]] == [f"s{n:03d}" for n in range(8)] and first["total"] == 20
    second = page.get("/api/rows", limit=8, offset=8, view=first["view"]).json()
    assert second["view"] == first["view"] and second["rows"][0]["id"] == "s008"
    row = first["rows"][2]
    assert (row["given"], row["suggested"], row["state"], row["seq"]) == (2, 3, "open", None)
    assert [k for k, _ in row["likeliest"]][:3] == [3, 4, 0] and sorted(k for k, _ in row["likeliest"]) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ({"given": "cat"}, ["s000", "s005", "s010", "s015"]),
        ({"given": "cat", "suggested": "dog"}, ["s000", "s005", "s010", "s015"]),
        ({"given": "cat", "suggested": "ox"}, []),
        ({"text": "S01"}, [f"s01{n}" for n in range(10)]),
        ({"text": "<B>COW"}, ["s001", "s002", "s006", "s007", "s011", "s012", "s016", "s017"]),
        ({"text": "3.png"}, ["s003", "s013"]),
        ({"text": "s03", "everything": True}, [f"s03{n}" for n in range(10)]),
        ({"state": "keep"}, ["s001"]),
        ({"state": "decided"}, ["s000", "s001"]),
        ({"state": "any", "text": "s00"}, [f"s00{n}" for n in range(10)]),
    ],
)
def test_filters(page: Page, asked: dict[str, Any], found: list[str]) -> None:
    page.decide(page.said("s000"), page.said("s001", "keep"))
    if "state" not in asked:
        asked = asked | {"state": "any"}
    assert [row["id"] for row in page.get("/api/rows", **asked).json()["rows"]] == found


def test_the_text_filter_finds_class_names_in_either_unicode_form(tmp_path: Path, page_of: Callable[[Path], Page]) -> None:
    page = page_of(made_run(tmp_path / "accents", classes=(normalize("NFD", "pâté"), "dog")))
    assert page.get("/api/rows", text="PÂTÉ").json()["total"] == 20


@pytest.mark.parametrize("asked", [{"given": "wolf"}, {"state": "gone"}, {"offset": -2}, {"limit": 501}, {"text": "x" * 5000}])
def test_questions_that_make_no_sense_are_answered_in_words(page: Page, asked: dict[str, Any]) -> None:
    answer = page.get("/api/rows", **asked)
    assert answer.status_code in (400, 422) and answer.json()["error"]


def test_a_list_does_not_move_while_it_is_decided_on(page: Page) -> None:
    first = page.get("/api/rows", limit=4).json()
    page.decide(*(page.said(f"s00{n}") for n in range(3)))
    again = page.get("/api/rows", limit=4, view=first["view"]).json()
    assert [row["state"] for row in again["rows"]] == ["accept"] * 3 + ["open"]
    assert page.get("/api/next", view=first["view"], after=0).json()["at"] == 3
    fresh = page.get("/api/rows", limit=4).json()
    assert fresh["view"] != first["view"] and fresh["total"] == 17 and fresh["rows"][0]["id"] == "s003"


def test_a_list_that_was_forgotten_is_made_anew(page: Page) -> None:
    assert page.get("/api/rows", view="0" * 16).json()["view"] != "0" * 16


def test_a_server_started_anew_shows_the_same_list_in_the_same_places(run: Path, page_of: Callable[[Path], Page]) -> None:
    page = page_of(run)
    page.decide(page.said("s000"), page.said("s002", "keep"), page.said("s003", "drop"))
    first = page.get("/api/rows", limit=8).json()
    page.decide(page.said("s001"), page.said("s002", "clear"), page.said("s004", "keep"))
    again = page_of(run).get("/api/rows", limit=8, offset=8, view=first["view"]).json()
    assert (again["view"], again["total"]) == (first["view"], first["total"]) == (first["view"], 17)
    together = [row["id"] for row in (*first["rows"], *again["rows"])]
    assert together == ["s001", *(f"s{n:03d}" for n in range(4, 19))]
    fresh = page_of(run).get("/api/rows", limit=2).json()
    assert fresh["view"] != first["view"] and [row["id"] for row in fresh["rows"]] == ["s002", "s005"]


def test_next_open_goes_round_and_ends(page: Page) -> None:
    page.decide(*(page.said(f"s0{n:02d}") for n in range(20) if n != 5))
    asked = {"state": "any"}
    view = page.get("/api/rows", **asked).json()["view"]
    assert page.get("/api/next", view=view, after=9, **asked).json()["at"] == 5
    page.decide(page.said("s005"))
    assert page.get("/api/next", view=view, after=9, **asked).json()["at"] == -1


def test_a_detail_has_all_that_is_known(page: Page) -> None:
    page.decide(page.said("s002", "relabel", label="ox"))
    found = page.get("/api/row", id="s002").json()
    assert found["reason"] == 'Looks like "hen & egg".' and found["path"] == "<b>cow</b>/2.png"
    assert [row["id"] for row in found["near_given"]] == ["s039"] == [row["id"] for row in found["near_suggested"]]
    assert found["history"][0] == [2, 0.8999] and len(found["history"]) == 4
    assert found["decisions"][0] | {"action": "relabel", "label": "ox", "who": "anna", "seq": 1} == found["decisions"][0]
    assert page.get("/api/row", id="nobody").status_code == 404


def test_samples_like_this_one_are_told_with_their_labels(run: Path, page_of: Callable[[Path], Page]) -> None:
    with np.load(run / "neighbours.npz") as kept:
        arrays = dict(kept)
    alike = np.full((len(arrays["of"]), 3), -1, np.int32)
    alike[:, 0], alike[:, 1] = 39, 0  # the first row of the table, and the last one
    for shape, expected in ((alike, [("s000", True), ("s039", False)]), (alike + 90, [])):
        np.savez(run / "neighbours.npz", **(arrays | {"alike": shape}))
        found = page_of(run).get("/api/row", id="s002").json()
        assert [(one["id"], one["issue"]) for one in found["alike"]] == expected
        assert len(found["near_given"]) == 1


def test_decisions_are_in_the_log_before_the_answer(page: Page, run: Path) -> None:
    answer = page.decide(
        page.said("s000"), page.said("s001", "keep"), page.said("s002", "relabel", label="ox"), page.said("s003", "drop")
    )
    assert [entry["seq"] for entry in answer.json()["saved"]] == [1, 2, 3, 4]
    assert [(one["id"], one["action"], one["label"]) for one in lines(run)] == [
        ("s000", "accept", "dog"),
        ("s001", "keep", "dog"),
        ("s002", "relabel", "ox"),
        ("s003", "drop", None),
    ]
    assert lines(run)[1] | {"who": "anna", "score": 0.025, "replaces": None} == lines(run)[1] and lines(run)[0]["when"].endswith(
        "Z"
    )


def test_the_same_decision_sent_twice_counts_once(page: Page, run: Path) -> None:
    said = page.said("s000")
    first, second = page.decide(said), page.decide(said)
    assert first.json() == second.json() and len(lines(run)) == 1


@pytest.mark.parametrize(
    "facts",
    [
        {"id": "nobody"},
        {"id": ""},
        {"action": "explode"},
        {"action": "relabel"},
        {"action": "relabel", "label": "wolf"},
        {"key": "short"},
        {"key": "../../../etc"},
        {"who": ""},
        {"who": "  "},
        {"who": "a\nb"},
        {"who": ' =HYPERLINK("http://elsewhere","open")'},
        {"who": "@SUM(1)"},
        {"who": "x" * 81},
        {"replaces": "1"},
        {"replaces": -1},
        {"score": 1.0},
        {"when": "2000-01-01"},
    ],
)
def test_what_is_no_decision_is_refused_and_nothing_of_its_batch_is_written(page: Page, run: Path, facts: dict[str, Any]) -> None:
    answer = page.decide(page.said("s001"), page.said("s000") | facts)
    assert answer.status_code in (400, 422) and answer.json()["error"]
    assert not (run / "decisions.jsonl").exists()


def test_changes_of_others_are_seen_and_conflicts_shown_and_settled(page: Page, run: Path) -> None:
    """Another process writes to the same log."""
    other = DecisionLog(run)
    page.decide(page.said("s000", "accept", who="anna"))
    from labelsieve.decisions.decision import Decision

    other.append([Decision("ben-0001", "s000", "keep", "cat", "ben", "2026-11-15T10:00:00Z")])
    found = page.get("/api/changes", since=1).json()
    assert found["events"] == 2 and [change["id"] for change in found["changes"]] == ["s000"]
    change = found["changes"][0]
    assert change["conflict"] and [one["who"] for one in change["standing"]] == ["anna", "ben"]
    assert found["progress"]["counts"]["conflict"] == 1
    assert [row["id"] for row in page.get("/api/rows", state="conflict").json()["rows"]] == ["s000"]
    page.decide(page.said("s000", "accept", who="ben", replaces=change["seq"]))
    after = page.get("/api/changes", since=2).json()
    assert not after["changes"][0]["conflict"] and after["changes"][0]["state"] == "accept"
    assert page.get("/api/changes", since=3).json()["changes"] == []


def test_what_is_decided_while_an_answer_is_made_is_told_by_the_next(page: Page, monkeypatch: pytest.MonkeyPatch) -> None:
    """The estimate takes its time, and comes last in an answer."""
    page.decide(page.said("s000", "drop"))
    left = page.review.desk.left

    def meanwhile() -> Any:
        page.decide(page.said("s000", "keep", replaces=page.review.desk.events))
        return left()

    monkeypatch.setattr(page.review.desk, "left", meanwhile)
    begun, first = page.get("/api/start").json(), page.get("/api/changes", since=0).json()
    monkeypatch.undo()
    assert (begun["events"], first["events"]) == (1, 2) and page.review.desk.events == 3
    again = page.get("/api/changes", since=first["events"]).json()
    assert [(change["id"], change["state"], change["seq"]) for change in again["changes"]] == [("s000", "keep", 3)]


def test_rows_say_how_many_decisions_they_know_of(page: Page, monkeypatch: pytest.MonkeyPatch) -> None:
    page.decide(page.said("s000", "drop"))
    view = page.review.desk.view

    def meanwhile(*asked: Any) -> Any:
        page.decide(page.said("s001", "keep"))
        return view(*asked)

    monkeypatch.setattr(page.review.desk, "view", meanwhile)
    assert page.get("/api/rows").json()["events"] == 1


def test_taking_back_opens_the_row_again(page: Page) -> None:
    page.decide(page.said("s000"))
    page.decide(page.said("s000", "clear", replaces=1))
    change = page.get("/api/changes", since=1).json()["changes"][0]
    assert (change["state"], change["label"], change["seq"]) == ("open", None, 2)


def test_a_log_that_was_put_in_its_place_starts_the_page_over(page: Page, run: Path) -> None:
    page.decide(page.said("s000"), page.said("s001"))
    (run / "decisions.jsonl").unlink()
    assert page.get("/api/changes", since=2).json() == {"restart": True, "events": 0}
    assert page.get("/api/rows").json()["total"] == 20


def test_another_log_with_as_many_decisions_starts_the_page_over_and_is_what_counts(page: Page, run: Path) -> None:
    from labelsieve.decisions.decision import Decision

    begun = page.get("/api/start").json()
    page.decide(page.said("s000", "drop"), page.said("s001", "drop"))
    seen = page.get("/api/changes", since=0, heard=begun["events"], mark=begun["mark"]).json()
    asked = {"since": 1, "heard": 2, "mark": seen["mark"]}
    assert [change["id"] for change in page.get("/api/changes", **asked).json()["changes"]] == ["s001"]
    (run / "other").mkdir()
    others = [Decision(f"ben-{n:06d}", f"s0{n:02d}", "keep", "cat", "ben", "2026-11-15T10:00:00Z") for n in (7, 8)]
    DecisionLog(run / "other").append(others)
    (run / "other" / "decisions.jsonl").replace(run / "decisions.jsonl")
    assert page.get("/api/changes", **asked).json() == {"restart": True, "events": 2}
    fresh = page.get("/api/start").json()
    assert fresh["progress"]["counts"]["keep"] == 2 and fresh["progress"]["left"] != seen["progress"]["left"]
    assert not page.get("/api/changes", since=2, heard=2, mark=fresh["mark"]).json().get("restart")


def test_answers_move_the_estimate(page: Page) -> None:
    before = page.get("/api/start").json()["progress"]["left"]["expected"]
    page.decide(*(page.said(f"s0{n:02d}", "keep") for n in range(15)))
    after = page.get("/api/start").json()["progress"]["left"]["expected"]
    assert after < before / 2  # everything checked was right after all


def test_a_full_disk_is_said_and_what_was_saved_stays(page: Page, run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page.decide(page.said("s000"))
    write = os.write

    def full(handle: int, content: bytes) -> int:
        if b"s001" in bytes(content):
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(handle, content)

    monkeypatch.setattr(os, "write", full)
    said = page.said("s001")
    answer = page.decide(said)
    assert answer.status_code == 507 and "free some space" in answer.json()["error"]
    assert len(lines(run)) == 1
    monkeypatch.undo()
    assert page.decide(said).json()["saved"][0]["seq"] == 2 and len(lines(run)) == 2


def test_a_run_of_one_row_and_one_of_none(tmp_path: Path, page_of: Callable[[Path], Page]) -> None:
    one = page_of(made_run(tmp_path / "one", count=2))
    assert one.get("/api/rows").json()["total"] == 1
    none = page_of(made_run(tmp_path / "none", count=1))
    found = none.get("/api/rows").json()
    assert found["total"] == 0 and found["rows"] == [] and none.get("/api/next").json()["at"] == -1
    assert none.get("/api/start").json()["progress"]["left"]["stop"] is False


def test_a_thousand_classes(tmp_path: Path, page_of: Callable[[Path], Page]) -> None:
    names = tuple(f"class {k:03d}" for k in range(1000))
    page = page_of(made_run(tmp_path / "wide", count=3000, classes=names))
    assert len(page.get("/api/start").json()["classes"]) == 1000
    assert page.get("/api/rows", given="class 777", state="any").json()["total"] == 1
    assert len(page.get("/api/rows", limit=1).json()["rows"][0]["likeliest"]) == 9


def test_decisions_on_samples_that_are_no_longer_in_the_run_do_no_harm(run: Path, page_of: Callable[[Path], Page]) -> None:
    from labelsieve.decisions.decision import Decision

    DecisionLog(run).append([Decision("old-0001", "gone", "drop", None, "ben", "2026-11-15T10:00:00Z")])
    page = page_of(run)
    assert page.get("/api/changes", since=0).json()["changes"] == [] and page.get("/api/rows").json()["total"] == 20
