"""How many labels are wrong: clean chances per sample go in; a share, its interval and the expected yield come out.

The estimate is the mean of 1 - label_score. Its interval holds what every judge (each network, by prototypes and by loss)
would say, widened by 1.96 standard deviations of the draw, were the scores exact chances. It is no guarantee: all judges
can err together.
"""

from dataclasses import dataclass

import numpy as np

NORMAL = 1.96  # a normal variable leaves this many deviations once in twenty times


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
        return tuple(float(np.interp(checked, self.checked, line)) for line in (self.expected, self.low, self.high))  # type: ignore[return-value]


def wrong_share(score: np.ndarray, judges: np.ndarray) -> Share:
    """Of samples with clean chances `score` (N,); `judges` (J, N) are the opinions that the interval must hold."""
    count = len(score)
    if not count:
        return Share(0.0, 0.0, 1.0, 0)
    wrong = 1 - score
    opinions = np.append((1 - judges).mean(1), wrong.mean())
    wide = NORMAL * np.sqrt((wrong * score).sum()) / count
    return Share(
        float(wrong.mean()),
        float(max(opinions.min() - wide, 0)),
        float(min(opinions.max() + wide, 1)),
        count,
    )


def by_class(score: np.ndarray, judges: np.ndarray, given: np.ndarray, classes: int) -> list[Share]:
    """The same for the samples given each class."""
    return [wrong_share(score[given == k], judges[:, given == k]) for k in range(classes)]


def expected_yield(score: np.ndarray, judges: np.ndarray, order: np.ndarray, points: int = 200) -> Yield:
    """Wrong labels among the first 1, 2, ... N samples of `order`, at about `points` places."""
    count = len(order)
    wrong = 1 - score[order]
    expected = wrong.cumsum()
    opinions = np.concatenate([(1 - judges[:, order]).cumsum(1), expected[None]])
    wide = NORMAL * np.sqrt((wrong * (1 - wrong)).cumsum())
    checked = np.arange(1, count + 1)
    low, high = np.clip(opinions.min(0) - wide, 0, checked), np.clip(opinions.max(0) + wide, 0, checked)
    places = np.unique(np.linspace(0, count - 1, min(points, count)).round().astype(int))
    start = np.zeros(1)
    lines = [np.concatenate([start, line[places]]) for line in (checked, expected, low, high)]
    return Yield(*lines)
