"""What `reproduce` does with a table: run or resume the tasks of a plan, then write and show the results."""

import shlex
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.table import Table as Grid

from labelsieve.cli.planning import Asked, Planned, planned, say_time
from labelsieve.errors import ToolError, UsageError
from labelsieve.reproduce.figures import draw_all, folders_in, groups_of
from labelsieve.reproduce.paper import Job, Table
from labelsieve.reproduce.results import HEADER, CellResult, Final, cells_of, final, result, write_table
from labelsieve.reproduce.sweep import Report, Sweep, check, open_sweep, work
from labelsieve.reproduce.tasks import Task, held, refuse_other_settings, tasks_for
from labelsieve.runs.findings import read_record
from labelsieve.terminal.console import console, interruptible, parse_duration, stopped_at_once
from labelsieve.terminal.looking import Looking
from labelsieve.terminal.training import show_epochs
from labelsieve.train.loop import Progress, Stopper
from labelsieve.train.run import Run

MEASURED = ("prototypes", "both")


def carry_out(asked: Asked) -> int:
    """Run or resume what is missing, then write the table. The exit code: 1 where a cell failed, a signal's where one came."""
    limit = parse_duration(asked.time_limit) if asked.time_limit else None  # before anything is made
    plan = planned(asked)
    whole = {asked.table.name: plan.plan} if asked.budget else {}
    sweep = open_sweep(asked.out, plan.settings, whole, asked.any_version)
    check(plan.tasks)
    if asked.budget or plan.dropped:
        say_time(plan)
    clock = Deadline(limit)
    with interruptible(stopped_at_once(asked.out)), Looking().shown() as watch:
        report = work(sweep, plan.tasks, clock.train, watch, clock.time_left)
    say_report(report)
    results = write_results(sweep, asked, plan, report)
    say_results(asked.table, results)
    return 1 if report.failed else clock.exit_code if report.stopped else 0


class Deadline:
    """Trains runs one after the other within one time limit."""

    def __init__(self, limit: float | None) -> None:
        self.ends = None if limit is None else time.monotonic() + limit
        self.exit_code = 0
        self.opening = 0.0  # the longest time from a run's opening to the end of its first epoch

    def left(self) -> float | None:
        return None if self.ends is None else self.ends - time.monotonic()

    def time_left(self) -> bool:
        """Always for the first run, so that every call gets on by at least an epoch; not after a signal."""
        left = self.left()
        return not self.exit_code and (left is None or not self.opening or left > self.opening)

    def train(self, task: Task, run: Run, after: Callable[[Progress], None]) -> bool:
        began, first = time.monotonic(), run.epoch

        def seen(step: Progress) -> None:
            after(step)
            if step.epoch <= first + 1:
                self.opening = max(self.opening, time.monotonic() - began)

        stopper = Stopper(self.left())
        done = show_epochs(run, stopper, f"{task.name}:", seen)
        self.exit_code = stopper.exit_code  # also of a signal that came when this run was all but done
        return done


def say_report(report: Report) -> None:
    for name, why in report.lacking.items():
        console.print(f"{name}: not run, it {why}")
    for name, why in report.failed.items():
        console.print(f"{name}: failed: {why}", style="red")
    if report.busy:
        console.print(f"with other processes now: {', '.join(report.busy)}; the last to end writes the whole table")
    if report.stopped:
        console.print("stopped; run the same command again to continue")


def write_results(sweep: Sweep, asked: Asked, plan: Planned, report: Report) -> list[CellResult]:
    """The files have every cell that was asked for or that has runs in the sweep; those that were asked for come back.

    Under a lock, so that of two processes that end together the later one reads what the earlier finished.
    """
    with held(sweep.lock("tables"), wait=True):
        tasks = [*plan.tasks, *begun_before(asked, plan)]
        by_job = {task.job.name: [one for one in tasks if one.job == task.job] for task in tasks}
        results = [result(cell, by_job[cell.job.name], report.failed) for cell in asked.table.cells if cell.job.name in by_job]
        as_begun = plan.settings.words if asked.settings is None else []  # the command tells all, of a sweep gone on with, too
        command = " ".join(shlex.quote(word) for word in ("labelsieve", *sys.argv[1:], *as_begun))
        for place in write_table(sweep.path, asked.table, results, command, made_with(tasks)):
            console.print(f"written: {place}")
    return [one for one in results if one.cell in plan.cells]


