"""Plans a sweep: what this machine trains in a second, how long each run takes, and what fits a budget."""

import math
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import ceil
from pathlib import Path
from statistics import median
from typing import Any

import torch

from labelsieve import doors, run_files
from labelsieve.benchmark.speed import LOOK, Clock, epoch, made_rows, warm_up
from labelsieve.config.fitting import network_for
from labelsieve.config.method_settings import divides, epochs_of
from labelsieve.config.schema import override
from labelsieve.doors import Damage, reading
from labelsieve.engine.device import choose_device
from labelsieve.errors import UsageError
from labelsieve.methods import PROTOTYPES
from labelsieve.methods.ce import CrossEntropy
from labelsieve.methods.dividemix import Division
from labelsieve.reproduce.paper import Job
from labelsieve.reproduce.sweep import warm_up_key
from labelsieve.reproduce.tasks import Settings, Task
from labelsieve.runs.findings import read_record
from labelsieve.train.build import parts_for

TINY = {"cifar10": (32, 10), "cifar100": (32, 100), "fashion-mnist": (28, 10), "digits": (8, 10)}  # pixels, classes
SIDES = TINY | {"webvision": (224, 50), "clothing1m": (224, 14)}
FIXED = ("gather evidence, both networks", "mixtures, both networks", "stage 1, both networks")
LARGEST = 2**24  # bytes of a file of speeds
TESTED = 10_000  # test pictures of the small sets
LEAST_LABELLED = 0.35  # at 90 % noise the division took 28 to 53 % of the labels as clean (LOG.md)
MARGIN = 1.1  # runs write files and are looked at as well
LEAST = 0.1  # of the paper's epochs after the warm-up: below that no cleaner has begun to matter
Make = Callable[[Sequence[Job], Settings], list[Task]]


@dataclass(frozen=True)
class MeasuredSpeed:
    """Seconds of an epoch of both networks, as measured on `samples` pictures of `side` px with `labelled` of them clean."""

    network: str
    side: int
    samples: int
    labelled: int
    warm_up_s: float
    mixed_s: float
    fixed_s: float  # of the mixed epoch: what does not grow with `labelled`
    start_s: float  # before the first epoch
    test_s: float  # of looking at all test pictures after every epoch; 0 where the others hold it
    source: str  # in words
    method: str = ""  # whose epochs; "": of plain training, and of methods that divide labels

    def fits(self, task: Task) -> bool:
        return task.job.source in SIDES and self.network == network_of(task) and self.method == alone(task)

    def warm_up(self, task: Task) -> float:
        return self._tested(task) + self.warm_up_s * self._scale(task)

    def mixed(self, task: Task) -> float:
        grown = labelled_share(task) * _samples(task) / max(self.labelled, 1)
        trained = (self.mixed_s - self.fixed_s) * grown * self._area(task)
        return self._tested(task) + self.fixed_s * self._scale(task) + trained

    def _tested(self, task: Task) -> float:
        return self.test_s * min(task.config.data.test_limit or TESTED, TESTED) / TESTED

    def _area(self, task: Task) -> float:
        return (SIDES[task.job.source][0] / self.side) ** 2

    def _scale(self, task: Task) -> float:
        return _samples(task) / self.samples * self._area(task)


H200 = MeasuredSpeed(
    *("preact-resnet18", 32, 50_000, 25_000, 2.121, 4.268, 0.317 + 0.013 + 0.127, 26.0, 0.063),
    source="one NVIDIA H200, as measured in RESULTS.md (`labelsieve bench`)",
)


def alone(task: Task) -> str:
    """The task's method, where its epochs are like no other's."""
    return "" if divides(task.config) or task.config.method == CrossEntropy.name else task.config.method


def _samples(task: Task) -> int:
    """That an epoch sees: all, or as many as it draws."""
    training = task.config.training
    return training.epoch_batches * training.batch if training.epoch_batches else _all_samples(task)


def _all_samples(task: Task) -> int:
    return min(task.config.data.limit or task.job.samples, task.job.samples)


def _shape(source: str) -> tuple[int, int, int]:
    side = SIDES[source][0]
    return 1 if source in ("fashion-mnist", "digits") else 3, side, side


def network_of(task: Task) -> str:
    """That will run: the job's own, or as --set says; where that leaves it open, as `train` will choose."""
    if task.config.network != "auto":
        return task.config.network
    return network_for(_shape(task.job.source), _all_samples(task), choose_device(task.config.device).type == "cuda").name


def labelled_share(task: Task) -> float:
    """About how many labels will count as clean: those that the noise leaves right, at least 35 % where odds are even."""
    kind, _, rate = task.config.data.noise.partition(":")
    try:
        share = float(rate)
    except ValueError:
        return 0.6
    classes = SIDES[task.job.source][1]
    wrong = share * (1 - 1 / classes) if kind == "sym" else share / 2 if kind == "asym" else share
    odds = task.config.cleaning.prototype_prior if task.config.cleaner in PROTOTYPES else 0.5
    return max(1 - wrong, LEAST_LABELLED * min(1.0, 2 * odds))


