"""The demo: digits with 40 % wrong labels, plain training against labelsieve, same network and epochs; its figures."""

import numpy as np

from labelsieve.config.resolve import resolve
from labelsieve.config.schema import Config
from labelsieve.methods.parts.diagnostics import precision_recall
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
