"""The demo's report. Every number on it is one that was measured."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from labelsieve.errors import UsageError
from labelsieve.report.charts import Band, Curve, Group, histogram, line_chart
from labelsieve.report.markup import percent
from labelsieve.report.page import Section, Suspect, facts, figure, gallery, page, paragraph, steps, table

__all__ = ["DemoReport", "DemoRow", "Suspect", "demo_page", "headline"]

SHOWN = 24

NEXT_STEPS = (
    "Look through the pictures above and judge for yourself whether the suggested labels are better.",
    "Run labelsieve on your own pictures and labels. It needs no true labels: here they only served to measure.",
    "Treat the list it gives you as a list of questions. Check the most suspicious labels first, and correct "
    "those you agree are wrong.",
)


@dataclass(frozen=True)
class DemoRow:
    """One way of training, all figures as shares in [0, 1]; None where there is nothing to measure.

    `accuracy_best` is the best epoch's, chosen on the test set. `issue_precision` is the share of the listed
    labels that really are wrong, `issue_recall` the share of the wrong labels that are listed.
    """

    name: str
    accuracy_last: float
    accuracy_best: float
    auc: float | None
    issue_precision: float | None
    issue_recall: float | None


@dataclass(frozen=True, eq=False)
class DemoReport:
    """What a demonstration measured. `rows`: plain training first, labelsieve last.

    Curves run over epochs, y as shares in [0, 1]; `warmup` is the number of epochs before cleaning starts.
    `losses` and `wrong` are (N,), one per training label, the latter True where the label is wrong.
    """

    title: str
    lead: str
    rows: list[DemoRow]
    accuracy: list[Curve]
    auc: list[Curve]
    warmup: int
    losses: np.ndarray
    wrong: np.ndarray
    suspects: list[Suspect]
    settings: dict[str, str]
    next_steps: Sequence[str] = NEXT_STEPS


def demo_page(data: DemoReport) -> str:
    """The whole HTML document."""
    _check(data)
    sections = [
        Section("What happened", paragraph(headline(data), "sentence") + facts(_facts(data))),
        Section("Results", _results(data.rows)),
        Section("Accuracy, epoch by epoch", _accuracy(data)),
        Section("Telling wrong labels from right ones", _auc(data)),
        Section("Why it works: the losses of right and wrong labels", _losses(data)),
        Section("The most suspicious labels", _suspects(data.suspects)),
        Section("Settings", table(("Setting", "Value"), list(data.settings.items()), words=(0, 1))),
        Section("What to do next", steps(data.next_steps)),
    ]
    return page(data.title, data.lead, [section for section in sections if section.body])


def _check(data: DemoReport) -> None:
    if len(data.losses) != len(data.wrong):
        raise UsageError(f"demo report: {len(data.losses)} losses for {len(data.wrong)} labels; give one a label")
    for row in data.rows:
        shares = (row.accuracy_last, row.accuracy_best, row.auc, row.issue_precision, row.issue_recall)
        outside = [share for share in shares if share is not None and not 0 <= share <= 1]
        if outside:
            raise UsageError(f'demo report, row "{row.name}": {outside[0]} is not a share in 0..1 (percent? divide by 100)')


def headline(data: DemoReport) -> str:
    """What happened, in a few sentences that need no knowledge of the method."""
    said = []
    if len(data.wrong):
        said.append(f"{percent(float(np.mean(data.wrong)), 0)} of the labels were made wrong on purpose.")
    if data.rows:
        first, last = data.rows[0], data.rows[-1]
        ends = f"{_capital(first.name)} ends at {percent(first.accuracy_last)} accuracy"
        ends += f", {last.name} at {percent(last.accuracy_last)}" if len(data.rows) > 1 else ""
        found = "" if last.issue_recall is None else f", and it found {percent(last.issue_recall)} of the wrong labels"
        said.append(f"{ends}{found}.")
        if last.issue_precision is not None:
            said.append(f"Of the labels on its list, {percent(last.issue_precision)} really are wrong.")
    return " ".join(said)


def _capital(name: str) -> str:
    return name[:1].upper() + name[1:]


def _facts(data: DemoReport) -> list[tuple[str, str]]:
    """The sentence's numbers again, to be seen at a glance."""
    pairs = []
    if len(data.wrong):
        counts = f"{int(np.sum(data.wrong)):,} of {len(data.wrong):,} labels are wrong"
        pairs.append((percent(float(np.mean(data.wrong)), 0), counts))
    for row in (data.rows[:1] + data.rows[-1:])[: len(data.rows)]:
        pairs.append((percent(row.accuracy_last), f"accuracy of {row.name}"))
    if data.rows and data.rows[-1].issue_recall is not None:
        pairs.append((percent(data.rows[-1].issue_recall), "of the wrong labels found"))
    return pairs


