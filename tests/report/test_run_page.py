"""The page of a run: parsed, escaped, nothing from outside; what it says is what was given."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from labelsieve.issues.estimate import RIGHT, UNKNOWN_WORDS, Chances, Share, expected_yield
from labelsieve.report.charts import Curve
from labelsieve.report.page import Suspect
from labelsieve.report.run import Corner, RunReport, run_page

HOSTILE = '</style><script src="x">alert(1)</script>&"\''
Reader = Callable[[str], Any]


def made(names: tuple[str, ...] = ("ant", "bee", "cat"), **changes: Any) -> RunReport:
    """300 labels, the first 60 wrong; class k for every k-th of them."""
    count, kinds = 300, len(names)
    draws = np.random.default_rng(0)
    given, wrong = np.arange(count) % kinds, np.arange(count) < 60
    score = np.where(wrong, 0.02, 0.98)
    chances = Chances(1 - score, np.stack([1 - score]))
    order = np.argsort(score, kind="stable")
    matrix = np.zeros((kinds, kinds), int)
    np.add.at(matrix, (given[wrong], (given[wrong] + 1) % kinds), 1)
    picture = draws.integers(0, 255, (3, 12, 12), np.uint8)
    suspects = [Suspect(picture, f"id {k}", names[0], names[1], 0.02, None) for k in range(3)]
    report = RunReport(
        title="Label report",
        lead="300 labels",
        classes=names,
        share=Share(0.196, 0.17, 0.22),
        by="heads",
        samples=np.bincount(given, minlength=kinds).tolist(),
        listed=np.bincount(given[wrong], minlength=kinds).tolist(),
        matrix=matrix,
        expected=expected_yield(chances, order),
        score=score,
        loss=draws.random(count),
        is_issue=wrong,
        actions={"keep": 240, "relabel": 50, "review": 7, "drop": 3},
        kinds={"fine": 240, "mislabelled": 50, "ambiguous": 7, "like none": 3},
        corners=[Corner(names[0], 20, suspects)],
        curves=[("Accuracy", "percent", [Curve("both", [1, 2], [50, 60])]), ("Empty", "percent", [])],
        warmup=1,
        settings={"training.lr": "0.02", "engine.threads": "1"},
        versions={"torch": "2.13"},
        next_steps=["Look."],
        next_commands=["labelsieve apply RUN --out NEW"],
    )
    return replace(report, **changes)


def words(read_page: Reader, report: RunReport) -> str:
    return " ".join("".join(read_page(run_page(report)).words).replace("\u00a0", " ").split())


def test_a_wide_interval_comes_before_the_estimate(read_page: Reader) -> None:
    """34 % were said where 21 % were wrong, with the truth in brackets."""
    wrong = np.where(np.arange(300) < 102, 1.0, 0.0)
    opinions = Chances(wrong, (wrong * 0.5)[None])
    unsure = made(share=Share(0.34, 0.17, 0.34), expected=expected_yield(opinions, np.arange(300)))
    said = words(read_page, unsure)
    assert "Between 17.0 and 34.0 % of the 300 labels seem to be wrong (point estimate 34.0 %)" in said
    assert "17 to 34 %" in said and "About 34" not in said
    assert "Check the first 60 of the list: between 30 and 60 seem to be wrong (point estimate 60)." in said
    assert "(10 to 20)50 to 100 %" in said.replace(") ", ")"), "not 100 % alone: the networks may err"


def test_where_it_cannot_be_known_no_share_of_wrong_labels_is_shown(read_page: Reader) -> None:
    said = words(read_page, made(share=Share(0.2, 0.0, 0.9), cautions=[UNKNOWN_WORDS], settings={}))
    assert said.count("cannot be known here") == 2, "among the cautions, and where the first of the list would be counted"
    assert "seem to be wrong" not in said and "60 labels are listed as issues" in said
    shown, listed = said.split("Class by class")[0], said.split("Share listed")[1]
    assert "%" not in shown and "%" in listed, "what is listed is a count"


def test_it_says_what_was_found(read_page: Reader) -> None:
    said = words(read_page, made())
    assert "About 19.6 % of the 300 labels seem to be wrong" in said and "60 labels are listed as issues" in said
    assert "relabel50surelylookslike" in said.replace(" ", "")
    assert "Check the first 60 of the list: about 59 seem to be wrong" in said
    for heading in ("What was found", "How many to check", "Class by class", "Training", "What to do next"):
        assert heading in said
    assert RIGHT["heads"] in said and RIGHT["heads"] not in words(read_page, made(by="division"))
    assert "labelsieve apply RUN --out NEW" in said and "All 2 settings" in said and "torch" in said


def test_what_is_to_review_and_no_issue_is_said(read_page: Reader) -> None:
    assert "2 of those to review are no issues" in words(read_page, made(unlisted=2))
    assert "One of those to review is no issue:" in words(read_page, made(unlisted=1))
    assert "of those to review" not in words(read_page, made())


def test_a_share_is_whole_only_where_none_is_expected_to_be_right(read_page: Reader) -> None:
    chances = Chances(np.where(np.arange(300) < 60, 0.998, 0.0), np.zeros((0, 300)))
    said = words(read_page, made(expected=expected_yield(chances, np.arange(300))))
    assert "20 (20 to 20) over 99 %" in " ".join(said.split()) or "20 (20 to 20)over 99 %" in said
    chances = Chances(np.where(np.arange(300) < 60, 1.0, 0.0), np.zeros((0, 300)))
    assert "over 99 %" not in words(read_page, made(expected=expected_yield(chances, np.arange(300))))


def test_what_is_really_wrong_is_counted_in_the_lists_order() -> None:
    """Equal scores, as six decimals make many, are listed by what the networks say; then the chart goes by it, too."""
    wrong, score = np.arange(300) >= 240, np.full(300, 0.02)
    first = run_page(made(wrong=wrong, score=score, order=np.arange(300)[::-1]))
    last = run_page(made(wrong=wrong, score=score, order=np.arange(300)))
    assert first != last and last == run_page(made(wrong=wrong, score=score))


def test_classes_that_are_not_shown_are_counted(read_page: Reader) -> None:
    assert "Shown is the class of which most is listed; 7 more classes have issues." in words(read_page, made(unshown=7))
    assert "1 more class has issues." in words(read_page, made(unshown=1)) and "Shown are" not in words(read_page, made())


def test_every_class_is_in_the_table_most_in_a_fold(read_page: Reader) -> None:
    text = run_page(made(tuple(f"class {k:03d}" for k in range(60))))
    read_page(text)
    assert all(f">class {k:03d}<" in text for k in range(60)) and "20 classes of which less is listed</summary>" in text


def test_more_than_two_hundred_issues_name_two_hundred(read_page: Reader) -> None:
    is_issue = np.arange(300) < 250
    assert "Check the first 200 of the list" in words(read_page, made(is_issue=is_issue))


def test_names_are_escaped_everywhere(read_page: Reader) -> None:
    names = (HOSTILE, HOSTILE + "2", "plain")
    picture = np.zeros((1, 8, 8), np.uint8)
    report = made(
        names,
        title=HOSTILE,
        lead=HOSTILE,
        corners=[Corner(HOSTILE, 1, [Suspect(picture, HOSTILE, HOSTILE, HOSTILE, 0.1, True)])],
        notes=[HOSTILE],
        left_out=[(HOSTILE, HOSTILE)],
        settings={HOSTILE: HOSTILE, "network": HOSTILE},
        versions={HOSTILE: HOSTILE},
        next_steps=[HOSTILE],
        next_commands=[HOSTILE],
    )
    text = run_page(report)
    read_page(text)
    assert "<script" not in text and "alert(1)" in text


def test_with_true_labels_it_says_how_good_the_list_is(read_page: Reader) -> None:
    wrong = np.arange(300) < 80
    said = words(read_page, made(wrong=wrong))
    assert "of 60 listed labels 60 really are wrong, of 80 wrong ones 60 are listed" in said
    assert "really wrong" in said and "right labels (220)" in said
    assert "True labels are known" not in words(read_page, made())


def test_without_pictures_ids_are_listed(read_page: Reader) -> None:
    said = words(read_page, made(corners=(), suspects=[("vector 17", "ant", "bee", "0.020")]))
    assert "vector 17" in said and "<img" not in run_page(made(corners=(), suspects=[("a", "b", "c", "0.1")]))


def test_nothing_listed_is_said_and_draws_no_empty_charts(read_page: Reader) -> None:
    clean = made(is_issue=np.zeros(300, bool), matrix=np.zeros((3, 3), int), corners=(), curves=(), accuracy=98.7)
    said = words(read_page, clean)
    assert said.count("No label is listed as an issue.") == 2 and "98.7 %" in said and "Training" not in said


def test_left_out_pictures_are_counted_and_named(read_page: Reader) -> None:
    said = words(read_page, made(left_out=[(f"{k}.jpg", "it is empty") for k in range(40)]))
    assert "40 pictures could not be read" in said and "29.jpg" in said and "30.jpg" not in said


@pytest.mark.parametrize("count", [1, 2])
def test_tiny_runs(read_page: Reader, count: int) -> None:
    chances = Chances(np.ones(count), np.ones((1, count)))
    report = made(
        ("a", "b"),
        share=Share(1.0, 0.95, 1.0),
        samples=[count, 0],
        listed=[count, 0],
        expected=expected_yield(chances, np.arange(count)),
        score=np.zeros(count),
        loss=np.ones(count),
        is_issue=np.ones(count, bool),
    )
    assert "100.0 %" in words(read_page, report)


@pytest.mark.parametrize(("kinds", "mapped"), [(10, False), (40, True), (100, True), (201, False)])
def test_many_classes_have_a_map_to_scroll_and_the_largest_pairs(read_page: Reader, kinds: int, mapped: bool) -> None:
    names = tuple(f"class {k}" for k in range(kinds))
    text = run_page(made(names))
    assert ('class="scroll" tabindex="0" role="region"' in text) == mapped
    assert ("The largest of them" in text) == mapped
    assert read_page(text).words
