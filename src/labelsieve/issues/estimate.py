"""Estimates how many labels are wrong, with an interval, and how many wrong ones to expect among the first of the list.

A label's chance to be wrong is 1 - label_score where the networks suggest another class, and 0 where they confirm it: scores
alone, averaged, find a quarter of clean labels wrong. The interval spans further opinions: what each network says by its
prototypes, by its loss and by its own suggestion, and the sum over those labels alone for which both networks suggest the
same class with a majority. It is widened by 1.96 standard deviations of the draw. All opinions can err together: where few
labels have taught the networks, `doubted` adds what neighbours say at least; where networks are known to err more often than
labels do, `limited` counts no more than are flagged.
"""

from dataclasses import dataclass

import numpy as np

from labelsieve.issues.percent import ends, rounded

HOW = (
    "The estimate is the mean of 1 − label score, counted where the networks suggest another class. The interval spans what each "
    "network says, by prototypes and by loss, what remains where both are more than half sure of the same class and, with fewer "
    "than 2,000 labels, how few are wrong by the neighbours of each sample, plus what chance alone would do. Take it as a guide: "
    "all of them can be wrong in the same way."
)
BY_HEADS = (
    "Estimated by heads on the vectors that have not seen the labels they judge: at least as many as differ where the heads are "
    "surest, at most as many as they contradict and may have missed. In RESULTS.md the interval is held against known noise."
)
LIMITED = (
    "The networks contradict more labels than can be wrong, so here they are wrong more often than your labels. The interval "
    "comes from the neighbours of each sample instead, and only that many labels are listed, the most suspicious ones. Not all "
    "of these are wrong, so check them by eye."
)
BY_THE_RUN = (
    "Wrong labels left are what each run estimated when it ended. The review page shows another number: it counts people's "
    "answers, and only labels that nobody has decided yet."
)
NORMAL = 1.96  # a normal variable leaves this many deviations once in twenty times
MAJORITY = 0.5
UNKNOWN = 0.5  # an interval of so many points says nothing
VAGUE = 0.1  # an interval of so many points says more than the estimate inside it


@dataclass(frozen=True, eq=False)
class Chances:
    """`wrong` (N,): the chance of each label to be wrong; `opinions` (J, N): what others say."""

    wrong: np.ndarray
    opinions: np.ndarray

    def rows(self, index: np.ndarray) -> "Chances":
        return Chances(self.wrong[index], self.opinions[:, index])


@dataclass(frozen=True)
class Share:
    """An estimated share of wrong labels in [0, 1], with its interval, over `count` samples."""

    share: float
    low: float
    high: float
    count: int


@dataclass(frozen=True, eq=False)
class Yield:
    """Wrong labels to expect among the first `checked` of the list: (M,) each."""

    checked: np.ndarray
    expected: np.ndarray
    low: np.ndarray
    high: np.ndarray

    def at(self, checked: int) -> tuple[float, float, float]:
        """Expected, low and high after so many."""
        expected, low, high = (float(np.interp(checked, self.checked, line)) for line in (self.expected, self.low, self.high))
        return expected, low, high


def in_words(share: float, low: float, high: float, decimals: int = 1) -> tuple[str, str]:
    """What to lead with and what to say in brackets: the estimate and its interval; the interval first where it is wide.

    On few samples the estimate can lie near one end of a wide interval, and the truth at the other.
    """
    if high - low > UNKNOWN:
        return "an unknown share", "too little is known of these classes to say more; the list is ranked all the same"
    point, (least, most) = f"{rounded(share, decimals)} %", ends(low, high, decimals)
    if high - low > VAGUE:
        return f"between {least} and {most} %", f"point estimate {point}"
    return point if point[0].isalpha() else f"about {point}", f"{least} to {most} %"


