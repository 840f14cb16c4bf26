"""One run on noise made on purpose, and what came of it as a small JSON file: for tables over many settings and machines.

`python -m studies.known_noise DATA --noise SPEC --out FILE.json` trains as `labelsieve train` does and writes what
was really wrong, what was estimated of it after the warm-up, accuracy epoch by epoch, how the issues rank and what they cost.
`--trail FILE.npz` keeps what every epoch said of every label (see scores_study), `--evidence FILE.npz` the features after the
warm-up, so that scores and estimates can be compared later without training again.
"""

import json
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import torch
import typer

from labelsieve.benchmark.against_cleanlab import average_precision, peak_mib, recall_at_true_count, wrong_labels
from labelsieve.config.schema import Config
from labelsieve.data.label_files import read_json
from labelsieve.issues.table import read_issues
from labelsieve.methods.epochs import Epoch
from labelsieve.methods.parts.estimate import estimate_noise
from labelsieve.methods.parts.evidence import Evidence
from labelsieve.runs import atomic
from labelsieve.terminal.console import as_command, check_new
from labelsieve.train.loop import each_epoch
from labelsieve.train.run import Run
from labelsieve.train.start import start
from studies.known import check_every_row, check_same
from studies.scores_study import Trail, Watch, write_arrays


class Noted:
    """Watches a run without any say in it: a trail of every epoch, and the evidence that the warm-up left behind."""

    def __init__(self, run: Run, clock: Callable[[], float]) -> None:
        self.run, self.watch = run, Watch(run, clock)
        self.warm: tuple[Evidence, ...] = ()

    def __call__(self, epoch: Epoch) -> None:
        self.watch(epoch)
        if epoch.verdict is not None and not self.warm:
            self.warm = epoch.verdict.seen


def measured(run: Run, noted: Noted, cpu_seconds: float) -> dict[str, Any]:
    """What is known once the run is done. True labels are looked at here only."""
    wrong, labels = wrong_labels(run.rows), run.rows.data.labels
    shares = [float(wrong[(labels == k).numpy()].mean()) for k in range(len(run.rows.data.classes))]
    accuracies = [record["accuracy"]["both"] for record in run.metrics if "accuracy" in record]
    facts = {
        "samples": len(wrong),
        "wrong": float(wrong.mean()),
        "wrong_by_class": shares,
        "accuracy": accuracies,
        "cpu_seconds": cpu_seconds,
        "peak_mib": peak_mib(),
        "epochs": run.epoch,
        "lambda_u": getattr(run.parts.method.c, "lambda_u", None),  # not every method has it
    }
    if noted.warm:
        found = estimate_noise(noted.warm)
        facts["estimate"] = {"share": found.share, "low": found.low, "high": found.high, "by_class": list(found.by_class)}
    return facts | (ranked(run, wrong) if run.home.issues.exists() else {})


def ranked(run: Run, wrong: np.ndarray) -> dict[str, Any]:
    """How issues.csv ranks the wrong labels, and how many it flags."""
    issues = read_issues(run.home.issues)
    place = {name: row for row, name in enumerate(issues["id"])}
    order = np.array([place[name] for name in run.rows.data.ids])
    flagged = np.array(issues["is_label_issue"], dtype=bool)
    found = {"average_precision": average_precision(order, wrong) if wrong.any() else None, "flagged": float(flagged.mean())}
    return found | {"recall": recall_at_true_count(order, wrong) if wrong.any() else None}


def trained(config: Config, trail: Path | None, evidence: Path | None) -> dict[str, Any]:
    """Train in a folder that is not kept; the facts, with the arrays written where they are wanted."""
    with tempfile.TemporaryDirectory() as folder:
        began, started = time.process_time(), time.perf_counter()
        run = start(Path(folder) / "run", config)
        noted = Noted(run, time.process_time)
        for _ in each_epoch(run, watch=noted):
            pass
        facts = measured(run, noted, time.process_time() - began) | {"seconds": time.perf_counter() - started}
    if trail is not None:
        write_arrays(trail, slim(noted.watch.trail()))
    if evidence is not None and noted.warm:
        tables = {f"features{r}": each.features.half().cpu().numpy() for r, each in enumerate(noted.warm)}
        tables |= {f"probs{r}": each.probs.half().cpu().numpy() for r, each in enumerate(noted.warm)}
        given = {"labels": run.rows.data.labels.numpy(), "wrong": wrong_labels(run.rows)}
        write_arrays(evidence, tables | given)
    return facts


def slim(trail: Trail) -> dict[str, np.ndarray]:
    """The trail with both networks' mean in place of each (S, 1, N), in half the digits: small enough to carry away."""
    tables = ("share", "margin", "by_loss", "by_prototype", "prototype_share")
    return {
        name: value.mean(1, keepdims=True).astype(np.float16) if name in tables else value for name, value in vars(trail).items()
    }


def main(
    data: Annotated[str, typer.Argument(help="As for `labelsieve train`.")],
    out: Annotated[Path, typer.Option(help="The JSON file to write; one of the same settings is not trained again.")],
    noise: Annotated[str, typer.Option(help="Wrong labels to make on purpose.")] = "none",
    seed: Annotated[int, typer.Option(help="Of weights, order, views and noise.")] = 0,
    limit: Annotated[int | None, typer.Option(help="Train on a fixed subset of this size.")] = None,
    method: Annotated[str | None, typer.Option(help="As for `labelsieve train`.")] = None,
    settings: Annotated[list[str] | None, typer.Option("--set", help="KEY=VALUE, any setting.")] = None,
    trail: Annotated[Path | None, typer.Option(help="Also keep what every epoch said: a new npz.")] = None,
    evidence: Annotated[Path | None, typer.Option(help="Also keep the features after the warm-up: a new npz.")] = None,
) -> None:
    """Train once and write down what came of it."""
    from labelsieve.config.resolve import resolve

    options = {"data.noise": noise, "seed": seed, "data.limit": limit, "method": method}
    config = resolve(data, options=options, settings=settings or ())
    check_every_row(config)
    said = {"data": data.partition(":")[0], "noise": noise, "seed": seed, "limit": limit, "method": config.method}
    said |= {"settings": list(settings or ())}
    if out.exists():
        there = read_json(out)
        check_same(out, there if isinstance(there, dict) else {}, said)
        return
    check_new("--trail", trail)
    check_new("--evidence", evidence)
    torch.set_num_threads(1)
    facts = said | trained(config, trail, evidence)
    atomic.write_text(out, json.dumps(facts) + "\n")


if __name__ == "__main__":
    as_command(main)
