"""A run's report. Every number in it was measured or, where it says so, estimated."""

from collections.abc import Sequence

import numpy as np

from labelsieve.issues.estimate import BY_THE_RUN
from labelsieve.report.canvas import NARROW, WIDE
from labelsieve.report.charts import (
    MOST_MAPPED,
    Band,
    Curve,
    Group,
    crowded_map,
    fits,
    heat_map,
    histogram,
    largest_pairs,
    line_chart,
)
from labelsieve.report.markup import element, escape
from labelsieve.report.page import Section, commands, figure, gallery, page, paragraph, scrolled, steps, table
from labelsieve.report.run_amount import amount, figure_of, span_of, worth_checking
from labelsieve.report.run_facts import RunReport

MOST_ROWS = 40  # of a table by class
MOST_LEFT_OUT = 30
MAIN_SETTINGS = (
    "method",
    "cleaner",
    "network",
    "seed",
    "data.source",
    "data.noise",
    "training.epochs",
    "training.warmup",
    "training.batch",
    "training.lr",
    "training.lambda_u",
    "cleaning.tau",
)
PAIRS = "A dark cell away from the others is a pair of classes that people, or whatever made the labels, easily confuse."


def run_page(data: RunReport) -> str:
    """The whole HTML document."""
    sections = [
        Section("What was found", amount(data)),
        Section("Rounds", _rounds(data)),
        Section("How many to check", worth_checking(data)),
        Section("Class by class", _by_class(data)),
        Section("Given and suggested labels", _pairs(data)),
        Section("The most suspicious labels", _suspects(data)),
        Section("Scores and losses", _histograms(data)),
        Section("Training", _training(data)),
        Section("Pictures that were left out", _left_out(data.left_out)),
        Section("What to do next", steps(data.next_steps) + commands(data.next_commands) if data.next_steps else ""),
        Section("Settings and versions", _settings(data)),
    ]
    return page(data.title, data.lead, [section for section in sections if section.body])


def _rounds(data: RunReport) -> str:
    header, rows = data.rounds
    if not rows:
        return ""
    words = (
        "Each round trained on what people had decided before it: their labels count as right, dropped samples are left out. "
        "This page lists what is new or still in doubt."
    )
    return paragraph(words) + table(header, rows) + paragraph(BY_THE_RUN, "note")


def _by_class(data: RunReport) -> str:
    header = ("Given label", "Samples", "Wrong, estimated", "Interval", "Listed", "Most often suggested")
    rows = _class_rows(data)
    first, left = rows[:MOST_ROWS], rows[MOST_ROWS:]
    shown = table(header, first, words=(0, 5))
    if not left:
        return shown
    which = f"{len(left):,} classes with a lower estimate" if len(left) > 1 else "1 class with a lower estimate"
    return shown + element("details", element("summary", which), table(header, left, words=(0, 5)))


def _class_rows(data: RunReport) -> list[tuple[str | None, ...]]:
    """Those of which most seems wrong first."""
    rows: list[tuple[str | None, ...]] = []
    for k in sorted(range(len(data.classes)), key=lambda k: (-data.shares[k].share, k)):
        other = int(data.matrix[k].argmax()) if data.matrix[k].any() else None
        rows.append(
            (
                data.classes[k],
                f"{data.shares[k].count:,}",
                figure_of(data.shares[k]),
                span_of(data.shares[k]),
                f"{int(data.listed[k]):,}",
                None if other is None else f"{data.classes[other]} ({int(data.matrix[k, other]):,})",
            )
        )
    return rows


def _pairs(data: RunReport) -> str:
    if not data.matrix.any():
        return paragraph("No label is listed as an issue.", "note")
    names, title = data.classes, "Listed labels"
    if fits(names, names, NARROW) or len(names) > MOST_MAPPED:
        return figure(lambda width: heat_map(data.matrix, names, names, title=title, width=width), PAIRS)
    roomy = fits(names, names, WIDE)
    draw = heat_map(data.matrix, names, names, title=title) if roomy else crowded_map(data.matrix, names, title=title)
    apart = data.matrix * ~np.eye(len(names), dtype=bool)
    bars = figure(lambda width: largest_pairs(apart, names, names, title="The largest of them", width=width))
    return scrolled(draw, "Heat map of given and suggested labels", PAIRS) + (bars if apart.any() else "")


