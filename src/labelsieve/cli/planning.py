"""What `reproduce` is to do: from what the user asked to cells and tasks, within a budget if there is one; and that in words."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.table import Table as Grid

from labelsieve.config.method_settings import epochs_of
from labelsieve.config.resolve import parse_settings
from labelsieve.data.sources import source_at, whole_path, whole_spec
from labelsieve.engine.device import choose_device
from labelsieve.errors import UsageError
from labelsieve.reproduce.paper import Cell, Job, Table, chosen
from labelsieve.reproduce.plan import (
    H200,
    TINY,
    MeasuredSpeed,
    alone,
    fit,
    from_bench,
    from_runs,
    measured_here,
    network_of,
    phases,
    total,
)
from labelsieve.reproduce.sweep import read_sweep, refuse_other_sweep
from labelsieve.reproduce.tasks import NEEDS_PATH, Places, Settings, Task, lacks, tasks_for
from labelsieve.terminal.console import console, parse_duration, say_duration

DATA = {
    "cifar10": "CIFAR-10, python version: cifar-10-python.tar.gz, packed or unpacked; --data cifar10:PATH",
    "cifar100": "CIFAR-100, python version: cifar-100-python.tar.gz, packed or unpacked; --data cifar100:PATH",
    "clothing1m": "Clothing1M: a folder with annotations/ and images/; --data clothing1m:PATH, and --pretrained FILE (ResNet-50)",
    "webvision": "WebVision 1.0: a folder with info/, google/ and val_images_256/, and ILSVRC12's validation pictures in "
    "its subfolder ilsvrc12 (`labelsieve inspect webvision:PATH` says what is missing); --data webvision:PATH",
    "fashion-mnist": "Fashion-MNIST: Debian and Ubuntu have it as the package dataset-fashion-mnist "
    "(apt-get install dataset-fashion-mnist); elsewhere --data fashion-mnist:PATH with the four idx files",
    "digits": "digits: inside scikit-learn",
}
# What a sweep says of each run, whatever --set says, and where to say it.
OF_THE_SWEEP = {"seed": "--seeds N, for seeds 0 to N - 1", "data.source": "--data NAME:PATH"}


@dataclass(frozen=True)
class Asked:
    """The command line of `reproduce TABLE`."""

    table: Table
    cells: tuple[str, ...]
    seeds: int | None
    out: Path
    data: tuple[str, ...]
    pretrained: Path | None
    epochs: int | None
    limit: int | None
    sets: tuple[str, ...]
    device: str | None
    budget: str | None
    speed: tuple[Path, ...]
    time_limit: str | None
    any_version: bool
    dry_run: bool = False

    @property
    def settings(self) -> Settings | None:
        """None where nothing was said: then a sweep goes on as it was begun."""
        sets = tuple(absolute_noise(pair) for pair in self.sets)
        for key in parse_settings(sets):
            if key in OF_THE_SWEEP:
                raise UsageError(f"--set {key}=...: a sweep sets that itself; use {OF_THE_SWEEP[key]}")
        return Settings(self.epochs, 1.0, self.limit, sets) if self.epochs or self.limit or sets else None

    @property
    def places(self) -> Places:
        found = {}
        for text in self.data:
            name = text.partition(":")[0]
            if name not in DATA:
                raise UsageError(f'--data "{text}": write NAME:PATH with one of {", ".join(NEEDS_PATH)}, fashion-mnist')
            found[name] = source_at(text)
        pretrained = None if self.pretrained is None else whole_path(self.pretrained)
        return Places(found, self.device, pretrained)


def absolute_noise(pair: str) -> str:
    key, _, value = pair.partition("=")
    path = key.strip() in ("noise", "data.noise") and value.strip().startswith(("file:", "matrix:"))
    return f"data.noise={whole_spec(value.strip())}" if path else pair


@dataclass(frozen=True)
class Planned:
    """What will be done: cells, their tasks, and the settings of the sweep."""

    cells: list[Cell]
    tasks: list[Task]
    settings: Settings
    seeds: int
    dropped: list[Job]
    speeds: list[MeasuredSpeed]
    lacking: tuple[Job, ...] = ()  # kept out of a budget: their data were not named, those of others were
    budget: float | None = None  # in seconds
    before: bool = False  # by an earlier command, with a budget

    @property
    def plan(self) -> dict[str, object]:
        return {"jobs": [task.job.name for task in self.tasks], "seeds": self.seeds, "budget": self.budget}


def planned(asked: Asked) -> Planned:
    """Also with a budget: then what fits it. A sweep that was planned before goes on as planned."""
    budget = None if asked.budget is None else parse_duration(asked.budget)  # before any speed is measured
    sweep = read_sweep(asked.out, asked.any_version)
    settings = asked.settings or (sweep.settings if sweep else Settings())
    cells, before = chosen(asked.table, asked.cells), sweep.plan.get(asked.table.name) if sweep else None
    jobs = list(dict.fromkeys(cell.job for cell in cells))
    seeds = asked.seeds or (before["seeds"] if before else 1 if asked.budget else 3)
    if sweep and asked.settings is not None:
        refuse_other_sweep(sweep, asked.settings)

    def make(some: Sequence[Job], settings: Settings) -> list[Task]:
        return tasks_for(some, range(seeds), settings, asked.places, asked.out)

    if before:
        _refuse_other_budget(asked, budget, before.get("budget"))
        jobs, dropped = [job for job in jobs if job.name in before["jobs"]], [j for j in jobs if j.name not in before["jobs"]]
        kept = [cell for cell in cells if cell.job in jobs]
        tasks = make(jobs, settings)
        return Planned(kept, tasks, settings, seeds, dropped, speeds_for(asked, tasks), budget=budget, before=True)
    speeds = speeds_for(asked, make(jobs, settings))
    if budget is None:
        return Planned(cells, make(jobs, settings), settings, seeds, [], speeds)
    if sweep:
        raise UsageError(
            f"{asked.out}: this sweep was started without a budget for {asked.table.name}; leave --budget out, or another --out"
        )
    lacking = _beside_named_data(make(jobs, settings)) if asked.data else ()
    found = fit([job for job in jobs if job not in lacking], settings, make, speeds, budget)
    kept = [cell for cell in cells if cell.job in found.jobs]
    return Planned(kept, make(found.jobs, found.settings), found.settings, seeds, found.dropped, speeds, lacking, budget)


def _refuse_other_budget(asked: Asked, budget: float | None, planned_for: float | None) -> None:
    """What was planned goes on as planned, so another budget would do nothing; older sweeps do not say what theirs was."""
    if budget is not None and planned_for is not None and budget != planned_for:
        raise UsageError(
            f"{asked.out}: {asked.table.name} was planned there for {say_duration(planned_for)}, and this command says "
            f"{say_duration(budget)}; leave --budget out to go on as planned, or use another --out"
        )


def _beside_named_data(tasks: Sequence[Task]) -> tuple[Job, ...]:
    """Jobs that cannot run, where others can: no time is to be kept for them."""
    jobs = tuple(dict.fromkeys(task.job for task in tasks if lacks(task)))
    return jobs if any(task.job not in jobs for task in tasks) else ()


def speeds_for(asked: Asked, tasks: Sequence[Task]) -> list[MeasuredSpeed]:
    """Best first: the file that was named, the sweep's own runs, the documented GPU, this machine for some seconds.

    None where nobody asks for time. A budget is for the machine at hand, so the documented GPU is only for one like it.
    """
    if not asked.budget and not asked.dry_run:
        return []
    found = [from_bench(path) for path in asked.speed]
    found += from_runs(tasks)
    cuda = choose_device(asked.device or "auto").type == "cuda"
    if not asked.budget or cuda:
        found.append(H200)
    unknown = [task for task in tasks if task.job.source in TINY and not any(speed.fits(task) for speed in found)]
    unknown = [task for task in unknown if not alone(task)]
    for network in dict.fromkeys(map(network_of, unknown)):
        one = next(task for task in unknown if network_of(task) == network)
        console.print(f"measuring the speed of {network} here, for some seconds")
        found.append(measured_here(one, asked.device))
    return found


def say_plan(asked: Asked) -> None:
    """Commands, data, time; nothing is made."""
    plan = planned(asked)
    done = sum(task.done for task in plan.tasks)
    jobs = list(dict.fromkeys(task.job for task in plan.tasks))
    console.print(f"{asked.table.title}: {len(plan.cells)} cells, {len(jobs)} jobs x {plan.seeds} seeds = {len(plan.tasks)} runs")
    console.print(f"sweep folder: {asked.out} ({done} runs done)")
    console.print("\ndata:")
    for source in dict.fromkeys(job.source for job in jobs):
        given = asked.places.data.get(source)
        console.print(f"  {DATA[source]}" + (f"  [{given}]" if given else ""))
    others = "; further seeds by --seed N and --out .../seedN" if plan.seeds > 1 else ""
    console.print(f"\ncommands, each of which can be given alone{others}:")
    for task in (task for task in plan.tasks if task.seed == 0):
        console.print(f"  {task.command()}" + ("   # done" if task.done else ""))
    say_time(plan)


def say_time(plan: Planned) -> None:
    """How long each job and all of them take, and what was left out."""
    seconds, whole = total(plan.tasks, plan.speeds)
    grid = Grid(box=None, pad_edge=False)
    for name in ("job", "epochs", "of full length", "warm-up", "time of a seed"):
        grid.add_column(name, justify="left" if name == "job" else "right")
    for task in plan.tasks:
        if task.seed == 0:
            epochs, took = epochs_of(task.config), seconds[task.name]
            share = f"{100 * epochs / task.job.epochs:.0f} %"
            words = "not measured" if took is None else "done" if task.done else say_duration(took)
            grid.add_row(task.job.name, str(epochs), share, "" if alone(task) else str(phases(task)[0]), words)
    console.print("\ntime, where runs that differ only in the cleaner share one warm-up:")
    console.print(grid)
    unknown = [task.job.name for task in plan.tasks if seconds[task.name] is None]
    used = dict.fromkeys(next((s.source for s in plan.speeds if s.fits(task)), "") for task in plan.tasks)
    if any(used):
        console.print(
            f"together about {say_duration(whole)}, from the speed of: {'; '.join(source for source in used if source)}"
        )
    if unknown:
        names = ", ".join(dict.fromkeys(unknown))
        console.print(
            f"not counted, for no measured speed fits: {names}. Measure with `labelsieve bench --json FILE` (another method: "
            f"with --method NAME, the web sets: with --profile large), then --speed FILE"
        )
    unplanned = "this sweep was planned without them (use another --out)" if plan.before else "they do not fit"
    for jobs, why in ((plan.dropped, unplanned), (plan.lacking, "their data or weights were not named")):
        if jobs:
            console.print(f"\nleft out, for {why}: {', '.join(job.name for job in jobs)}")