def phases(task: Task) -> tuple[int, int]:
    """Epochs of warm-up and of mixed training."""
    epochs = epochs_of(task.config)
    warm = epochs if not divides(task.config) else min(task.config.training.warmup, epochs)
    return warm, epochs - warm


def seconds_of(task: Task, speed: MeasuredSpeed, shared: bool = False) -> float:
    """Of a whole run; `shared`: its warm-up is taken over from a sibling."""
    warm, mixed = phases(task)
    if shared:
        warm = max(0, warm - task.config.training.warmup)
    return speed.start_s + warm * speed.warm_up(task) + mixed * speed.mixed(task)


def total(tasks: Sequence[Task], speeds: Sequence[MeasuredSpeed]) -> tuple[dict[str, float | None], float]:
    """Seconds by task (None: no measured speed fits), done ones 0, and their sum; siblings share one warm-up."""
    seen: set[str] = set()
    found: dict[str, float | None] = {}
    for task in tasks:
        speed = next((one for one in speeds if one.fits(task)), None)
        if task.done or speed is None:
            found[task.name] = 0.0 if task.done else None
            continue
        key = warm_up_key(task.config)
        found[task.name] = seconds_of(task, speed, shared=key in seen)
        seen.add(key)
    return found, sum(value for value in found.values() if value is not None)


