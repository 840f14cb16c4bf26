"""Where networks err more often than labels: how many are listed, and what the report, the card and the classifier say of it."""

from pathlib import Path

import numpy as np
import pytest

from labelsieve import NoisyLabelClassifier
from labelsieve.issues.estimate import LIMITED
from labelsieve.methods.parts.estimate import NoiseEstimate
from labelsieve.results.reporting import run_report
from labelsieve.runs.findings import read_findings
from labelsieve.train.loop import each_epoch
from labelsieve.train.start import start
from runs.tiny import arrays_file, pictures, tiny_config


def limit(seen: object) -> NoiseEstimate:
    return NoiseEstimate(0.05, 0.02, 0.2, (0.05,) * 3)


def finished(path: Path) -> Path:
    source = arrays_file(path / "a.npz", **pictures(80))
    run = start(path / "run", tiny_config(source, data__noise="sym:0.4"))
    for _ in each_epoch(run):
        pass
    return run.folder.path


def test_a_limit_bounds_the_list_and_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from labelsieve.runs.folder import RunFolder

    (tmp_path / "free").mkdir()
    free = read_findings(RunFolder.open(finished(tmp_path / "free")))
    monkeypatch.setattr("labelsieve.train.build.flag_limit", limit)
    (tmp_path / "bound").mkdir()
    path = finished(tmp_path / "bound")
    bound = read_findings(RunFolder.open(path))
    assert not free.limited and bound.limited
    assert free.is_issue.sum() > 4 and bound.is_issue.sum() == 4  # of 80
    assert (free.score == bound.score).all() and (free.order == bound.order).all()  # the ranking stays
    assert set(np.flatnonzero(bound.is_issue)) == set([i for i in free.order if free.is_issue[i]][:4])
    assert bound.share.share <= 0.05 and bound.share.low <= 0.02 and bound.share.high >= 0.15
    report, _ = run_report(path)
    assert report.limited and report.actions["keep"] == 76
    assert LIMITED in (path / "README.md").read_text(encoding="utf-8")


def test_of_few_labels_the_interval_reaches_down_to_what_neighbours_say(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from labelsieve.runs.folder import RunFolder

    found = {}
    for least in (None, 0.01):
        monkeypatch.setattr("labelsieve.train.build.least_wrong", lambda seen, least=least: least)
        (tmp_path / str(least)).mkdir()
        found[least] = read_findings(RunFolder.open(finished(tmp_path / str(least))))
    more, fewer = found[None].chances.opinions, found[0.01].chances.opinions
    assert len(fewer) == len(more) + 1 and fewer[-1].mean() == pytest.approx(0.01)
    assert (found[0.01].share.share, found[0.01].share.high) == (found[None].share.share, found[None].share.high)
    assert (found[0.01].is_issue == found[None].is_issue).all()


def test_the_classifier_is_bound_by_the_same_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    truth = np.arange(120) % 2
    given = np.where(np.arange(120) < 24, 1 - truth, truth)
    samples = 3 * np.eye(2)[truth] + rng.normal(size=(120, 2))
    free = NoisyLabelClassifier(epochs=6, random_state=0).fit(samples, given)
    monkeypatch.setattr("labelsieve.train.build.Parts.limit", lambda self, seen: limit(seen))
    bound = NoisyLabelClassifier(epochs=6, random_state=0).fit(samples, given)
    assert free.issues_.is_label_issue.sum() > bound.issues_.is_label_issue.sum() == 6
    assert (free.clean_probability_ == bound.clean_probability_).all()
