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
from labelsieve.issues.estimate import UNKNOWN_WORDS, Chances, Share
from labelsieve.report.run import run_page
from labelsieve.results.card import cautions, plain
from labelsieve.results.reporting import run_report
from labelsieve.runs.findings import Findings, Record, read_findings, read_record
from labelsieve.runs.folder import RunFolder
from labelsieve.train.loop import each_epoch
from labelsieve.train.start import resume, start
from runs.tiny import tiny_config


def findings(counts: tuple[int, ...] = (300, 300), share: Share = Share(0.1, 0.05, 0.15)) -> Findings:  # noqa: B008
    given = np.repeat(np.arange(len(counts)), counts)
    zeros = np.zeros(len(given))
    names = [f"class {k}" for k in range(len(counts))]
    chances = Chances(zeros, zeros[None])
    order = np.arange(len(given))
    return Findings({}, names, order, given, given, 1 - zeros, zeros > 0, zeros, chances, None, zeros > 0, share, "heads")


def record(epochs: int = 20, accuracy: float = 90.0, **last: Any) -> Record:
    lines = [{"epoch": epoch + 1, "accuracy": {"both": accuracy}} for epoch in range(epochs)]
    return Record(override(Config(), {"training.epochs": 20}), {}, [*lines[:-1], lines[-1] | last], 1.0, ())


@pytest.mark.parametrize(
    ("found", "run", "words"),
    [
        (findings((60, 60)), record(), "120 samples are few"),
        (findings((370, 370, 19)), record(), 'fewer than 20 samples ("class 2": 19)'),
        (findings((600, 20)), record(), "30 times the smallest"),
        (findings(share=Share(0.3, 0.1, 0.7)), record(), "cannot be known here"),
        (findings(share=Share(0.8, 0.7, 0.9)), record(), "Most labels look wrong"),
        (findings(), record(12), "Stopped after 12 of 20 epochs"),
        (findings(), record(accuracy=60.0), "hardly more than by guessing"),
        (findings(), record(notes=["network 1: the partition collapsed: class 0 swallows the rest"]), "Do not use this list"),
    ],
)
def test_each_reason_for_doubt_is_said_alone(found: Findings, run: Record, words: str) -> None:
    said = cautions(found, run)
    assert len(said) == 1 and words in said[0]


def test_a_wide_interval_is_no_caution_by_itself() -> None:
    """It is shown wherever the estimate is, and says how far to trust that."""
    assert cautions(findings(share=Share(0.3, 0.1, 0.55)), record()) == []


def test_what_cannot_be_known_is_said_once_and_without_a_number() -> None:
    said = cautions(findings(share=Share(0.3, 0.0, 1.0)), record())
    assert said == [UNKNOWN_WORDS] and "%" not in said[0]


def test_ids_that_a_spreadsheet_would_compute_are_told_once() -> None:
    ids = {"id": ["=cmd|x", "a", "-3", "@b"]}
    (said,) = cautions(replace(findings(), columns=ids), record())
    assert said.startswith('The id "=cmd|x" (and 1 more) looks like a formula to a spreadsheet')
    (path,) = cautions(replace(findings(), columns={"id": ["1", "2"], "path": ["a.png", "@b.png"]}), record())
    assert path.startswith('The path "@b.png" looks like a formula')
    classes = replace(findings(), columns=ids, classes=["=cmd|x", "b"])
    (said,) = cautions(classes, record())
    assert said.startswith('The class "=cmd|x" looks like a formula')


def test_nothing_is_said_where_nothing_is_amiss() -> None:
    assert cautions(findings(), record()) == []


def test_a_collapse_that_is_over_is_none() -> None:
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
    """Lambda_u is left open, so that estimate.json is there after the warm-up, too."""
    run = start(tmp_path / "run", tiny_config(source, training__lambda_u=None))
    steps = each_epoch(run)
    next(steps), next(steps)  # the warm-up, and the epoch before which the noise is estimated
    early = json.loads(run.folder.estimate.read_text())["cautions"]
    assert [step.record["phase"] for step in steps][-1] == "final"
    folder = RunFolder(tmp_path / "run")
    said = cautions(read_findings(folder), read_record(folder))
    assert any("are few" in words for words in said)
    assert set(early) <= set(said)
    assert json.loads(folder.estimate.read_text())["cautions"] == said
    text, page = folder.card.read_text(), run_page(run_report(folder.path)[0])
    assert all(f"- {plain(words)}\n" in text and html.escape(words) in page for words in said)
    resume(folder.path)
    assert json.loads(folder.estimate.read_text())["cautions"] == said
