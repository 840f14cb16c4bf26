"""A sweep of a few seconds: some cleaners on striped pictures. As a command it works in a sweep folder and says what it did."""

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from labelsieve.reproduce.paper import Cell, Job, Table
from labelsieve.reproduce.sweep import Report, open_sweep, work
from labelsieve.reproduce.tasks import Places, Settings, Task, tasks_for
from labelsieve.train.loop import Progress, each_epoch
from labelsieve.train.run import Run
from runs.tiny import SETTINGS

CLEANERS = ("ce", "gmm-agn", "cpc-awr")
EPOCHS = 3


def job(cleaner: str, **changes: Any) -> Job:
    how = {"method": "ce"} if cleaner == "ce" else {"cleaner": cleaner}
    options = SETTINGS | how | changes
    options.pop("training.epochs")
    return Job(f"stripes+{cleaner}", "arrays", "digits", EPOCHS, tuple(options.items()), 48)


def table(cleaners: Sequence[str] = CLEANERS) -> Table:
    cells = tuple(Cell(cleaner, "stripes", job(cleaner), 90.0, 0.5) for cleaner in cleaners)
    return Table("tiny", "A tiny table", cells)


def tasks(
    source: str, out: Path, seeds: int = 1, cleaners: Sequence[str] = CLEANERS, settings: Settings | None = None
) -> list[Task]:
    return tasks_for(table(cleaners).jobs, range(seeds), settings or Settings(), Places({"arrays": source}), out)


def trained(said: list[str]) -> Callable[[Task, Run, Callable[[Progress], None]], bool]:
    """Train to the end, noting each epoch that was really trained."""

    def train(task: Task, run: Run, after: Callable[[Progress], None]) -> bool:
        for step in each_epoch(run):
            after(step)
            if step.record["phase"] != "final":
                said.append(f"{task.name} {step.epoch}")
                print(said[-1], flush=True)
        return run.done

    return train


def sweep(source: str, out: Path, said: list[str], seeds: int = 1, cleaners: Sequence[str] = CLEANERS) -> Report:
    return work(open_sweep(out, Settings()), tasks(source, out, seeds, cleaners), trained(said))


if __name__ == "__main__":
    report = sweep(sys.argv[1], Path(sys.argv[2]), [], int(sys.argv[3]))
    print("busy", *report.busy)
    print("failed", report.failed)
    sys.exit(1 if report.failed else 0)
