"""What a sweep has to do: for each job and seed its configuration, folder, command and state."""

import os
import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from labelsieve.config.method_settings import divides, epochs_of
from labelsieve.config.presets import OPEN_MIXING, preset
from labelsieve.config.resolve import parse_settings, resolve
from labelsieve.config.schema import Config, dotted_keys, full_key, override, value_at
from labelsieve.disk import hold
from labelsieve.doors import FLAGS
from labelsieve.errors import ToolError, UsageError
from labelsieve.reproduce.paper import Job
from labelsieve.runs import atomic
from labelsieve.runs.folder import RunFolder

NEEDS_PATH = ("cifar10", "cifar100", "clothing1m", "webvision")
# Of this process and not of the run: where data and weights lie, what computes.
ELSEWHERE = ("data.source", "device", "pretrained")
# What a command may leave open for the data to settle, and how that is written.
OPEN = {"network": "auto", "training.batch": 0, "training.warmup_batch": 0, "engine.eval_batch": 0, "pictures.size": None}


OPEN |= OPEN_MIXING


@dataclass(frozen=True)
class Settings:
    """What a whole sweep was told besides the cells' own settings; written into it once."""

    epochs: int | None = None  # of every run; None: as `share` says
    share: float = 1.0  # of the paper's epochs
    limit: int | None = None
    sets: tuple[str, ...] = ()  # key=value

    @property
    def words(self) -> list[str]:
        """As one would type them; a length that --budget chose has no option."""
        pairs = [("--epochs", self.epochs), ("--limit", self.limit), *(("--set", pair) for pair in self.sets)]
        return [str(word) for pair in pairs if pair[1] is not None for word in pair]

    def epochs_of(self, job: Job) -> int:
        return self.epochs or max(1, round(self.share * (job.length or job.epochs)))


@dataclass(frozen=True)
class Places:
    """Of this process: where data sets lie (by name), what computes, weights to start from where a job needs them."""

    data: Mapping[str, str] = field(default_factory=dict)
    device: str | None = None
    pretrained: str | None = None


@dataclass(frozen=True)
class Task:
    """One run of a sweep. `options` are what its command says besides the preset."""

    job: Job
    seed: int
    config: Config
    folder: RunFolder
    options: tuple[tuple[str, Any], ...]

    @property
    def name(self) -> str:
        return f"{self.job.name}/seed{self.seed}"

    @property
    def done(self) -> bool:
        return any(self.folder.checkpoints.glob("epoch-*-done"))

    @property
    def begun(self) -> bool:
        return self.folder.config.exists()

    @property
    def other_settings(self) -> list[str]:
        """What --set changed of the job, as key=value; lengths and limits are said elsewhere."""
        own = preset(self.job.preset) | {full_key(key): value for key, value in self.job.options}
        besides = ("training.epochs", "data.limit", *ELSEWHERE)
        told = [(key, value) for key, value in self.options if key not in besides]
        return [f"{key}={value}" for key, value in told if key not in own or own[key] != value_at(self.config, key)]

    def command(self) -> str:
        """The same run, as one would start it by hand."""
        words = ["labelsieve", "train", self.config.data.source, "--preset", self.job.preset]
        for key, value in self.options:
            words += ["--set", f"{key}={value}"]
        words += ["--seed", str(self.seed), "--out", str(self.folder.path), "--resume"]
        return " ".join(shlex.quote(word) for word in words)


def tasks_for(jobs: Sequence[Job], seeds: Sequence[int], settings: Settings, places: Places, sweep: Path) -> list[Task]:
    """Seed by seed, so that a sweep which is cut short has each cell once before any has it twice."""
    return [task_for(job, seed, settings, places, sweep) for seed in seeds for job in jobs]


def task_for(job: Job, seed: int, settings: Settings, places: Places, sweep: Path) -> Task:
    options: dict[str, Any] = {full_key(key): value for key, value in job.options}
    epochs = settings.epochs_of(job)
    if epochs != preset(job.preset).get("training.epochs"):
        options["training.epochs"] = epochs
    if settings.limit is not None:
        options["data.limit"] = settings.limit
    options |= parse_settings(settings.sets)
    options |= {key: value for key, value in (("pretrained", _weights(job, places)), ("device", places.device)) if value}
    source = places.data.get(job.source, _unplaced(job))
    config = resolve(source, named=job.preset, options=options | {"seed": seed})
    config = override(config, {"data.source": source})  # where no place was given, the word PATH is not to become one
    _check_length(job, config)
    return Task(job, seed, config, RunFolder(sweep / "runs" / job.name / f"seed{seed}"), tuple(options.items()))


def _weights(job: Job, places: Places) -> str | None:
    return places.pretrained if job.source == "clothing1m" else None


def _unplaced(job: Job) -> str:
    return f"{job.source}:PATH" if job.source in NEEDS_PATH else job.source


def _check_length(job: Job, config: Config) -> None:
    if divides(config) and epochs_of(config) <= config.training.warmup:
        raise UsageError(
            f"{job.name}: {config.training.epochs} epochs leave nothing after its {config.training.warmup} epochs of warm-up; "
            f"give more with --epochs, or a shorter warm-up with --set training.warmup=N"
        )


def lacks(task: Task) -> str | None:
    """What the task needs and was not given, in words with the remedy; None when it can run."""
    source = task.job.source
    if task.config.data.source == f"{source}:PATH":
        return f"needs {source}: give its place with --data {source}:PATH"
    if source == "clothing1m" and task.config.pretrained is None:
        return "needs ImageNet weights of ResNet-50: give them with --pretrained FILE"
    return None


def refuse_other_settings(task: Task) -> None:
    """A `ToolError` when the folder holds a run with other settings than this sweep's."""
    before = task.folder.read_config()
    for key in dotted_keys():
        there, asked = value_at(before, key), value_at(task.config, key)
        settled = key in OPEN and asked == OPEN[key]
        if key not in ELSEWHERE and not settled and there != asked:
            raise ToolError(
                f"{task.folder.path}: the run there has {key} = {there}, this sweep asks for {asked}; it was made by another "
                f"command or another version: use another --out, or move that run away"
            )
    if before.data.source.partition(":")[0] != task.config.data.source.partition(":")[0]:
        raise ToolError(f"{task.folder.path}: the run there has other data ({before.data.source}); move it away")


@contextmanager
def held(place: Path, wait: bool = False) -> Iterator[bool]:
    """True inside where no other process holds the lock file `place`; the kernel lets go of it with the process, killed or not.

    The file itself stays: removing it would let two processes hold two files of one name. On a file system that cannot
    lock, it is always True.
    """
    with atomic.disk_errors(place):
        place.parent.mkdir(parents=True, exist_ok=True)
        handle = os.open(place, os.O_RDWR | os.O_CREAT | FLAGS, 0o644)
    with ExitStack() as stack:
        stack.callback(os.close, handle)
        try:
            stack.enter_context(hold(handle, place, wait=wait))
        except BlockingIOError:
            yield False
            return
        yield True
