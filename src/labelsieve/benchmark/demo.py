"""The demo: digits with 40 % wrong labels, plain training against labelsieve, same network and epochs.

It writes a summary and an HTML report of two finished runs. All figures are those of the runs.
"""

from typing import Any

import numpy as np

from labelsieve.config.resolve import resolve
from labelsieve.config.schema import Config
from labelsieve.methods.parts.diagnostics import precision_recall
from labelsieve.report.charts import Curve
from labelsieve.report.demo import DemoReport, DemoRow, Suspect
from labelsieve.train.run import Run

METHODS = ("ce", "cpc")
NAMES = {"ce": "plain training", "cpc": "labelsieve"}
NOISE = 0.4


def demo_config(method: str, seed: int, epochs: int | None = None) -> Config:
    return resolve(
        "digits",
        options={"method": method, "seed": seed, "data.noise": f"sym:{NOISE:g}", "training.epochs": epochs},
    )


def wrong_in(run: Run) -> np.ndarray:
    """(N,) bool: whose label was made wrong."""
    assert run.rows.truth is not None
    return (run.rows.truth.labels != run.rows.data.labels).numpy()


def summarise(runs: dict[str, Run]) -> dict[str, dict[str, float | None]]:
    """The figures of summary.json: accuracies in percent, the rest as shares."""
    import torch

    cpc = runs["cpc"]
    precision, recall = precision_recall(torch.from_numpy(cpc.found.is_issue), torch.from_numpy(wrong_in(cpc)))
    result: dict[str, dict[str, float | None]] = {}
    for method in METHODS:
        accuracies = test_accuracies(runs[method])
        result[method] = {
            "accuracy_last": round(accuracies[-1], 2),
            "accuracy_best": round(max(accuracies), 2),
        }
    final = runs["cpc"].metrics[-1]["auc_prototype"]
    result["cpc"] |= {
        "auc": round(sum(final) / len(final), 4),
        "issue_precision": None if precision is None else round(precision, 4),
        "issue_recall": None if recall is None else round(recall, 4),
    }
    return result


def test_accuracies(run: Run) -> list[float]:
    return [record["accuracy"]["both"] for record in run.metrics if "accuracy" in record]


def report(runs: dict[str, Run], summary: dict[str, dict[str, float | None]]) -> DemoReport:
    cpc = runs["cpc"]
    data, found, wrong = cpc.rows.data, cpc.found, wrong_in(cpc)
    best = [found.order[i] for i in range(24)]
    suspects = [
        Suspect(
            data.images[i].numpy(),
            data.ids[i],
            data.classes[int(data.labels[i])],
            data.classes[found.suggested[i]],
            float(found.score[i]),
            bool(wrong[i]),
        )
        for i in best
    ]
    return DemoReport(
        title="labelsieve: the demo",
        lead=f"{len(data):,} handwritten digits, many labelled wrong on purpose, and two ways to train on them for "
        f"{cpc.epoch} epochs.",
        rows=[_row(method, summary[method]) for method in METHODS],
        accuracy=[_accuracy_curve(NAMES[method], runs[method]) for method in METHODS],
        auc=_auc_curves(cpc),
        warmup=cpc.parts.method.c.warmup,
        losses=found.loss,
        wrong=wrong,
        suspects=suspects,
        settings=_settings(cpc),
    )


def _row(method: str, figures: dict[str, float | None]) -> DemoRow:
    def share(name: str) -> float:
        value = figures[name]
        assert value is not None
        return value / 100

    rest = {name: figures.get(name) for name in ("auc", "issue_precision", "issue_recall")}
    return DemoRow(NAMES[method], share("accuracy_last"), share("accuracy_best"), **rest)


def _accuracy_curve(name: str, run: Run) -> Curve:
    values = [value / 100 for value in test_accuracies(run)]
    return Curve(name, list(range(1, len(values) + 1)), values)


def _auc_curves(run: Run) -> list[Curve]:
    records = [record for record in run.metrics if "auc_loss" in record and record["phase"] != "final"]
    epochs = [record["epoch"] for record in records]
    names = {"auc_loss": "mixture over the losses", "auc_prototype": "class prototypes"}
    return [Curve(words, epochs, [_mean(record[key]) for record in records]) for key, words in names.items()]


def _mean(values: list[float | None]) -> float:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else float("nan")


def _settings(run: Run) -> dict[str, str]:
    config: Any = run.config
    return {
        "data": f"scikit-learn's digits, {len(run.rows.data)} to train on",
        "noise": config.data.noise,
        "network": config.network,
        "epochs": str(config.training.epochs),
        "warm-up": f"{config.training.warmup} epochs",
        "cleaner": config.cleaner,
        "batch": str(config.training.batch),
        "learning rate": f"{config.training.lr:g}",
        "weight of the unlabelled loss": f"{run.parts.method.c.lambda_u:g}",
        "seed": str(config.seed),
    }
