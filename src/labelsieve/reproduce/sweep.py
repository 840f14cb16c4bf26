"""A sweep folder: sweep.json (what it was told), runs/JOB/seedN, tables and figures. Several processes may work in one.

Every run has a lock that its process holds while it trains; a killed owner's lock is free again, and the next process
resumes from the last checkpoint. A run that is done is never done again.

In the warm-up no cleaner has a say, so the state after it is the same for all methods that have one, bit for bit on a CPU. It is
kept in SWEEP/warm-ups until nobody needs it.
"""

import hashlib
import json
import shutil
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from labelsieve import run_files
from labelsieve.config.schema import CleaningConfig, Config, OutputConfig, to_yaml
from labelsieve.doors import reading
from labelsieve.errors import ToolError, UsageError
from labelsieve.methods.registry import method_named
from labelsieve.reproduce.tasks import Settings, Task, held, lacks, refuse_other_settings
from labelsieve.run_files import is_there
from labelsieve.runs import atomic, checkpoint
from labelsieve.runs.rows import Watch, rows_for
from labelsieve.train.loop import Progress
from labelsieve.train.run import Run, state_of
from labelsieve.train.start import resume, start, start_from_state
from labelsieve.version import __version__


def warm_up_key(config: Config) -> str:
    """The same for configurations whose warm-ups are the same; whatever may matter to it is in it."""
    training = replace(config.training, lambda_u=None)
    data = replace(config.data, source=config.data.source.partition(":")[0])
    alike = replace(
        config,
        method="" if method_named(config.method).warms_up else config.method,  # others are on their own from the first step
        cleaner="",
        cleaning=CleaningConfig(),
        output=replace(OutputConfig(), model=config.output.model),
        training=training,
        data=data,
        device="",
    )
    return hashlib.sha256(to_yaml(alike).encode()).hexdigest()[:16]


class WarmUps:
    """Those of one sweep, for the tasks that one process was given."""

    def __init__(self, sweep: Path, tasks: Sequence[Task]) -> None:
        self.place = sweep / "warm-ups"
        self.keys = {task.name: warm_up_key(task.config) for task in tasks}
        self.tasks = tasks

    def folder(self, task: Task) -> Path:
        return self.place / self.keys[task.name]

    def ready(self, task: Task) -> bool:
        with suppress(OSError):  # another process may remove it while we look
            return any(self.folder(task).glob("epoch-*"))
        return False

    def use(self, task: Task, run: Run) -> bool:
        """Start the run after the warm-up, if it has done nothing yet and a sibling has left it."""
        if run.epoch or not self.ready(task):
            return False
        try:
            saved = checkpoint.load(self.folder(task))
            if saved.epoch != task.config.training.warmup:
                return False
            start_from_state(run, saved, list(saved.facts.get("timings", ())))
        except (ToolError, OSError):  # removed meanwhile, damaged, or of other data: the run warms up by itself
            return False
        return True

    def keep(self, task: Task, run: Run) -> None:
        """Right after its warm-up: leave the state for siblings that have not begun.

        Two processes may get here together; one writes. If it cannot be written, siblings warm up by themselves.
        """
        if run.epoch != task.config.training.warmup or not self._waiting(task):
            return
        state = state_of(run)
        if state.facts["done"] or state.facts["decision"] is not None:
            return
        timings = [line | {"shared": True} for line in run.timings]
        with held(self._lock(task)) as ours, suppress(ToolError):
            if ours and not self.ready(task):
                checkpoint.save(self.folder(task), replace(state, facts={**state.facts, "timings": timings}))

    def tidy(self, task: Task) -> None:
        """Remove a warm-up that no task waits for any more."""
        with held(self._lock(task)) as ours:
            if ours and not self._waiting(task):
                shutil.rmtree(self.folder(task), ignore_errors=True)

    def _lock(self, task: Task) -> Path:
        return self.place.parent / ".locks" / f"warm-up-{self.keys[task.name]}"

    def _waiting(self, task: Task) -> list[Task]:
        key = self.keys[task.name]
        alike = [one for one in self.tasks if self.keys[one.name] == key and one.name != task.name]
        return [one for one in alike if not one.folder.metrics.exists()]


FORMAT = 1
OURS = {".locks", "runs"}  # what may be there before a sweep is: its runs' commands can be given by hand
NAMES = {"epochs": "--epochs", "share": "the length that --budget chose", "limit": "--limit", "sets": "--set"}
# Trains an open run and calls back after each epoch; says whether the run is done. Given by who shows progress.
Train = Callable[[Task, Run, Callable[[Progress], None]], bool]


@dataclass(frozen=True)
class Sweep:
    """An opened sweep folder."""

    path: Path
    settings: Settings
    plan: dict[str, Any] = field(default_factory=dict)  # what --budget chose: table, cells, seeds

    @property
    def file(self) -> Path:
        return self.path / "sweep.json"

    def lock(self, name: str) -> Path:
        return self.path / ".locks" / name.replace("/", "--")