def begun_before(asked: Asked, plan: Planned) -> list[Task]:
    """Runs that the sweep has of other cells of the table; not those that another command made otherwise."""
    jobs = [job for job in asked.table.jobs if job not in {task.job for task in plan.tasks}]
    return [task for job in jobs for task in _begun(job, asked, plan)]


def _begun(job: Job, asked: Asked, plan: Planned) -> list[Task]:
    names = [place.parent.name[4:] for place in asked.out.glob(f"runs/{job.name}/seed*/config.yaml")]
    seeds = sorted(int(name) for name in names if name.isdigit())
    try:
        tasks = tasks_for([job], seeds, plan.settings, asked.places, asked.out)
        for task in tasks:
            refuse_other_settings(task)
    except (ToolError, UsageError):
        return []
    return tasks


def made_with(tasks: Sequence[Task]) -> str:
    """Versions, commits and devices of the runs that are done."""
    facts = [read_record(task.folder).environment for task in tasks if task.done]
    versions = sorted({f"labelsieve {one.get('labelsieve')}{_commit(one)}" for one in facts})
    devices = sorted({f"{one.get('device')}, {one.get('threads')} thread{'s' * (one.get('threads') != 1)}" for one in facts})
    return f"{' and '.join(versions)}, {' and '.join(devices)}" if facts else "no run is done yet"


def _commit(facts: Mapping[str, Any]) -> str:
    """Of a run from a git checkout: a version stands for many commits."""
    if not facts.get("commit"):
        return ""
    return f" (commit {facts['commit'][:7]}{', sources changed' if facts.get('commit_differs') else ''})"


def say_results(table: Table, results: Sequence[CellResult]) -> None:
    shown = ("method", "data", "paper", "best", "last", "mark")  # the files have the rest; terminals are narrow
    grid = Grid(title=table.title, title_justify="left", box=None, pad_edge=False)
    for name in shown:
        grid.add_column(name, justify="left" if name in ("method", "data", "mark") else "right", overflow="fold")
    for one in results:
        cells = dict(zip(HEADER, cells_of(one)))
        grid.add_row(*(cells[name] for name in shown))
    console.print(grid)
    if any(one.is_other for one in results):
        console.print("SHORT, LONGER, SUBSET, SET: other runs than the paper's; these numbers do not reproduce it.")


def _three(one: Final | None) -> str:
    if one is None:
        return ""
    last, best = ("-" if number is None else f"{number:.2f}" for number in (one.last, one.best))
    return f"{last} / {one.tail_words or '-'} / {best}"


def say_prototypes(runs: Sequence[Path]) -> None:
    """The prototypes as classifier beside the networks, for runs that are there."""
    grid = Grid(title="Accuracy on test pictures, percent: last / mean of last 10 / best", title_justify="left", box=None)
    for name in ("prototypes", "both networks", "run"):
        grid.add_column(name, justify="left" if name == "run" else "right", overflow="fold")
    for path in runs:
        folders = folders_in([path])
        found = {folder.path: [final(read_record(folder), f"accuracy.{name}") for name in MEASURED] for folder in folders}
        known = {place: finals for place, finals in found.items() if finals[0] is not None}  # of a sweep, some have prototypes
        if not known:
            raise UsageError(f"{path}: no accuracy of prototypes was measured; its cleaner has none, or it has no test pictures")
        for place, finals in known.items():
            grid.add_row(*(_three(one) for one in finals), str(place))
    console.print(grid)
    console.print("The paper: 78.44 on WebVision's first 50 classes.")


def draw(paths: Sequence[Path], out: Path | None) -> None:
    """Figures go to `out`, by default into figures/ of the first folder."""
    place = out or paths[0] / "figures"
    for group in groups_of(folders_in(paths)):
        drawn = draw_all(group, place)
        for line in drawn.found:
            console.print(line)
        for line in drawn.missing:
            console.print(f"not drawn: {line}", style="yellow")
        for file in drawn.files:
            console.print(f"written: {file}")
    console.print("The paper, CIFAR-100 with 90 % symmetric noise: clean 54 %, noisy 53 %.")
