"""What a run found goes in, its page comes out. Every number on it is one that was measured or, where it says so, estimated."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from labelsieve.issues.estimate import HOW, LIMITED, VAGUE, Share, Yield, in_words
from labelsieve.issues.rules import unlisted_words
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
from labelsieve.report.markup import element, escape, percent
from labelsieve.report.page import Section, Suspect, commands, facts, figure, gallery, page, paragraph, scrolled, steps, table

MOST_ROWS = 40  # of a table by class
MOST_LEFT_OUT = 30
MILESTONES = (20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 20_000, 50_000)
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
PAIRS = "A strong cell away from the others is a pair of classes that is easily confused, by people or by what made the labels."
MEANING = {
    "keep": "the label fits",
    "relabel": "both networks are sure of the same other class",
    "review": "in doubt: a person should look",
    "drop": "like none of the classes",
}


@dataclass(frozen=True, eq=False)
class Corner:
    """The most suspicious labels of one given class: how many are listed, and those shown."""

    name: str
    listed: int
    suspects: Sequence[Suspect]


@dataclass(frozen=True, eq=False)
class RunReport:
    """Arrays (N,) are by sample; `wrong` is True where a label is known to be wrong, None where nothing is known.

    `corners` show pictures; without pictures `suspects` are rows (id, given, suggested, score) instead. `actions` and
    `curves` are in the order to show; `curves` are groups of one chart each: (title, unit, curves).
    """

    title: str
    lead: str
    classes: Sequence[str]
    share: Share
    shares: Sequence[Share]
    listed: np.ndarray  # (K,) int: issues by given class
    matrix: np.ndarray  # (K, K) issues, given by suggested
    expected: Yield
    score: np.ndarray
    loss: np.ndarray
    is_issue: np.ndarray
    actions: dict[str, int]
    kinds: dict[str, int]
    unlisted: int = 0  # labels to review that are no issues
    wrong: np.ndarray | None = None
    order: np.ndarray | None = None  # (N,) samples as listed; None: by their scores
    early: tuple[float, float, float] | None = None  # the estimate after the warm-up: share, low, high
    limited: bool = False  # no more are listed than neighbours say are wrong
    accuracy: float | None = None  # percent on test samples, last epoch
    things: str = "pictures"  # what samples are called
    corners: Sequence[Corner] = ()
    unshown: int = 0  # classes with issues that are in no corner
    suspects: Sequence[Sequence[str]] = ()
    curves: Sequence[tuple[str, str, Sequence[Curve]]] = ()
    warmup: int = 0
    notes: Sequence[str] = ()
    cautions: Sequence[str] = ()
    left_out: Sequence[tuple[str, str]] = ()
    decided: int = 0  # labels that people settled in earlier rounds
    rounds: tuple[Sequence[str], Sequence[Sequence[str]]] = ((), ())  # header and rows, from the second round on
    settings: dict[str, str] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)
    next_steps: Sequence[str] = ()
    next_commands: Sequence[str] = ()


def run_page(data: RunReport) -> str:
    """The whole HTML document."""
    sections = [
        Section("What was found", _found(data)),
        Section("Rounds", _rounds(data)),
        Section("How many to check", _yield(data)),
        Section("Class by class", _by_class(data)),
        Section("What was given, what is suggested", _pairs(data)),
        Section("The most suspicious labels", _suspects(data)),
        Section("Scores and losses", _histograms(data)),
        Section("Training", _training(data)),
        Section("Pictures that were left out", _left_out(data.left_out)),
        Section("What to do next", steps(data.next_steps) + commands(data.next_commands) if data.next_steps else ""),
        Section("Settings and versions", _settings(data)),
    ]
    return page(data.title, data.lead, [section for section in sections if section.body])


def span_of(share: Share) -> str:
    return _between(f"{100 * share.low:.1f}", percent(share.high))


def _words(share: float, low: float, high: float) -> tuple[str, str]:
    """What to lead with, and what to say in brackets; no line ends before a percent sign."""
    lead, aside = in_words(share, low, high)
    return lead.replace(" %", "\u00a0%"), aside.replace(" to ", "\u00a0to\u00a0").replace(" %", "\u00a0%")


def _figure(share: Share) -> str:
    """The one to show large: the estimate, or its whole interval where that is wide."""
    whole = _between(f"{100 * share.low:.0f}", percent(share.high, 0))
    return whole if share.high - share.low > VAGUE else percent(share.share)


def _between(low: str, high: str) -> str:
    """Two numbers that no line end parts."""
    return f"{low}\u00a0to\u00a0{high}"


def _found(data: RunReport) -> str:
    count, issues = len(data.score), int(data.is_issue.sum())
    lead, aside = _words(data.share.share, data.share.low, data.share.high)
    words = f"{lead[0].upper()}{lead[1:]} of the {count:,} labels seem to be wrong ({aside}). "
    words += f"{issues:,} {'is' if issues == 1 else 'are'} listed as issues."
    pairs = [
        (_figure(data.share), f"of the labels seem wrong ({aside})"),
        (f"{issues:,}", f"of {count:,} labels listed as issues"),
    ]
    if data.decided:
        pairs.append((f"{data.decided:,}", "labels decided by people before: taken as right, and not listed"))
    if data.accuracy is not None:
        pairs.append((percent(data.accuracy / 100), f"accuracy on test {data.things}, last epoch"))
    if data.wrong is not None:
        pairs.append((percent(float(data.wrong.mean())), "of the labels are known to be wrong"))
    rows = [(name, f"{number:,}", MEANING[name]) for name, number in data.actions.items()]
    kinds = ", ".join(f"{name} {number:,}" for name, number in data.kinds.items())
    notes = [unlisted_words(data.unlisted), LIMITED if data.limited else HOW, _early(data), f"By kind: {kinds}.", _truth(data)]
    actions = table(("Suggested", "Labels", "Because"), rows, words=(0, 2))
    warned = "".join(paragraph(caution, "caution") for caution in data.cautions)
    return (
        paragraph(words, "sentence")
        + warned
        + facts(pairs)
        + actions
        + "".join(paragraph(note, "note") for note in notes if note)
    )


def _early(data: RunReport) -> str:
    """What the run estimated before it chose its settings, by other means."""
    if data.early is None:
        return ""
    share, low, high = data.early
    lead, aside = _words(share, low, high)
    return f"After the warm-up, from the neighbours of each sample, the run had estimated {lead} ({aside})."


def _truth(data: RunReport) -> str:
    """Where true labels are known: how many of the listed are wrong, and how many of the wrong are listed."""
    if data.wrong is None or not data.is_issue.any() or not data.wrong.any():
        return ""
    both = int((data.wrong & data.is_issue).sum())
    return (
        f"True labels are known here: of {int(data.is_issue.sum()):,} listed labels {both:,} really are wrong, "
        f"of {int(data.wrong.sum()):,} wrong ones {both:,} are listed. Training never saw them."
    )


def _rounds(data: RunReport) -> str:
    header, rows = data.rounds
    if not rows:
        return ""
    words = (
        "Each round trained on what people had decided before it: their labels taken as right, dropped samples left out. This "
        "page lists what is new or still in doubt."
    )
    return paragraph(words) + table(header, rows)


def _yield(data: RunReport) -> str:
    found, count = data.expected, len(data.score)
    issues = int(data.is_issue.sum())
    at = min(200, count) if issues >= 200 else max(min(issues, count), min(20, count))
    expected, low, high = found.at(at)
    wide = f"between {low:,.0f} and {high:,.0f} are wrong (point estimate {expected:,.0f})"
    narrow = f"about {expected:,.0f} are wrong ({low:,.0f} to {high:,.0f})"
    words = f"Check the first {at:,} of the list: {wide if high - low > VAGUE * at else narrow}."
    end = _end_of_interest(data)
    near = found.checked <= end
    x, y = found.checked[near], found.expected[near]
    curves = [Curve("expected", x, y, between=(found.low[near], found.high[near]))]
    if data.wrong is not None:
        order = np.argsort(data.score, kind="stable") if data.order is None else data.order
        real = np.concatenate([[0], data.wrong[order].cumsum()])
        curves.append(Curve("really wrong", x, real[x.astype(int)]))
    chart = figure(
        lambda width: line_chart(
            curves,
            title="Wrong labels among the first of the list",
            x_label="labels checked",
            y_label="wrong labels",
            width=width,
        ),
        "Where the line bends, checking on stops to pay. The shaded area is the interval described above.",
    )
    places = sorted({place for place in (*MILESTONES, issues) if 0 < place <= end} | {at})
    rows = [(f"{place:,}", *_milestone(found, place)) for place in places]
    header = ("Labels checked", "Wrong ones to expect", "Share wrong")
    return paragraph(words, "sentence") + chart + table(header, rows)


def _milestone(found: Yield, place: int) -> tuple[str, str]:
    expected, low, high = found.at(place)
    return f"{expected:,.0f} ({_between(f'{low:,.0f}', f'{high:,.0f}')})", _share_of(expected / place)


def _share_of(share: float) -> str:
    """Not 100 % where some are expected to be right."""
    return "over\u00a099\u00a0%" if 0.995 <= share < 1 else percent(share, 0)


def _end_of_interest(data: RunReport) -> int:
    """The list goes on with labels that are fine; the chart ends when twice the issues are checked."""
    return min(len(data.score), max(2 * int(data.is_issue.sum()), 50))


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
                percent(data.shares[k].share),
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
    more = "1 class more has issues" if data.unshown == 1 else f"{data.unshown:,} classes more have issues"
    return f" Shown are the {shown:,} classes of which most seems wrong; {more}."


def _histograms(data: RunReport) -> str:
    if data.wrong is not None:
        names, mask = ("right labels", "wrong labels"), data.wrong
    else:
        names, mask = ("not listed", "listed as issues"), data.is_issue
    charts = []
    for values, title, label, words in (
        (data.score, "Label scores", "label score", "Two heaps far apart: the run is sure. Much in between: check more by eye."),
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
    return "".join(charts) + (paragraph("What the run remarked:") + notes if notes else "")


def _one_chart(title: str, unit: str, curves: Sequence[Curve], bands: Sequence[Band]) -> str:
    return figure(lambda width: line_chart(curves, title=title, x_label="epoch", y_label=unit, bands=bands, width=width))


def _left_out(rows: Sequence[tuple[str, str]]) -> str:
    if not rows:
        return ""
    words = f"{len(rows):,} {'picture' if len(rows) == 1 else 'pictures'} could not be used and took no part."
    more = f" The first {MOST_LEFT_OUT} are shown." if len(rows) > MOST_LEFT_OUT else ""
    return paragraph(words + more) + table(("Picture", "Why"), rows[:MOST_LEFT_OUT], words=(0, 1))


def _settings(data: RunReport) -> str:
    """The few that matter most and the versions openly, all settings in a fold."""
    first = [(key, data.settings[key]) for key in MAIN_SETTINGS if key in data.settings]
    whole = table(("Setting", "Value"), list(data.settings.items()), words=(0, 1))
    versions = table(("Made with", "Version"), list(data.versions.items()), words=(0, 1)) if data.versions else ""
    fold = element("details", element("summary", f"All {len(data.settings)} settings"), whole) if data.settings else ""
    return (table(("Setting", "Value"), first, words=(0, 1)) if first else "") + versions + fold
