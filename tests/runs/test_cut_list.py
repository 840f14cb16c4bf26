"""The list is cut by the estimate: how many are listed, and what report, card, estimate.json and classifier say of it."""

import json
from pathlib import Path

import numpy as np
import pytest

from labelsieve import NoisyLabelClassifier
from labelsieve.issues.estimate import HOW, Share
from labelsieve.methods.parts.estimate import NoiseEstimate
from labelsieve.results.reporting import run_report
from labelsieve.runs.findings import Findings, read_findings
from labelsieve.runs.folder import RunFolder
from labelsieve.train.loop import each_epoch
from labelsieve.train.start import start
from runs.tiny import arrays_file, pictures, tiny_config


def finished(path: Path, monkeypatch: pytest.MonkeyPatch, noise: NoiseEstimate) -> tuple[Path, Findings]:
    monkeypatch.setattr("labelsieve.train.build.Parts.noise", lambda self, verdict, early: noise)
    path.mkdir()
    source = arrays_file(path / "a.npz", **pictures(80))
    run = start(path / "run", tiny_config(source, data__noise="sym:0.4"))
    for _ in each_epoch(run):
        pass
    return run.home.path, read_findings(RunFolder.open(run.home.path))


def test_an_estimate_cuts_the_list_and_a_division_is_the_list(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole, few = ((0.05, 0.02, 0.2, (0.05,) * 3) for _ in range(2))
    _, free = finished(tmp_path / "free", monkeypatch, NoiseEstimate(*whole, by="division"))
    path, bound = finished(tmp_path / "bound", monkeypatch, NoiseEstimate(*few, by="neighbours"))
    assert free.by == "division" and bound.by == "neighbours" and bound.share == Share(0.05, 0.02, 0.2)
    assert free.is_issue.sum() > 4 and bound.is_issue.sum() == 4  # of 80
    assert (free.score == bound.score).all() and (free.order == bound.order).all()  # the ranking stays
    assert set(np.flatnonzero(bound.is_issue)) == set([i for i in free.order if free.is_issue[i]][:4])
    report, _ = run_report(path)
    assert report.by == "neighbours" and report.actions["keep"] == 76
    assert HOW["neighbours"] in (path / "README.md").read_text(encoding="utf-8")
    assert json.loads((path / "estimate.json").read_text())["estimate"] == {
        "share": 0.05,
        "low": 0.02,
        "high": 0.2,
        "by": "neighbours",
    }


def test_where_it_cannot_be_known_no_file_has_a_percentage_of_wrong_labels(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, found = finished(tmp_path / "a", monkeypatch, NoiseEstimate(0.3, 0.0, 1.0, (0.3,) * 3))
    assert not found.share.known and found.is_issue.any()
    assert json.loads((path / "estimate.json").read_text())["estimate"] is None
    card = (path / "README.md").read_text(encoding="utf-8")
    assert "| wrong labels, estimated | cannot be known here |" in card and "seem" not in card.split("## Data")[1]


def test_the_classifier_is_bound_by_the_same_estimate(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    truth = np.arange(120) % 2
    given = np.where(np.arange(120) < 24, 1 - truth, truth)
    samples = 3 * np.eye(2)[truth] + rng.normal(size=(120, 2))
    free = NoisyLabelClassifier(epochs=6, random_state=0).fit(samples, given)
    noise = NoiseEstimate(0.05, 0.02, 0.2, (0.05,) * 2)
    monkeypatch.setattr("labelsieve.train.build.Parts.noise", lambda self, verdict, early: noise)
    bound = NoisyLabelClassifier(epochs=6, random_state=0).fit(samples, given)
    assert free.issues_.is_label_issue.sum() > bound.issues_.is_label_issue.sum() == 6
    assert (free.clean_probability_ == bound.clean_probability_).all()
