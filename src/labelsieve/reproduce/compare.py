"""Compares runs: final numbers, settings that differ, and paired differences; as an HTML page, or a CSV of all numbers."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from labelsieve.config.schema import dotted_keys, value_at
from labelsieve.errors import UsageError
from labelsieve.issues.estimate import Share
from labelsieve.methods.parts.diagnostics import accuracy_interval
from labelsieve.report.charts import Curve, line_chart
from labelsieve.report.page import Section, figure, page, paragraph, table
from labelsieve.reproduce.results import Final, final
from labelsieve.results.kept import Answers, read_answers
from labelsieve.run_files import is_there
from labelsieve.runs.findings import Record, opinion, rankings, read_findings, read_record
from labelsieve.runs.folder import RunFolder
from labelsieve.texts import as_csv

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


@dataclass(frozen=True)
class Listed:
    """What a run says of labels: how many are wrong, how many it lists, and how many of these the first run lists, too."""

    path: Path
    record: Record
    share: Share
    listed: int
    by_first: int


def without_tests(paths: Sequence[Path]) -> bool:
    """Has none of the runs test pictures, as is usual with people's own? Then there are their lists to compare."""
    return not any(is_there(folder.predictions) or final(read_record(folder)) for folder in _opened(paths))


def compare_lists(paths: Sequence[Path]) -> list[Listed]:
    """Joined by the samples' ids."""
    folders = _opened(paths)
    found = [read_findings(folder) for folder in folders]
    ids = [set(np.array(one.columns["id"], object)[one.is_issue[one.order]]) for one in found]
    return [
        Listed(folder.path, read_record(folder), one.share, len(own), len(own & ids[0]))
        for folder, one, own in zip(folders, found, ids)
    ]


def _opened(paths: Sequence[Path]) -> list[RunFolder]:
    if len(paths) < 2:
        raise UsageError("comparing takes at least two run folders")
    twice = [path for place, path in enumerate(paths) if path.resolve() in [other.resolve() for other in paths[:place]]]
    if twice:
        raise UsageError(f"{twice[0]}: named twice; name each run once")
    return [RunFolder.open(path) for path in paths]


def compare_runs(paths: Sequence[Path], seed: int = 0) -> list[Compared]:
    """The first run is what the others are held against."""
    folders = _opened(paths)
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


def differing_settings(runs: Sequence[Compared | Listed]) -> dict[str, list[str]]:
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


HEADER = ("run", "epochs", "last", "mean of last 10", "best", "95 % interval", "against the first", "AUC")
BESIDE = 4  # runs whose settings fit beside each other
MOST = 12  # lines in a chart that can still be told apart
EXPLAINED = (
    "Accuracy in percent on the same test pictures. The interval (95 %, Wilson's) is of the accuracy of the model that the run "
    "keeps; the difference of that model to the first run's has one by a bootstrap (95 %), paired picture by picture. Both say "
    "how much the draw of test pictures may matter and nothing about another seed. Each difference is looked at alone: of twenty "
    "that are chance, one will seem clear. Best is chosen on the test set: go by last. The mean of the last 10 epochs leaves the "
    "warm-up out; of fewer, it says of how many. AUC: how well wrong labels are told from right ones at the end (0.5: as chance "
    "does), by what the method goes by (the mixture of losses, prototypes, neighbours, ...), mean over its networks."
)
RANKED = "By what each run's method goes by; mean over its networks. 0.5 is as chance does."
CSV_HEADER = (
    *("run", "epochs", "done", "last", "mean_of_last", "mean_of_epochs", "best", "accuracy", "low", "high"),
    *("difference", "difference_low", "difference_high", "only_first_right", "only_this_right"),
)


def row_of(run: Compared) -> list[str]:
    numbers = ("", "", "") if run.final is None else (_two(run.final.last), run.final.tail_words, _two(run.final.best))
    against = "the first"
    if run.against is not None:
        one = run.against
        against = f"{one.points:+.2f} ({one.low:+.2f} to {one.high:+.2f}){'' if one.is_clear else ', not clear'}"
    auc = ", ".join(f"{opinion(key)} {value:.4f}" for key, value in run.auc.items())
    epochs = f"{run.record.epochs_done}" + ("" if run.done else f" of {run.record.epochs_planned}, not done")
    return [run.name, epochs, *numbers, f"{run.between[0]:.2f} to {run.between[1]:.2f}", against, auc]