def _suspects(data: RunReport) -> str:
    words = "Most suspicious first; a low score is a strong doubt. The whole list is in issues.csv."
    if data.corners:
        parts = [paragraph(words + _unshown(data))]
        for corner in data.corners:
            more = element("small", f"{corner.listed:,} listed, {len(corner.suspects):,} shown")
            parts.append(element("h3", f"Given {escape(corner.name)} ", more) + gallery(corner.suspects))
        return "\n".join(parts)
    if data.suspects:
        return paragraph(words) + table(("Id", "Given", "Suggested", "Score"), data.suspects, words=(0, 1, 2))
    return paragraph("No label is listed as an issue.", "note")


def _unshown(data: RunReport) -> str:
    if not data.unshown:
        return ""
    shown = len(data.corners)
    more = "1 more class has issues" if data.unshown == 1 else f"{data.unshown:,} more classes have issues"
    which = "Shown is the class" if shown == 1 else f"Shown are the {shown:,} classes"
    return f" {which} with the largest share of wrong labels; {more}."


def _histograms(data: RunReport) -> str:
    if data.wrong is not None:
        names, mask = ("right labels", "wrong labels"), data.wrong
    else:
        names, mask = ("not listed", "listed as issues"), data.is_issue
    charts = []
    for values, title, label, words in (
        (
            data.score,
            "Label scores",
            "label score",
            "Two peaks far apart mean the run is sure. If much lies in between, check more by eye.",
        ),
        (data.loss, "Losses", "loss, mean of both networks", "Wrong labels tend to have large losses."),
    ):
        groups = [Group(names[0], values[~mask]), Group(names[1], values[mask])]
        charts.append(_one_histogram(groups, title, label, words))
    return "".join(charts)


def _one_histogram(groups: Sequence[Group], title: str, label: str, words: str) -> str:
    return figure(lambda width: histogram(groups, title=title, x_label=label, width=width), words)


def _training(data: RunReport) -> str:
    bands = [Band(0, data.warmup, "warm-up")] if data.warmup else []
    charts = [_one_chart(title, unit, curves, bands) for title, unit, curves in data.curves if curves]
    notes = steps(data.notes) if data.notes else ""
    return "".join(charts) + (paragraph("Notes from the run:") + notes if notes else "")


def _one_chart(title: str, unit: str, curves: Sequence[Curve], bands: Sequence[Band]) -> str:
    return figure(lambda width: line_chart(curves, title=title, x_label="epoch", y_label=unit, bands=bands, width=width))


def _left_out(rows: Sequence[tuple[str, str]]) -> str:
    if not rows:
        return ""
    words = f"{len(rows):,} {'picture' if len(rows) == 1 else 'pictures'} could not be read and were left out."
    more = f" The first {MOST_LEFT_OUT} are shown." if len(rows) > MOST_LEFT_OUT else ""
    return paragraph(words + more) + table(("Picture", "Why"), rows[:MOST_LEFT_OUT], words=(0, 1))


def _settings(data: RunReport) -> str:
    """The few that matter most and the versions openly, all settings in a fold."""
    first = [(key, data.settings[key]) for key in MAIN_SETTINGS if key in data.settings]
    whole = table(("Setting", "Value"), list(data.settings.items()), words=(0, 1))
    versions = table(("Made with", "Version"), list(data.versions.items()), words=(0, 1)) if data.versions else ""
    fold = element("details", element("summary", f"All {len(data.settings)} settings"), whole) if data.settings else ""
    return (table(("Setting", "Value"), first, words=(0, 1)) if first else "") + versions + fold
