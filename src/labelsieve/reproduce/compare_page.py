"""Writes compared runs: an HTML page with numbers, intervals, curves and settings that differ, or a CSV of all numbers."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from labelsieve.report.line_chart import Curve, line_chart
from labelsieve.report.page import Section, figure, page, paragraph, table
from labelsieve.reproduce.compare import Compared, differing_settings
from labelsieve.results.tail import opinion, rankings
from labelsieve.texts import as_csv

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
