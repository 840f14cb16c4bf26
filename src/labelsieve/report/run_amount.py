"""The part of a run's report on how much is wrong, and how many labels to check."""

import numpy as np

from labelsieve.issues.estimate import BY_HEADS, HOW, LIMITED, UNKNOWN, VAGUE, Share, Yield, in_words
from labelsieve.issues.percent import ends
from labelsieve.issues.rules import unlisted_words
from labelsieve.report.charts import Curve, line_chart
from labelsieve.report.markup import percent
from labelsieve.report.page import facts, figure, paragraph, table
from labelsieve.report.run_facts import RunReport

MILESTONES = (20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 20_000, 50_000)
MEANING = {
    "keep": "the label fits",
    "relabel": "both networks are sure of the same other class",
    "review": "in doubt; a person should look",
    "drop": "looks like none of the classes",
}


def span_of(share: Share) -> str:
    if share.high - share.low > UNKNOWN:
        return "unknown"
    low, high = ends(share.low, share.high)
    return _between(low, f"{high}\u00a0%")


def figure_of(share: Share) -> str:
    """The estimate alone, where there is one."""
    return "unknown" if share.high - share.low > UNKNOWN else percent(share.share)


def _words(share: float, low: float, high: float) -> tuple[str, str]:
    """What to lead with, and what to say in brackets; no line ends before a percent sign."""
    lead, aside = in_words(share, low, high)
    return lead.replace(" %", "\u00a0%"), aside.replace(" to ", "\u00a0to\u00a0").replace(" %", "\u00a0%")


def _figure(share: Share, decimals: int = 1) -> str:
    """One figure alone: the estimate, or its whole interval where that is wide."""
    if share.high - share.low > UNKNOWN:
        return "unknown"
    low, high = ends(share.low, share.high, 0)
    return _between(low, f"{high}\u00a0%") if share.high - share.low > VAGUE else percent(share.share, decimals)


def _between(low: str, high: str) -> str:
    """Two numbers that no line end parts."""
    return f"{low}\u00a0to\u00a0{high}"


def amount(data: RunReport) -> str:
    """How many labels seem wrong and are listed, what to do with them, and how far to trust that."""
    count, issues = len(data.score), int(data.is_issue.sum())
    lead, aside = _words(data.share.share, data.share.low, data.share.high)
    words = f"{lead[0].upper()}{lead[1:]} of the {count:,} labels seem to be wrong ({aside}). "
    words += f"{issues:,} {'is listed as an issue' if issues == 1 else 'are listed as issues'}."
    pairs = [
        (_figure(data.share), f"of the labels seem wrong ({aside})"),
        (f"{issues:,}", f"of {count:,} labels listed as issues"),
    ]
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
        BY_HEADS if data.by_heads else LIMITED if data.limited else HOW,
        _early(data),
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


def _early(data: RunReport) -> str:
    """What the run estimated before it chose its settings, by other means."""
    if data.early is None:
        return ""
    share, low, high = data.early
    lead, aside = _words(share, low, high)
    return f"After the warm-up, the run estimated {lead} ({aside})."


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
    share = _figure(Share(expected / place, low / place, high / place, place), 0)
    return f"{expected:,.0f} ({_between(f'{low:,.0f}', f'{high:,.0f}')})", share


def _end_of_interest(data: RunReport) -> int:
    """The list goes on with labels that are fine; the chart ends when twice the issues are checked."""
    return min(len(data.score), max(2 * int(data.is_issue.sum()), 50))
