"""Every method from the command line to the review page: nothing outside of its file knows it."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch

from labelsieve.api.classifier import NoisyLabelClassifier
from labelsieve.errors import ToolError, UsageError
from labelsieve.issues.table import read_issues
from labelsieve.methods.registry import METHODS, run_method_file
from labelsieve.predict.model import load_model
from labelsieve.reproduce.compare import compare_runs
from labelsieve.results.reporting import run_report
from labelsieve.review.opening import open_review
from labelsieve.train.loop import each_epoch
from labelsieve.train.start import resume, start
from runs.tiny import arrays_file, contents, tiny_config, whole

EVERY = sorted(METHODS)
OWN = """
from dataclasses import dataclass
from labelsieve.config.setting import setting
from labelsieve.methods.ce import plain_epoch
from labelsieve.methods.contract import Method

class Mine(Method):
    name = "mine"

    @dataclass(frozen=True)
    class Config:
        penalty: bool = setting(True, "negative entropy")

    def phases(self, epoch, look):
        yield plain_epoch(self, self.nets[0], epoch, self.c.penalty, "mine")
"""


@pytest.mark.parametrize("name", EVERY)
def test_a_run_stops_resumes_and_is_told_of(name: str, tmp_path: Path) -> None:
    source = arrays_file(tmp_path / "a.npz")
    config = tiny_config(source, method=name, cleaner=next(iter(METHODS[name].cleaners), "gmm-agn"), training__epochs=3)
    run = start(tmp_path / "run", config)
    for _ in each_epoch(run, stop=lambda: run.epoch == 2):
        pass
    again = resume(tmp_path / "run")
    assert again.epoch == 2 and again.config == run.config
    for _ in each_epoch(again):
        pass
    whole(tmp_path / "whole", config)
    assert contents(tmp_path / "run") == contents(tmp_path / "whole")
    issues = read_issues(tmp_path / "run" / "issues.csv")
    assert len(issues["id"]) == len(run.rows.data) and all(0 <= score <= 1 for score in issues["label_score"])
    lines = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    assert lines[-1]["phase"] == "final" and any(key.startswith("auc_") for key in lines[-1])
    shares = load_model(tmp_path / "run").probabilities(run.rows.data.images)
    assert shares.shape == (len(run.rows.data), 3) and np.allclose(shares.sum(1), 1, atol=1e-4)
    report, _ = run_report(tmp_path / "run")
    assert name in report.lead and report.settings["method"] == name
    review = open_review(tmp_path / "run")
    assert len(review.table) == len(run.rows.data)


@pytest.mark.parametrize("name", EVERY)
def test_python_fits_it(name: str) -> None:
    rng = np.random.default_rng(0)
    truth = np.arange(90) % 3
    vectors = 3 * np.eye(3)[truth] + rng.normal(size=(90, 3))
    labels = np.where(np.arange(90) < 9, (truth + 1) % 3, truth)
    model = NoisyLabelClassifier(method=name, epochs=6, warmup=2, lr=0.05, random_state=0).fit(vectors, labels)
    assert model.score(vectors, truth) > 0.85 and len(model.label_issues_) == 90
    assert model.clean_probability_[:9].mean() < model.clean_probability_[9:].mean()


def test_a_method_of_ones_own_comes_from_a_file_that_is_named(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(OWN, encoding="utf-8")
    source = arrays_file(tmp_path / "a.npz")
    try:
        assert run_method_file(tmp_path / "mine.py") == "mine"
        run = whole(tmp_path / "run", tiny_config(source, method="mine", cleaner="gmm-agn", mine__penalty=False))
        assert run.done and run.config.own == {"penalty": False} and [line["phase"] for line in run.metrics][:2] == ["mine"] * 2
        with pytest.raises(UsageError, match="mine.penalty"):
            tiny_config(source, method="ce", mine__penalty=False)
    finally:
        METHODS.pop("mine", None)
    with pytest.raises((ToolError, UsageError), match=r'method "mine" is not known.*--method-file'):
        resume(tmp_path / "run")
    assert run_report(tmp_path / "run") and load_model(tmp_path / "run", torch.device("cpu"))  # what only reads needs no file
    assert compare_runs([tmp_path / "run", shutil.copytree(tmp_path / "run", tmp_path / "again")])[1].record.config.own
    with pytest.raises(UsageError, match="no such Python file"):
        run_method_file(tmp_path / "other.py")
