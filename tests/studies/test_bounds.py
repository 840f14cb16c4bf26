"""The bound: with the true division the same training is at least as good, and its table has every epoch."""

import csv
import re
from pathlib import Path

import pytest

from labelsieve.config.resolve import resolve
from labelsieve.train.loop import each_epoch
from labelsieve.train.start import start
from studies.bounds import bounded, main


def test_the_true_division_bounds_what_cleaners_reach(tmp_path: Path) -> None:
    settings = ["training.epochs=5", "training.warmup=2", "training.lambda_u=0"]
    config = resolve("digits", options={"data.noise": "sym:0.6", "data.limit": 600}, settings=settings)
    *_, last, _ = each_epoch(start(tmp_path / "run", config))  # the very last only divides
    accuracies = [line["accuracy"]["both"] for line in bounded(start(tmp_path / "bound", config), tmp_path / "bound.csv")]
    assert accuracies[-1] > last.record["accuracy"]["both"]
    with (tmp_path / "bound.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [int(row["epoch"]) for row in rows] == [1, 2, 3, 4, 5]
    assert [float(row["accuracy"]) for row in rows] == [round(value, 2) for value in accuracies]


def test_its_mean_leaves_the_warm_up_out_as_that_of_runs_does(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    settings = ["training.epochs=4", "training.warmup=2", "training.lambda_u=0", "data.limit=200"]
    main("digits", tmp_path / "run", tmp_path / "t.csv", noise="sym:0.4", settings=settings)
    with (tmp_path / "t.csv").open() as file:
        *_, before, last = (float(row["accuracy"]) for row in csv.DictReader(file))
    found = re.search(r"last ([\d.]+), mean of last 2 ([\d.]+)", capsys.readouterr().out)
    assert found is not None and [float(text) for text in found.groups()] == pytest.approx([last, (before + last) / 2], abs=0.011)


def test_a_least_share_does_not_put_wrong_labels_among_the_right_ones(tmp_path: Path) -> None:
    tables = []
    for least in ("0", "0.95"):
        settings = [
            "training.epochs=4",
            "training.warmup=2",
            "training.lambda_u=0",
            "data.limit=200",
            f"cleaning.least_clean={least}",
        ]
        main("digits", tmp_path / f"run{least}", tmp_path / f"{least}.csv", noise="sym:0.4", settings=settings)
        tables.append((tmp_path / f"{least}.csv").read_text())
    assert tables[0] == tables[1]
