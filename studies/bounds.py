"""How good could the training be if the division were perfect? The same two networks, divided by what is true.

`python -m studies.bounds DATA --out RUN --table FILE.csv` warms up as a run does (or goes on from a run that stands
at the end of its warm-up) and then takes exactly the right labels as clean. A bound to hold cleaners against, never a method:
it reads the true labels, so nothing of it is offered for use.
"""

import csv
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer
from torch import Tensor

from labelsieve.benchmark.against_cleanlab import right_labels
from labelsieve.config.resolve import resolve
from labelsieve.errors import ToolError
from labelsieve.methods.cpc import Cpc
from labelsieve.methods.dividemix import DivideMix
from labelsieve.methods.epochs import FINAL, learn
from labelsieve.methods.parts.evidence import Evidence
from labelsieve.methods.parts.mixture import MixtureCleaner
from labelsieve.runs.findings import tail
from labelsieve.terminal.console import as_command, check_new, console
from labelsieve.terminal.training import opened
from labelsieve.train.run import Run
from studies.known import check_every_row, held_pictures


class Known(MixtureCleaner):
    """Judges by the truth: chance 1 for a right label, 0 for a wrong one."""

    def __init__(self, right: Tensor) -> None:
        super().__init__()
        self.right = right

    def judge(self, seen: Evidence) -> Tensor:
        return self.right.float()


def accuracy(run: Run) -> float:
    """Percent, by the sum of both networks' logits on the test pictures."""
    held = held_pictures(run.rows)
    logits = sum(run.parts.engine.predict(net, held.images).logits for net in run.parts.method.nets)
    assert isinstance(logits, Tensor)
    return 100 * float((logits.argmax(1).cpu() == held.labels).float().mean())


def bounded(run: Run, table: Path) -> list[dict[str, Any]]:
    """Train from where the run stands to its end, a row of the table for each epoch; lines as in metrics.jsonl."""
    held_pictures(run.rows)
    right = right_labels(run.rows).to(run.parts.engine.device)
    method = run.parts.method
    assert isinstance(method, DivideMix)
    found: list[dict[str, Any]] = []
    method.settle(replace(method.c, mixture_threshold=0.5, least_clean=0.0))  # exactly the right ones, and no more
    method.mixtures = [Known(right) for _ in method.nets]
    if isinstance(method, Cpc):
        method.judges = [None for _ in method.nets]
    with table.open("x", newline="", encoding="utf-8") as file:
        rows = csv.writer(file)
        rows.writerow(("epoch", "accuracy"))
        for epoch in learn(method, run.parts.engine, run.epoch):
            if epoch.phase != FINAL:
                reached = accuracy(run)
                found.append({"epoch": epoch.index + 1, "phase": epoch.phase, "accuracy": {"both": reached}})
                rows.writerow((epoch.index + 1, f"{reached:.2f}"))
                file.flush()
    return found


def main(
    data: Annotated[str, typer.Argument(help="As for `labelsieve train`; the true labels must be known.")],
    out: Annotated[Path, typer.Option(help="The run folder; made, or gone on with.")],
    table: Annotated[Path, typer.Option(help="The CSV file to write, every epoch's test accuracy; it must not exist.")],
    preset: Annotated[str | None, typer.Option(help="A named group of settings.")] = None,
    noise: Annotated[str | None, typer.Option(help="Wrong labels to make on purpose.")] = None,
    settings: Annotated[list[str] | None, typer.Option("--set", help="KEY=VALUE, any setting.")] = None,
) -> None:
    """Train with the division that only the truth can make, and print the accuracy it leads to."""
    check_new("--table", table)
    config = resolve(data, named=preset, options={"data.noise": noise}, settings=settings or ())
    check_every_row(config)
    run = opened(out, config, resume=True)
    if run.epoch >= run.parts.method.training.epochs:
        raise ToolError(f"{out}: this run is done, so no epoch is left to train; name another --out")
    found = bounded(run, table)
    end = tail(found)
    assert end is not None
    last = found[-1]["accuracy"]["both"]
    console.print(f"with the true division: last {last:.2f}, mean of last {end.epochs} {end.mean:.2f}")


if __name__ == "__main__":
    as_command(main)
