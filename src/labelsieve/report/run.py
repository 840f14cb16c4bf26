"""A run's report. Every number in it was measured or, where it says so, estimated."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from labelsieve.issues.estimate import BY_THE_RUN, HOW, MEASURED, RIGHT, UNKNOWN_WORDS, VAGUE, Share, Yield, sentence
from labelsieve.issues.rules import SAMPLE_ISSUES, unlisted_words
from labelsieve.report.canvas import NARROW, WIDE
from labelsieve.report.charts import Band, Curve, Group, histogram, line_chart
from labelsieve.report.maps import MOST_CLASSES as MOST_MAPPED
from labelsieve.report.maps import crowded_map, dot_map, fits, heat_map, largest_pairs
from labelsieve.report.markup import element, escape, percent
from labelsieve.report.page import (
    Odd,
    Section,
    Suspect,
    commands,
    facts,
    figure,
    gallery,
    odd_gallery,
    page,
    paragraph,
    scrolled,
    steps,
    table,
)
from labelsieve.texts import ends


@dataclass(frozen=True, eq=False)
class Corner:
    """The most suspicious labels of one given class: how many are listed, and those shown."""

    name: str
    listed: int
    suspects: Sequence[Suspect]


@dataclass(frozen=True, eq=False)
class OddSamples:
    """What is odd itself, of one kind: how many there are, and some of them, as pictures or, without any, as (id, label)."""

    kind: str
    count: int
    shown: Sequence[Odd]
    named: Sequence[tuple[str, str]]


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
    samples: Sequence[int]  # (K,) by given class
    listed: Sequence[int]  # (K,) issues among them
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
    by: str = ""  # who estimated the share, a key of issues.estimate.HOW
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
    odd: Sequence[OddSamples] = ()
    is_odd: np.ndarray | None = None  # (N,) bool
    given: np.ndarray | None = None  # (N,) int
    at: np.ndarray | None = None  # (N, 2) places on the map, in the unit square
    decided: int = 0  # labels that people settled in earlier rounds
    rounds: tuple[Sequence[str], Sequence[Sequence[str]]] = ((), ())  # header and rows, from the second round on
    settings: dict[str, str] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)
    next_steps: Sequence[str] = ()
    next_commands: Sequence[str] = ()


MILESTONES = (20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 20_000, 50_000)
MEANING = {
    "keep": "the label fits",
    "relabel": "surely looks like another class",
    "review": "in doubt; a person should look",
    "drop": "looks like none of the classes",
}


def _sentence(share: Share, what: str) -> str:
    """How many seem wrong; no line ends before a percent sign."""
    return sentence(share, what).replace(" to ", "\u00a0to\u00a0").replace(" %", "\u00a0%")


def _figure(share: Share, decimals: int = 1) -> str:
    """One figure alone: the estimate, or its whole interval where that is wide."""
    low, high = ends(share.low, share.high, 0)
    return _between(low, f"{high}\u00a0%") if share.high - share.low > VAGUE else percent(share.share, decimals)


def _between(low: str, high: str) -> str:
    """Two numbers that no line end parts."""
    return f"{low}\u00a0to\u00a0{high}"


def amount(data: RunReport) -> str:
    """How many labels seem wrong and are listed, what to do with them, and how far to trust that."""
    count, issues = len(data.score), int(data.is_issue.sum())
    known = data.share.known  # else a caution says so
    words = f"{_sentence(data.share, f'the {count:,} labels')} " if known else ""
    words += f"{issues:,} {'label is listed as an issue' if issues == 1 else 'labels are listed as issues'}."
    pairs = [(f"{issues:,}", f"of {count:,} labels listed as issues")]
    if known:
        low, high = ends(data.share.low, data.share.high)
        pairs.insert(0, (_figure(data.share), f"of the labels seem wrong ({_between(low, high)}\u00a0%)"))
    if data.decided:
        pairs.append((f"{data.decided:,}", "labels that people decided before; they count as right and are not listed"))
    if data.accuracy is not None:
        pairs.append((percent(data.accuracy / 100), f"accuracy on test {data.things}, last epoch"))
    if data.wrong is not None:
        pairs.append((percent(float(data.wrong.mean())), "of the labels are known to be wrong"))
    rows = [(name, f"{number:,}", MEANING[name]) for name, number in data.actions.items()]
    kinds = ", ".join(f"{name} {number:,}" for name, number in data.kinds.items())
    notes = [
        unlisted_words(data.unlisted),
        HOW[data.by] + MEASURED if known and data.by in HOW else "",
        RIGHT.get(data.by, "") if known and issues else "",
        f"By kind: {kinds}.",
        _truth(data),
    ]
    actions = table(("Suggested", "Labels", "Why"), rows, words=(0, 2))
    warned = "".join(paragraph(caution, "caution") for caution in data.cautions)
    return (
        paragraph(words, "sentence")
        + warned
        + facts(pairs)
        + actions
        + "".join(paragraph(note, "note") for note in notes if note)
    )


def _truth(data: RunReport) -> str:
    """Where true labels are known: how many of the listed are wrong, and how many of the wrong are listed."""
    if data.wrong is None or not data.is_issue.any() or not data.wrong.any():
        return ""
    both = int((data.wrong & data.is_issue).sum())
    return (
        f"True labels are known here: of {int(data.is_issue.sum()):,} listed labels {both:,} really are wrong, "
        f"of {int(data.wrong.sum()):,} wrong ones {both:,} are listed. Training never saw them."
    )


def worth_checking(data: RunReport) -> str:
    """How many wrong labels to expect among the first of the list."""
    found, count = data.expected, len(data.score)
    issues = int(data.is_issue.sum())
    if not data.share.known:
        return paragraph(UNKNOWN_WORDS)
    at = min(200, count) if issues >= 200 else max(min(issues, count), min(20, count))
    expected, low, high = found.at(at)
    wide = f"between {low:,.0f} and {high:,.0f} seem to be wrong (point estimate {expected:,.0f})"
    narrow = f"about {expected:,.0f} seem to be wrong ({low:,.0f} to {high:,.0f})"
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
        "Where the line flattens, checking further stops paying off. The shaded area is the interval described above.",
    )
    places = sorted({place for place in (*MILESTONES, issues) if 0 < place <= end} | {at})
    rows = [(f"{place:,}", *_milestone(found, place)) for place in places]
    header = ("Labels checked", "Wrong ones expected", "Share wrong")
    return paragraph(words, "sentence") + chart + table(header, rows)


def _milestone(found: Yield, place: int) -> tuple[str, str]:
    """How many wrong ones, with the interval, and their share: the whole interval, too, where that is wide."""
    expected, low, high = found.at(place)
    share = _figure(Share(expected / place, low / place, high / place), 0)
    return f"{expected:,.0f} ({_between(f'{low:,.0f}', f'{high:,.0f}')})", share


def _end_of_interest(data: RunReport) -> int:
    """The list goes on with labels that are fine; the chart ends when twice the issues are checked."""
    return min(len(data.score), max(2 * int(data.is_issue.sum()), 50))


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
        Section("Odd samples", _odd(data)),
        Section("The map", _map(data)),
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
    header = ("Given label", "Samples", "Listed", "Share listed", "Most often suggested")
    rows = _class_rows(data)
    first, left = rows[:MOST_ROWS], rows[MOST_ROWS:]
    shown = table(header, first, words=(0, 4))
    if not left:
        return shown
    which = f"{len(left):,} classes of which less is listed" if len(left) > 1 else "1 class of which less is listed"
    return shown + element("details", element("summary", which), table(header, left, words=(0, 4)))


def _class_rows(data: RunReport) -> list[tuple[str | None, ...]]:
    """Those of which most is listed first."""
    rows: list[tuple[str | None, ...]] = []
    shares = [listed / max(samples, 1) for listed, samples in zip(data.listed, data.samples)]
    for k in sorted(range(len(data.classes)), key=lambda k: (-shares[k], k)):
        other = int(data.matrix[k].argmax()) if data.matrix[k].any() else None
        rows.append(
            (
                data.classes[k],
                f"{data.samples[k]:,}",
                f"{data.listed[k]:,}",
                percent(shares[k]),
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


def _odd(data: RunReport) -> str:
    if not data.odd:
        return ""
    words = (
        "These are odd themselves, whatever their labels, and are in no estimate above. Nothing is done about them unless you "
        "say so: drop or keep them on the review page."
    )
    parts = [paragraph(words)]
    for one in data.odd:
        shown = len(one.shown) or len(one.named)
        more = f"{one.count:,}" + (f", {shown:,} shown" if shown < one.count else "")
        parts.append(element("h3", f"{escape(one.kind.capitalize())} ", element("small", f"{more}: {SAMPLE_ISSUES[one.kind]}")))
        parts.append(odd_gallery(one.shown) if one.shown else table(("Id", "Given"), one.named, words=(0, 1)))
    return "\n".join(parts)


def _map(data: RunReport) -> str:
    if data.at is None or data.given is None or data.is_odd is None:
        return ""
    words = (
        f"A dot for each {data.things.removesuffix('s')}, in the colour of its given label, near those that look like it. "
        "Suspicious labels have a ring, odd samples are squares. A ring among dots of another colour is likely a wrong label; a "
        "group of them may be a class of its own."
    )
    return dot_map(data.at, data.given, data.is_issue, data.is_odd, data.classes, "The map") + paragraph(words, "note")


def _unshown(data: RunReport) -> str:
    if not data.unshown:
        return ""
    shown = len(data.corners)
    more = "1 more class has issues" if data.unshown == 1 else f"{data.unshown:,} more classes have issues"
    which = "Shown is the class" if shown == 1 else f"Shown are the {shown:,} classes"
    return f" {which} of which most is listed; {more}."


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
