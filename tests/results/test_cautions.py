"""A run says when it should not be trusted: each caution on findings made by hand, none where all is well."""

import html
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from labelsieve.config.fitting import fitted
from labelsieve.config.schema import Config, override
from labelsieve.issues.estimate import Chances
from labelsieve.report.run import run_page
from labelsieve.results.card import plain
from labelsieve.results.cautions import cautions
from labelsieve.results.reporting import run_report
from labelsieve.runs.findings import Findings, Record, read_findings, read_record
from labelsieve.runs.folder import RunFolder
from labelsieve.train.loop import each_epoch
from labelsieve.train.start import resume, start
from runs.tiny import tiny_config


def findings(counts: tuple[int, ...] = (300, 300), wrong: float = 0.1, opinions: tuple[float, ...] = (0.1,)) -> Findings:
    given = np.repeat(np.arange(len(counts)), counts)
    count = len(given)
    chances = Chances(np.full(count, wrong), np.stack([np.full(count, opinion) for opinion in opinions]))
    zeros = np.zeros(count)
    names = [f"class {k}" for k in range(len(counts))]
    return Findings({}, names, np.arange(count), given, given, 1 - zeros, zeros > 0, zeros, chances, None, zeros > 0)


def listed(relabel: int, review: int, samples: int = 600) -> Findings:
    """So many issues of each action among all samples; the others are kept."""
    kept = samples - relabel - review
    actions = ["relabel"] * relabel + ["review"] * review + ["keep"] * kept
    columns = {"action": actions, "is_label_issue": [action != "keep" for action in actions]}
    return replace(findings((samples // 2, samples // 2)), columns=columns, is_issue=np.arange(samples) < relabel + review)


def record(epochs: int = 20, accuracy: float = 90.0, estimate: tuple[float, float, float] | None = None, **last: Any) -> Record:
    lines = [{"epoch": epoch + 1, "accuracy": {"both": accuracy}} for epoch in range(epochs)]
    early = None if estimate is None else dict(zip(("share", "low", "high"), estimate))
    return Record(override(Config(), {"training.epochs": 20}), {}, [*lines[:-1], lines[-1] | last], 1.0, early, ())


@pytest.mark.parametrize(
    ("found", "run", "words"),
    [
        (findings((60, 60)), record(), "120 samples are few"),
        (findings((370, 370, 19)), record(), 'fewer than 20 samples ("class 2": 19)'),
        (findings((600, 20)), record(), "30 times the smallest"),
        (findings(), record(estimate=(0.3, 0.18, 0.55)), "Do not trust the estimate after the warm-up (18 to 55 %)"),
        (
            findings(),
            record(estimate=(0.96, 0.94, 1.0)),
            "most labels looked wrong (94 to 100 %). Either they are, or the networks",
        ),
        (findings(opinions=(0.05, 0.5)), record(), "is uncertain"),
        (findings(wrong=0.8, opinions=(0.8,)), record(), "Most labels look wrong"),
        (listed(9, 11), record(), "Fewer labels may be wrong than are listed: 11 of the 20 issues come without"),
        (listed(9, 11, samples=50_000), record(), "Fewer labels may be wrong than are listed: 11 of the 20 issues come without"),
        (findings(), record(12), "Stopped after 12 of 20 epochs"),
        (findings(), record(accuracy=60.0), "hardly more than by guessing"),
        (findings(), record(notes=["network 1: the partition collapsed: class 0 swallows the rest"]), "Do not use this list"),
    ],
)
def test_each_reason_for_doubt_is_said_alone(found: Findings, run: Record, words: str) -> None:
    said = cautions(found, run)
    assert len(said) == 1 and words in said[0]


def test_a_rough_first_estimate_that_the_end_confirms_is_no_reason_for_doubt() -> None:
    """The demo told its users not to trust an estimate of 29 to 50 %, beside 32 to 37 % at the end, where 36 % were wrong."""
    run = record(estimate=(0.37, 0.29, 0.50))
    assert cautions(findings(wrong=0.36, opinions=(0.32, 0.36)), run) == []
    for other in (findings(wrong=0.2, opinions=(0.2,)), findings(wrong=0.4, opinions=(0.1, 0.45))):  # outside; as wide again
        assert any("Do not trust the estimate after the warm-up (29 to 50 %)" in words for words in cautions(other, run))
    assert any(
        "Do not trust" in words
        for words in cautions(findings(wrong=0.36, opinions=(0.32, 0.36)), record(12, estimate=(0.37, 0.29, 0.50)))
    )


def test_ids_that_a_spreadsheet_would_compute_are_told_once() -> None:
    ids = {"id": ["=cmd|x", "a", "-3", "@b"]}
    (said,) = cautions(replace(findings(), columns=ids), record())
    assert said.startswith('The id "=cmd|x" (and 1 more) looks like a formula to a spreadsheet')
    classes = replace(findings(), columns=ids, classes=["=cmd|x", "b"])
    (said,) = cautions(classes, record())
    assert said.startswith('The class "=cmd|x" looks like a formula')


def test_nothing_is_said_where_nothing_is_amiss() -> None:
    assert cautions(findings(), record()) == []


@pytest.mark.parametrize("found", [listed(10, 10), listed(0, 19)])
def test_sure_corrections_or_few_issues_are_no_reason_for_doubt(found: Findings) -> None:
    assert cautions(found, record()) == []
    assert cautions(findings(), record(estimate=(0.3, 0.25, 0.4))) == []
    early = record(notes=["network 1: the partition collapsed: class 0 swallows the rest"])
    recovered = replace(early, metrics=[early.metrics[-1], *record().metrics])
    assert cautions(findings(), recovered) == []


@pytest.mark.parametrize("warmup", [20, 30])
def test_a_run_that_only_warms_up_says_so_before_and_after(warmup: int) -> None:
    run = record()
    config = override(run.config, {"training.warmup": warmup})
    (said,) = cautions(findings(), replace(run, config=config))
    assert f"All 20 epochs are warm-up (training.warmup is {warmup})" in said
    assert said in fitted(config, (1, 8, 8), 600, cuda=False)[1]
    plain = override(config, {"method": "ce"})
    assert cautions(findings(), replace(run, config=plain)) == []


def test_many_small_classes_are_counted() -> None:
    said = cautions(findings((10,) * 60), record())
    assert len(said) == 1 and "All 60 classes have fewer than 20 samples" in said[0]


def test_one_list_is_in_the_card_the_report_and_estimate_json(tmp_path: Path, source: str) -> None:
    """Lambda_u is left open, so that a run of 48 pictures makes an estimate, and a poor one."""
    run = start(tmp_path / "run", tiny_config(source, training__lambda_u=None))
    steps = each_epoch(run)
    next(steps), next(steps)  # the warm-up, and the epoch before which the noise is estimated
    early = json.loads(run.folder.estimate.read_text())["cautions"]
    assert [step.record["phase"] for step in steps][-1] == "final"
    folder = RunFolder(tmp_path / "run")
    said = cautions(read_findings(folder), read_record(folder))
    assert any("Do not trust the estimate after the warm-up" in words for words in said)
    assert any("are few" in words for words in said)
    assert set(early) <= set(said)
    assert json.loads(folder.estimate.read_text())["cautions"] == said
    text, page = folder.card.read_text(), run_page(run_report(folder.path)[0])
    assert all(f"- {plain(words)}\n" in text and html.escape(words) in page for words in said)
    resume(folder.path)
    assert json.loads(folder.estimate.read_text())["cautions"] == said
