"""What a run's page is made of: facts that were measured or estimated, and the pictures to show."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from labelsieve.issues.estimate import Share, Yield
from labelsieve.report.line_chart import Curve
from labelsieve.report.page import Odd, Suspect


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
