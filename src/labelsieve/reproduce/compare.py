"""Compares runs: final numbers, settings that differ, and paired differences."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from labelsieve.config.schema import dotted_keys, value_at
from labelsieve.errors import UsageError
from labelsieve.methods.parts.diagnostics import accuracy_interval
from labelsieve.reproduce.results import Final, final
from labelsieve.results.answers import Answers, read_answers
from labelsieve.results.tail import rankings
from labelsieve.run_files import is_there
from labelsieve.runs.findings import Record, read_record
from labelsieve.runs.folder import RunFolder

RESAMPLES = 10_000
LEVEL = 0.95
UNSEEN = 0.5  # pictures of each kind (Agresti and Min's correction); it does not show where runs differ on dozens


@dataclass(frozen=True)
class Difference:
    """Percentage points, second minus first, with its interval; and on how many pictures only one of them is right."""

    points: float
    low: float
    high: float
    only_first: int
    only_second: int
    pictures: int

    @property
    def is_clear(self) -> bool:
        """Does the interval leave out 0?"""
        return self.low > 0 or self.high < 0


def paired_bootstrap(
    first: np.ndarray, second: np.ndarray, seed: int = 0, resamples: int = RESAMPLES, level: float = LEVEL
) -> Difference:
    """Of `first` and `second` (M,) bool, right or wrong on the same pictures in the same order; percentile interval."""
    if first.shape != second.shape or not len(first):
        raise UsageError(f"{len(first)} and {len(second)} answers cannot be paired; they must be on the same test pictures")
    count = len(first)
    gained, lost = int((second & ~first).sum()), int((first & ~second).sum())
    shares = np.array([gained + UNSEEN, lost + UNSEEN, count - gained - lost + 2 * UNSEEN]) / (count + 4 * UNSEEN)
    draws = np.random.default_rng(seed).multinomial(count, shares, size=resamples)
    differences = 100 * (draws[:, 0] - draws[:, 1]) / count
    tail = 100 * (1 - level) / 2
    low, high = np.percentile(differences, [tail, 100 - tail])
    return Difference(100 * (gained - lost) / count, float(low), float(high), lost, gained, count)


@dataclass(frozen=True)
class Compared:
    """One run: `name` is short and its own among the runs; `against` is its difference to the first run."""

    name: str
    path: Path
    record: Record
    final: Final | None
    accuracy: float  # percent, of the answers that are kept
    between: tuple[float, float]
    auc: dict[str, float]
    against: Difference | None

    @property
    def done(self) -> bool:
        return any(line["phase"] == "final" for line in self.record.metrics)


def compare_runs(paths: Sequence[Path], seed: int = 0) -> list[Compared]:
    """The first run is what the others are held against."""
    if len(paths) < 2:
        raise UsageError("comparing takes at least two run folders")
    twice = [path for place, path in enumerate(paths) if path.resolve() in [other.resolve() for other in paths[:place]]]
    if twice:
        raise UsageError(f"{twice[0]}: named twice; name each run once")
    folders = [RunFolder.open(path) for path in paths]
    answers = [_answers(folder) for folder in folders]
    _check_same(paths, answers)
    first = answers[0].right
    names = short_names(paths)
    return [
        _compared(name, folder, one, None if place == 0 else paired_bootstrap(first, one.right, seed))
        for place, (name, folder, one) in enumerate(zip(names, folders, answers))
    ]


def _answers(folder: RunFolder) -> Answers:
    done = any(folder.checkpoints.glob("epoch-*-done"))
    if done and not is_there(folder.predictions) and final(read_record(folder)) is None:
        raise UsageError(
            f"{folder.path}: trained without test pictures, so there is nothing to pair; train it again with some, say --val PATH"
        )
    return read_answers(folder)


def _check_same(paths: Sequence[Path], answers: Sequence[Answers]) -> None:
    for path, one in zip(paths[1:], answers[1:]):
        if one.test_set != answers[0].test_set:
            raise UsageError(
                f"{path} was tested on other pictures than {paths[0]} ({len(one.label):,}, {len(answers[0].label):,} of them), "
                f"so their accuracies cannot be paired; compare runs on one test set, or give both one with --val"
            )


def _compared(name: str, folder: RunFolder, answers: Answers, against: Difference | None) -> Compared:
    record = read_record(folder)
    right = answers.right
    between = accuracy_interval(int(right.sum()), len(right))
    return Compared(name, folder.path, record, final(record), 100 * float(right.mean()), between, _auc(record), against)


def _auc(record: Record) -> dict[str, float]:
    """By each opinion that the run's method has, as a mean over its networks."""
    return {key: sum(values) / len(values) for key, values in rankings(record.final).items()}


def short_names(paths: Sequence[Path]) -> list[str]:
    """The ends of the paths, as long as they need be to differ, without what all of them end in (`a/seed0`, `b/seed0`).

    Seeds of different cells are named with the cells: that they differ in the seed is the least of it.
    """
    parts = [path.resolve().parts for path in paths]
    while len({part[-1] for part in parts}) == 1 and all(len(part) > 1 for part in parts):
        parts = [part[:-1] for part in parts]
    seeds = all(re.fullmatch(r"seed\d+", part[-1]) for part in parts)
    least = 2 if seeds and len({part[-2:-1] for part in parts}) > 1 else 1
    for length in range(least, max(map(len, parts)) + 1):
        names = ["/".join(part[-length:]) for part in parts]
        if len(set(names)) == len(names):
            return _without_cell(names)
    return [str(path) for path in paths]


def _without_cell(names: list[str]) -> list[str]:
    """Without the cell that all of a sweep's runs begin with (`cifar100-sym90+`): what is left tells them apart."""
    cells = {name.partition("+")[0] for name in names}
    return [name.partition("+")[2] for name in names] if len(cells) == 1 and all("+" in name for name in names) else names


def differing_settings(runs: Sequence[Compared]) -> dict[str, list[str]]:
    """Every setting that is not the same in all runs, with its value in each. Of a method's own, runs of others have none."""
    configs = [run.record.config for run in runs]
    found = {key: [str(value_at(config, key)) for config in configs] for key in dotted_keys()}
    for method in dict.fromkeys(config.method for config in configs):
        keys = dict.fromkeys(key for config in configs if config.method == method for key in config.own)
        for key in keys:
            values = [str(config.own.get(key, "")) if config.method == method else "" for config in configs]
            if len({value for value, config in zip(values, configs) if config.method == method}) > 1:
                found[f"{method}.{key}"] = values
    return {key: values for key, values in found.items() if len(set(values)) > 1}