def _results(rows: Sequence[DemoRow]) -> str:
    if not rows:
        return ""
    header = (
        "Training",
        "Accuracy, last epoch",
        "Accuracy, best epoch",
        "Ranking of labels (AUC)",
        "Listed labels that are wrong",
        "Wrong labels that are listed",
    )
    cells = [
        (
            row.name,
            percent(row.accuracy_last),
            percent(row.accuracy_best),
            None if row.auc is None else f"{row.auc:.4f}",
            percent(row.issue_precision),
            percent(row.issue_recall),
        )
        for row in rows
    ]
    words = (
        "Accuracy is measured on test pictures with right labels, which no training saw. The best epoch is "
        "chosen on those same pictures, so it flatters; go by the last one. AUC is the chance that a wrong "
        "label is ranked as more suspicious than a right one by the class prototypes alone. The last two columns are "
        "precision and recall of the list, whose order goes by what the networks say, too."
    )
    return table(header, cells, strong=(len(rows) - 1,) if len(rows) > 1 else ()) + paragraph(words, "note")


def _accuracy(data: DemoReport) -> str:
    curves = [_in_percent(curve) for curve in _alike(data, data.accuracy)]
    return _over_epochs(curves, data.warmup, "Accuracy on test pictures", "percent right", "") if curves else ""


def _auc(data: DemoReport) -> str:
    words = "0.5 is guessing, 1 is perfect. Measured with the true labels, which training never sees."
    curves = _alike(data, data.auc)
    return _over_epochs(curves, data.warmup, "Ranking of wrong labels", "AUC", words) if curves else ""


def _over_epochs(curves: Sequence[Curve], warmup: int, title: str, unit: str, caption: str) -> str:
    # Up to the end of the warm-up, which is where the first epoch of cleaning starts.
    bands = [Band(0, warmup, "warm-up")] if warmup > 0 else []
    return figure(
        lambda width: line_chart(curves, title=title, x_label="epoch", y_label=unit, bands=bands, width=width),
        caption,
    )


def _alike(data: DemoReport, curves: Sequence[Curve]) -> list[Curve]:
    """One look a name on the whole page; labelsieve's accuracy, the last curve, has the first look."""
    names = list(dict.fromkeys(curve.name for curve in [*reversed(data.accuracy), *data.auc]))
    return [replace(curve, series=names.index(curve.name)) for curve in curves]


def _in_percent(curve: Curve) -> Curve:
    return replace(curve, y=[None if value is None else 100 * float(value) for value in curve.y])


def _losses(data: DemoReport) -> str:
    if not len(data.losses):
        return ""
    wrong = np.asarray(data.wrong, dtype=bool)
    groups = [Group("right labels", data.losses[~wrong]), Group("wrong labels", data.losses[wrong])]
    words = (
        "A network learns what right labels have in common long before it memorises wrong ones, so a "
        "wrong label tends to have a large loss. The further the two shapes lie apart, the easier it is to "
        "tell them."
    )
    return figure(
        lambda width: histogram(groups, title="Loss of every training label", x_label="loss", width=width),
        words,
    )


def _suspects(suspects: Sequence[Suspect]) -> str:
    # A score that is not a number is no reason for doubt: it sorts last.
    shown = sorted(suspects, key=lambda suspect: (np.isnan(suspect.score), suspect.score))[:SHOWN]
    judged = [suspect.wrong for suspect in shown if suspect.wrong is not None]
    words = "Most suspicious first; a low score is a strong doubt."
    if judged:
        words += f" Of these {len(judged)} given labels, {sum(judged)} really are wrong."
    return paragraph(words) + gallery(shown) if shown else ""