def _two(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"


def compare_page(runs: Sequence[Compared]) -> str:
    sections = [
        Section("Numbers", _numbers(runs) + paragraph(EXPLAINED, "note")),
        Section("Accuracy, epoch by epoch", _chart("Accuracy on test pictures", "percent right", _accuracies(runs))),
        Section("Telling wrong labels from right ones", _chart("Ranking of wrong labels", "AUC", _aucs(runs), RANKED)),
        Section("Settings that differ", _settings(runs)),
    ]
    return page("Runs side by side", _lead(runs), [section for section in sections if section.body])


def _numbers(runs: Sequence[Compared]) -> str:
    """Two tables, as on a terminal: one would be wider than the page, or break its numbers."""
    rows = [[cell or None for cell in row_of(run)] for run in runs]
    return table(HEADER[:6], [row[:6] for row in rows]) + table((HEADER[0], *HEADER[6:]), [[row[0], *row[6:]] for row in rows])


def _lead(runs: Sequence[Compared]) -> str:
    pictures = next(run.against.pictures for run in runs if run.against is not None)
    return f"{len(runs)} runs on the same {pictures:,} test pictures; {runs[0].name} is what the others are held against."


def _accuracies(runs: Sequence[Compared]) -> list[Curve]:
    return [_curve(run, lambda line: (line.get("accuracy") or {}).get("both")) for run in runs]


def _aucs(runs: Sequence[Compared]) -> list[Curve]:
    """By the opinion that counts, which is the last one of a line."""

    def of(line: dict[str, Any]) -> float | None:
        known = list(rankings(line).values())
        return sum(known[-1]) / len(known[-1]) if known else None

    return [_curve(run, of) for run in runs]


def _curve(run: Compared, value: Callable[[dict[str, Any]], float | None]) -> Curve:
    lines = [line for line in run.record.metrics if line["phase"] != "final"]
    return Curve(run.name, [line["epoch"] for line in lines], [value(line) for line in lines])


def _chart(title: str, unit: str, curves: Sequence[Curve], words: str = "") -> str:
    """A run looks alike in all charts, also where others have nothing to draw."""
    own = [replace(curve, series=place) for place, curve in enumerate(curves)]
    drawn = [curve for curve in own if any(value is not None for value in curve.y)]
    if not drawn:
        return ""
    more = f"Only the first {MOST} runs are drawn." if len(drawn) > MOST else ""
    caption = " ".join(part for part in (words, more) if part)
    return figure(lambda width: line_chart(drawn[:MOST], title=title, x_label="epoch", y_label=unit, width=width), caption)


def _settings(runs: Sequence[Compared]) -> str:
    found = differing_settings(runs)
    if not found:
        return paragraph("None: the runs differ in nothing that was set.")
    if len(runs) <= BESIDE:
        columns = range(len(runs) + 1)
        return table(("setting", *(run.name for run in runs)), [[key, *values] for key, values in found.items()], words=columns)
    return table(("setting", "value", "runs"), _by_value(found, [run.name for run in runs]), words=range(3))


def _by_value(found: dict[str, list[str]], names: Sequence[str]) -> list[list[str | None]]:
    """A row for each value with the runs that have it; what most have comes first and is not listed run by run."""
    rows: list[list[str | None]] = []
    for key, values in found.items():
        by_value = {value: [name for name, one in zip(names, values) if one == value] for value in values}
        for value, runs in sorted(by_value.items(), key=lambda pair: -len(pair[1])):
            rest = len(runs) > len(names) / 2
            rows.append([key, value, f"the other {len(runs)}" if rest else ", ".join(runs)])
    return rows


def compare_csv(runs: Sequence[Compared]) -> str:
    """`low` and `high` are ends of 95 % intervals; `difference` is to the first run, in points, and empty in its own row."""
    settings = differing_settings(runs)
    aucs = tuple(dict.fromkeys(("auc_loss", "auc_prototype", *(key for run in runs for key in run.auc))))
    rows = [[*_row(run, aucs), *(values[place] for values in settings.values())] for place, run in enumerate(runs)]
    return as_csv((*CSV_HEADER, *aucs, *settings), rows)


def _row(run: Compared, aucs: Sequence[str]) -> list[str]:
    end, against = run.final, run.against
    finals: tuple[float | None, ...] = (None,) * 4
    if end is not None:
        finals = (end.last, end.tail, None if end.tail is None else end.tail_epochs, end.best)
    beside: tuple[float | None, ...] = (None,) * 5
    if against is not None:
        beside = (against.points, against.low, against.high, against.only_first, against.only_second)
    numbers = (*finals, run.accuracy, *run.between, *beside, *(run.auc.get(key) for key in aucs))
    done = "true" if run.done else "false"
    return [str(run.path), str(run.record.epochs_done), done, *("" if value is None else str(value) for value in numbers)]