def chances(
    score: np.ndarray,
    judges: np.ndarray,
    given: np.ndarray,
    predicted: np.ndarray,
    suggested: np.ndarray,
    confidence: np.ndarray,
) -> Chances:
    """From clean chances: `score` (N,) of both, `judges` (J, R, N) of each network, by every opinion that its method has.

    `predicted` (R, N) is what each network says, `suggested` (N,) and `confidence` (N,) what they say together.
    """
    wrong = (1 - score) * (suggested != given)
    own = ((1 - judges) * (predicted != given)).reshape(-1, len(score))
    sure = (predicted == predicted[0]).all(0) & (confidence > MAJORITY)
    return Chances(wrong, np.concatenate([own, (wrong * sure)[None]]))


def limited(found: Chances, flagged: np.ndarray, low: float, high: float) -> Chances:
    """As many may be wrong as are `flagged` (N,); the interval reaches from `low` to `high`, as shares of all labels.

    Which ones: half way between the flagged alone, as if the list were in perfect order, and all that the networks contradict,
    in proportion. Where they err more often than labels do, a low score alone is no certainty (RESULTS.md). Fewer: either in
    proportion. More: labels that were not flagged as well, in proportion.
    """
    first, others = found.wrong * flagged, found.wrong * ~flagged
    mean, more = first.mean(), max(high - first.mean(), 0.0)
    anywhere = found.wrong * (mean / found.wrong.mean()) if mean else first
    fewer = min(low / mean, 1.0) if mean else 1.0
    most = first + others * min(more / others.mean(), 1.0) if others.any() else first
    return Chances((first + anywhere) / 2, np.stack([first * fewer, anywhere * fewer, first, most]))


def doubted(found: Chances, least: float) -> Chances:
    """One opinion more: as few as `least`, a share of all labels, may be wrong; all chances in proportion."""
    mean = found.wrong.mean() if len(found.wrong) else 0.0
    fewest = found.wrong * min(least / mean, 1.0) if mean else found.wrong
    return Chances(found.wrong, np.concatenate([found.opinions, fewest[None]]))


def by_heads(score: np.ndarray, differs: np.ndarray, order: np.ndarray, share: float, low: float, high: float) -> Chances:
    """Chances of labels that heads judge which have not seen them: as many are wrong as the estimate says.

    The fewest, and as many as are likely: spread over what the heads contradict, the lower the `score` (N,) the more. The most:
    the first of the list, in perfect order.
    """
    count = len(score)
    doubt = (1 - score) * differs
    weight = doubt / doubt.sum() if doubt.any() else np.zeros(count)
    fewest, likely = (np.minimum(part * count * weight, 1) for part in (low, share))
    most = np.zeros(count)
    most[order[: round(high * count)]] = 1
    return Chances(likely, np.stack([fewest, most]))


def wrong_share(found: Chances) -> Share:
    count = len(found.wrong)
    if not count:
        return Share(0.0, 0.0, 1.0, 0)
    said = np.append(found.opinions.mean(1), found.wrong.mean())
    wide = NORMAL * np.sqrt((found.wrong * (1 - found.wrong)).sum()) / count
    low, high = np.clip([said.min() - wide, said.max() + wide], 0, 1)
    return Share(float(found.wrong.mean()), float(low), float(high), count)


def by_class(found: Chances, given: np.ndarray, classes: int) -> list[Share]:
    """The same for the samples given each class."""
    return [wrong_share(found.rows(given == k)) for k in range(classes)]


def expected_yield(found: Chances, order: np.ndarray, points: int = 200) -> Yield:
    """Wrong labels among the first 1, 2, ... N samples of `order`, at about `points` places."""
    count, listed = len(order), found.rows(order)
    expected = listed.wrong.cumsum()
    said = np.concatenate([listed.opinions.cumsum(1), expected[None]])
    wide = NORMAL * np.sqrt((listed.wrong * (1 - listed.wrong)).cumsum())
    checked = np.arange(1, count + 1)
    low, high = np.clip(said.min(0) - wide, 0, checked), np.clip(said.max(0) + wide, 0, checked)
    places = np.linspace(0, count - 1, min(points, count)).round().astype(int)
    lines = [np.append(0.0, line[places]) for line in (checked, expected, low, high)]
    return Yield(*lines)
