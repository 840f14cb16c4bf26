"""The bound: with the true division the same training is at least as good, and its table has every epoch."""

import csv
from pathlib import Path

from labelsieve.benchmark.bounds import bounded
from labelsieve.runs.resolve import resolve
from labelsieve.runs.train import begin, drive


def test_the_true_division_bounds_what_cleaners_reach(tmp_path: Path) -> None:
    settings = ["training.epochs=5", "training.warmup=2", "training.lambda_u=0"]
    config = resolve("digits", options={"data.noise": "sym:0.6", "data.limit": 600}, settings=settings)
    *_, last, _ = drive(begin(tmp_path / "run", config))  # the very last only divides
    accuracies = bounded(begin(tmp_path / "bound", config), tmp_path / "bound.csv")
    assert accuracies[-1] > last.record["accuracy"]["both"]
    with (tmp_path / "bound.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [int(row["epoch"]) for row in rows] == [1, 2, 3, 4, 5]
    assert [float(row["accuracy"]) for row in rows] == [round(value, 2) for value in accuracies]