def read_sweep(path: Path, any_version: bool = False) -> Sweep | None:
    """The sweep at `path`, None where there is none yet; one of another version is an error that says what to do."""
    file = path / "sweep.json"
    if not is_there(file):
        if path.exists() and (not path.is_dir() or not {entry.name for entry in path.iterdir()} <= OURS):
            raise UsageError(f"{path}: it exists and is no sweep (sweep.json is missing); choose another --out")
        return None
    with reading(file, "put it back as it was, or use another --out"):
        facts = run_files.facts(file)
        form, version = int(facts["format"]), str(facts["labelsieve"])
        if form != FORMAT:
            raise ToolError(
                f"{path}: a sweep in form {form} (labelsieve {version}), this labelsieve {__version__} reads form {FORMAT}; "
                f"use that version, or another --out. Nothing was changed"
            )
        sets = facts["settings"] | {"sets": tuple(facts["settings"]["sets"])}
        sweep = Sweep(path, Settings(**sets), dict(facts.get("plan") or {}))
    if version != __version__ and not any_version:
        raise ToolError(
            f"{path}: started by labelsieve {version}, this is {__version__}, and their runs may differ; use that version, "
            f"another --out, or --any-version to go on with both in one table"
        )
    return sweep


def open_sweep(path: Path, settings: Settings | None, plan: dict[str, Any] | None = None, any_version: bool = False) -> Sweep:
    """The sweep at `path`, made if need be. `settings` None: as it was begun, or the paper's; others must be the same."""
    with held(path / ".locks" / "sweep", wait=True):
        found = read_sweep(path, any_version)
        if found is None:
            found = Sweep(path, settings or Settings(), plan or {})
            facts = {"format": FORMAT, "labelsieve": __version__, "settings": asdict(found.settings), "plan": found.plan}
            atomic.write_text(found.file, json.dumps(facts, indent=1) + "\n")
    if settings is not None:
        refuse_other_sweep(found, settings)
    return found


def refuse_other_sweep(sweep: Sweep, asked: Settings) -> None:
    for key, words in NAMES.items():
        there, wanted = getattr(sweep.settings, key), getattr(asked, key)
        if there != wanted:
            raise UsageError(
                f"{sweep.path}: this sweep was started with {words} {_said(there)}, and this command says {_said(wanted)}; leave "
                f"it out to continue as it was started, or use another --out"
            )


def _said(value: Any) -> str:
    return "nothing" if value in (None, ()) else " ".join(value) if isinstance(value, tuple) else f"{value:g}"


@dataclass
class Report:
    """What one process did: names of tasks. `busy` are with other processes, `stopped` is unfinished for want of time."""

    done: list[str] = field(default_factory=list)
    busy: list[str] = field(default_factory=list)
    stopped: list[str] = field(default_factory=list)
    lacking: dict[str, str] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)


def check(tasks: Sequence[Task]) -> None:
    """Before any training: runs that are there are this sweep's, and noise files fit their data."""
    for task in tasks:
        if task.begun:
            refuse_other_settings(task)
    seen = set()
    for task in tasks:
        data = task.config.data
        made = (data.source, data.limit, data.noise, task.config.seed if data.noise_seed is None else data.noise_seed)
        if data.noise.partition(":")[0] in ("file", "matrix", "cifar-n") and not lacks(task) and made not in seen:
            seen.add(made)
            rows_for(task.config)


def work(
    sweep: Sweep,
    tasks: Sequence[Task],
    train: Train,
    watch: Watch | None = None,
    time_left: Callable[[], bool] = lambda: True,
) -> Report:
    """Do what is missing and nobody else does. What another process holds is looked at again after each task of ours."""
    report, warm_ups = Report(), WarmUps(sweep.path, tasks)
    left = list(tasks)
    while left and not report.stopped:
        left = [task for task in left if not _settled(task, report)]
        if left and not time_left():
            report.stopped += [task.name for task in left]
        elif not _one(sweep, left, warm_ups, train, report, watch):
            report.busy += [task.name for task in left]
            break
    return report


def _one(sweep: Sweep, left: Sequence[Task], warm_ups: WarmUps, train: Train, report: Report, watch: Watch | None) -> bool:
    """Do the first task that is free: begun ones first, then those whose warm-up is there. False: others hold all of them."""
    for task in sorted(left, key=lambda task: (not task.begun, not warm_ups.ready(task))):
        with held(sweep.lock(task.name)) as ours:
            if not ours:
                continue
            if not task.done:  # it may have been finished between the look above and the lock
                _do(task, warm_ups, train, report, watch)
            warm_ups.tidy(task)
            return True
    return False


def _settled(task: Task, report: Report) -> bool:
    if task.done:
        report.done.append(task.name)
        return True
    lacking = lacks(task)
    if lacking is not None:
        report.lacking[task.name] = lacking
    return lacking is not None or task.name in report.failed


def _do(task: Task, warm_ups: WarmUps, train: Train, report: Report, watch: Watch | None) -> None:
    try:
        run = _opened(task, watch)
        warm_ups.use(task, run)
        if not train(task, run, lambda progress: warm_ups.keep(task, run)):
            report.stopped.append(task.name)
    except ToolError as error:  # one cell that cannot be trained does not keep the others from it
        report.failed[task.name] = str(error)


def _opened(task: Task, watch: Watch | None) -> Run:
    if not task.begun:
        return start(task.folder.path, task.config, watch)
    refuse_other_settings(task)
    return resume(task.folder.path, source=task.config.data.source, device=task.config.device, watch=watch)