def from_bench(path: Path) -> MeasuredSpeed:
    """The speed in a file that `labelsieve bench --json` wrote, also with `--profile large`."""
    with reading(path, f"write it with `labelsieve bench --json {path}`"):
        facts = doors.read_json(path, LARGEST, follow=True)
        if "together_ms" in facts:
            return _from_profile(facts, path)
        shape, parts = facts["shape"], facts["parts_s"]
        network, side = str(shape["network"]), int(shape["picture"][-1])
        if LOOK in parts:
            return _of_method(facts, network, side, path)
        warm = float(parts["warm-up epoch, both networks"])
        fixed = sum(float(parts[name]) for name in FIXED)
        counts = int(shape["samples"]), int(shape["labelled"])
        times = warm, float(facts["epoch_s"]), fixed, float(facts["startup_s"])
        tested = float(parts["test evaluation, both networks"]) * TESTED / max(counts[0] // 5, 1)
        if not all(map(math.isfinite, (*times, tested))) or min(*counts, side) < 1:
            raise Damage("no speed that can be")
        return MeasuredSpeed(network, side, *counts, *times, tested, source=f"{facts['device']}, {path}")


def _of_method(facts: dict[str, Any], network: str, side: int, path: Path) -> MeasuredSpeed:
    """All epochs of a method that `bench --method` timed are alike."""
    samples, epoch_s, looking = int(facts["shape"]["samples"]), float(facts["epoch_s"]), float(facts["parts_s"][LOOK])
    times = epoch_s, epoch_s, 0.0, float(facts["startup_s"]), looking * TESTED / samples
    if not all(map(math.isfinite, times)) or min(samples, side) < 1:
        raise Damage("no speed that can be")
    words = f"{facts['device']}, {path}"
    return MeasuredSpeed(network, side, samples, samples, *times, source=words, method=str(facts["shape"]["method"]))


def _from_profile(facts: dict[str, Any], path: Path) -> MeasuredSpeed:
    """An epoch of 1000 batches of 32 for each network, from one step at 224 px and from how fast evidence is gathered.

    A step of the warm-up trains 64 pictures where a mixed one trains 128 and looks at 192 more: it counts as half of one.
    """
    step, drawn = float(facts["together_ms"]) / 1000, 32_000
    looking = 2 * drawn / float(facts["gathered_per_s"])
    mixed = 2 * (drawn // 2 // 32) * step + looking
    return MeasuredSpeed(
        *(
            str(facts["network"]),
            224,
            drawn,
            drawn // 2,
            2 * (drawn // 64) * step / 2,
            mixed,
            looking,
            60.0,
            looking * 5000 / drawn,
        ),
        source=f"{facts['device']}, {path} (one step, not an epoch)",
    )


def from_runs(tasks: Sequence[Task]) -> list[MeasuredSpeed]:
    """What the sweep's own runs took so far, one for each network and method; runs that are half done tell as well."""
    found: dict[tuple[str, str], MeasuredSpeed] = {}
    for task in tasks:
        key = network_of(task), alone(task)
        if task.job.source not in SIDES or not task.folder.metrics.exists() or key in found:
            continue
        record = read_record(task.folder)
        timings = run_files.records(task.folder.timings)
        warm = [line["seconds"] for line in timings if line["phase"] == "warm-up"]
        mixed = [line["seconds"] for line in timings if line["phase"] in ("mixture", "prototypes")]
        if alone(task):
            warm = mixed = [line["seconds"] for line in timings if line["phase"] != "final"]
        shares = [share for line in record.metrics for share in line.get("clean_share", ())]
        if len(warm) < 2 or len(mixed) < 2:
            continue
        samples = _samples(task)
        labelled = max(1, round(samples * sum(shares) / len(shares)))
        side = SIDES[task.job.source][0]
        times = median(warm), median(mixed), 0.1 * median(mixed), max(0.0, warm[0] - median(warm))
        source = f"{record.environment.get('device', 'this machine')}, epochs of {task.folder.path}"
        found[key] = MeasuredSpeed(key[0], side, samples, labelled, *times, 0.0, source=source, method=key[1])
    return list(found.values())


def measured_here(task: Task, device: str | None) -> MeasuredSpeed:
    """Time one warm-up epoch and one mixed epoch of this network on a few made pictures; on a CPU, on very few."""
    side, classes = TINY[task.job.source]
    shape = _shape(task.job.source)
    method = task.config.method if divides(task.config) else "cpc"  # only mixed epochs tell all that is planned with
    config = override(task.config, {"device": device or task.config.device, "network": network_of(task), "method": method})
    batches, cpu = 8, choose_device(config.device).type == "cpu"
    if cpu:
        batch, batches = (min(config.training.batch, 32), 8) if config.network == "small" else (8, 2)
        config = override(config, {"training.batch": batch, "training.warmup_batch": batch})
    rows = made_rows(batches * config.training.batch, classes, shape)
    samples, parts = len(rows.data), parts_for(config, rows)
    clock = Clock(parts.engine.device)
    division = Division(torch.ones(samples), torch.arange(samples) < samples // 2)
    start = clock.once(lambda: warm_up(parts, slice(1)))
    warm = clock.once(lambda: warm_up(parts))
    if not cpu:
        epoch(parts, division)  # the first one prepares its steps
    mixed = clock.once(lambda: epoch(parts, division))
    fixed = clock.once(lambda: [parts.engine.evidence(net) for net in parts.method.nets])
    tested = fixed / samples * TESTED
    words = f"this machine ({parts.engine.device}), measured just now on {samples:,} made pictures"
    times = warm, mixed, fixed, max(0.0, start - warm / 2), tested
    return MeasuredSpeed(config.network, side, samples, samples // 2, *times, source=words)


@dataclass(frozen=True)
class Fitted:
    """`jobs` at `settings` take `seconds`; `dropped` do not fit."""

    jobs: list[Job]
    dropped: list[Job]
    settings: Settings
    seconds: float


def fit(jobs: Sequence[Job], settings: Settings, make: Make, speeds: Sequence[MeasuredSpeed], budget: float) -> Fitted:
    """All jobs as long as fits; where even the shortest useful length does not, without the last ones.

    One share of the paper's epochs for all of them, in whole percent, so that they can be compared with each other. With
    `settings.epochs` the length is given, and only the number of jobs is looked for.
    """
    known = list(dict.fromkeys(task.job for task in make(jobs, settings) if any(speed.fits(task) for speed in speeds)))
    unknown = [job for job in jobs if job not in known]
    for count in range(len(known), 0, -1):
        some = known[:count]
        lengths = [settings] if settings.epochs else _lengths(some, settings, make)
        # Longer takes longer, so the longest that fits is found by halving.
        place = bisect_right(lengths, budget, key=lambda length: _seconds(some, length, make, speeds)) - 1
        if place >= 0:
            seconds = _seconds(some, lengths[place], make, speeds)
            return Fitted(some, [*known[count:], *unknown], lengths[place], seconds)
    raise UsageError(_too_small(known, unknown, settings, make, speeds))


def _seconds(jobs: Sequence[Job], settings: Settings, make: Make, speeds: Sequence[MeasuredSpeed]) -> float:
    return MARGIN * total(make(jobs, settings), speeds)[1]


def _lengths(jobs: Sequence[Job], settings: Settings, make: Make) -> list[Settings]:
    """From the shortest at which every job has a tenth of the paper's epochs left after its warm-up, to the paper's."""
    least = 0.0
    for task in make(jobs, replace(settings, share=1.0)):
        if divides(task.config):
            full = task.job.length or task.job.epochs
            least = max(least, (task.config.training.warmup + LEAST * full) / full)
    return [replace(settings, share=percent / 100) for percent in range(max(1, ceil(100 * least)), 101)]


def _too_small(known: list[Job], unknown: list[Job], settings: Settings, make: Make, speeds: Sequence[MeasuredSpeed]) -> str:
    if not known:
        return (
            f"no measured speed fits {', '.join(job.name for job in unknown)}, so no budget can be planned; measure it with "
            f"`labelsieve bench --network NAME --json FILE` and give --speed FILE"
        )
    least = settings if settings.epochs else _lengths(known[:1], settings, make)[0]
    seconds = _seconds(known[:1], least, make, speeds)
    return (
        f"nothing fits this budget: {known[0].name} takes about {_about(seconds)} at {least.epochs_of(known[0])} epochs; "
        f"give a larger --budget, a smaller --limit, or other --cells"
    )


def _about(seconds: float) -> str:
    return f"{seconds / 60:.1f} min" if seconds < 7200 else f"{seconds / 3600:.0f} hours"
