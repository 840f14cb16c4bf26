"""How many labels are wrong, with an interval, and how many wrong ones to expect among the first of the list; in words, too.

The estimate itself is made where opinions on samples are at hand (`methods/parts/estimate.py`, docs/estimate.md). Here it is
spread over the labels: the fewest and as many as are likely over what is contradicted, the lower the score the more; the most at
the top of the list, in perfect order. Needs no torch.
"""

from dataclasses import dataclass

import numpy as np

from labelsieve.texts import ends, rounded

HOW = {
    "heads": "Estimated by heads on the features that have not seen the labels they judge",
    "networks": "Estimated by heads on the pictures' patches and networks in five folds; none has seen the label it judges",
    "neighbours": "Estimated by the samples that both networks find most alike, each sample's own label left out",
    "division": "Estimated by the last division into right and wrong labels, in which both networks agree",
    "probabilities": "Estimated by the probabilities you gave, which must be out of sample",
}
MEASURED = ". How often such intervals held where the truth is known: RESULTS.md."
# By who judges: of listed labels where the truth was known (RESULTS.md). Of other judges too little was measured.
RIGHT = {
    "heads": "In tests on photos with 5 to 40 % wrong labels, the suggested class was right for 7 in 10 labels marked relabel "
    "and for 5 in 10 marked review. If your labels are nearly clean, expect fewer. Check them by eye."
}
UNKNOWN_WORDS = (
    "How many labels are wrong cannot be known here, for too little is known of these classes; the list is ranked all the same, "
    "so check it from the top."
)
BY_THE_RUN = (
    "Wrong labels left are what each run estimated when it ended. The review page shows another number: it counts people's "
    "answers, and only labels that nobody has decided yet."
)
NORMAL = 1.96  # a normal variable leaves this many deviations once in twenty times
UNKNOWN = 0.5  # an interval of so many points says nothing
VAGUE = 0.1  # an interval of so many points says more than the estimate inside it


@dataclass(frozen=True, eq=False)
class Chances:
    """`wrong` (N,): the chance of each label to be wrong; `opinions` (J, N): the same if few or many are."""

    wrong: np.ndarray
    opinions: np.ndarray


@dataclass(frozen=True)
class Share:
    """An estimated share of wrong labels in [0, 1], with its interval."""

    share: float
    low: float
    high: float

    @property
    def known(self) -> bool:
        """Where it is not, no percentage is shown anywhere."""
        return self.high - self.low <= UNKNOWN


NOTHING_KNOWN = Share(0.0, 0.0, 1.0)


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


def sentence(found: Share, what: str = "the labels") -> str:
    """How many seem wrong, or that nobody can know."""
    if not found.known:
        return UNKNOWN_WORDS
    lead, aside = in_words(found)
    return f"{lead[0].upper()}{lead[1:]} of {what} seem to be wrong ({aside})."


def in_words(found: Share, decimals: int = 1) -> tuple[str, str]:
    """What to lead with and what to say in brackets: the estimate and its interval; the interval first where it is wide.

    Few samples can leave the estimate near one end of a wide interval, and the truth at the other.
    """
    if not found.known:
        return "an unknown share", "it cannot be known here"
    point, (least, most) = f"{rounded(found.share, decimals)} %", ends(found.low, found.high, decimals)
    if found.high - found.low > VAGUE:
        return f"between {least} and {most} %", f"point estimate {point}"
    return point if point[0].isalpha() else f"about {point}", f"{least} to {most} %"


def spread(score: np.ndarray, differs: np.ndarray, order: np.ndarray, found: Share) -> Chances:
    """Chances to be wrong, by a `score` (N,) that is low where a label is suspicious and by what is contradicted (N,).

    The lowest scores are wrong most often, so the cube of doubt counts (LOG.md).
    """
    count = len(score)
    doubt = (1 - score) ** 3 * differs
    weight = doubt / doubt.sum() if doubt.any() else np.zeros(count)
    fewest, likely = (np.minimum(part * count * weight, 1) for part in (found.low, found.share))
    most = np.zeros(count)
    most[order[: round(found.high * count)]] = 1
    return Chances(likely, np.stack([fewest, most]))


def expected_yield(found: Chances, order: np.ndarray, points: int = 200) -> Yield:
    """Wrong labels among the first 1, 2, ... N samples of `order`, at about `points` places."""
    count = len(order)
    wrong, opinions = found.wrong[order], found.opinions[:, order]
    expected = wrong.cumsum()
    said = np.concatenate([opinions.cumsum(1), expected[None]])
    wide = NORMAL * np.sqrt((wrong * (1 - wrong)).cumsum())
    checked = np.arange(1, count + 1)
    low, high = np.clip(said.min(0) - wide, 0, checked), np.clip(said.max(0) + wide, 0, checked)
    places = np.linspace(0, count - 1, min(points, count)).round().astype(int)
    lines = [np.append(0.0, line[places]) for line in (checked, expected, low, high)]
    return Yield(*lines)
