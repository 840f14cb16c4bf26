"""Decides what to do about each label, from its evidence: a kind, an action and a sentence. Needs no torch.

All thresholds stand here. A score says how well the given label holds its own, and is no probability; a confidence is the
suggested class's share by whoever judges labels: heads that have not seen them, or both networks. Training mixes pictures,
which keeps confidences low: 0.7 is much, and ambiguity is told by a ratio.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

TRUSTED = 1.0  # the score of labels that the user trusts
# A label is relabelled without a person only when all of these hold, and opinions agree (`agree`).
RELABEL_SCORE = 0.2  # at most
RELABEL_CONFIDENCE = 0.7  # at least
# Two classes are possible when the second is at least so large a part of the first.
AMBIGUOUS_RATIO = 0.5
# A label that the networks would give too is doubted only when its score is below this part of what such labels usually have.
CONFIRMED_RATIO = 0.5
# A picture is like none of the classes when no prototype claims it and the networks are far less sure than of fine ones.
NONE_CHANCE = 0.5  # the best prototype's chance, at most
NONE_CONFIDENCE = 1 / 3  # below this part of the median confidence of the fine labels

FINE, MISLABELLED, AMBIGUOUS, NONE = "fine", "mislabelled", "ambiguous", "like none"
KINDS = (FINE, MISLABELLED, AMBIGUOUS, NONE)
KEEP, RELABEL, REVIEW, DROP = "keep", "relabel", "review", "drop"
ACTIONS = (KEEP, RELABEL, REVIEW, DROP)
# What may be wrong with a sample itself, the gravest first, and what that means.
OFF_TOPIC, NEAR_COPY = "off topic", "near copy"
SAMPLE_ISSUES = {
    "blank": "nearly one colour",
    NEAR_COPY: "the same picture lies in the test set, or has another label elsewhere",
    "dark": "far darker than the others",
    "bright": "far brighter than the others",
    "blurred": "far less sharp than the others",
    OFF_TOPIC: "unlike every class in this set",
}
TEST = "test:"  # before the id of a test sample that another one copies


def unlisted_words(count: int) -> str:
    """Why there is more to review than issues; empty where there is not."""
    if not count:
        return ""
    which = "One of those to review is no issue" if count == 1 else f"{count:,} of those to review are no issues"
    return f"{which}: networks and score contradict each other there."


@dataclass(frozen=True, eq=False)
class Signs:
    """What the rules look at, (N,) each. `best_chance` is NaN where there are no prototypes."""

    score: np.ndarray
    doubted: np.ndarray  # bool: the score is too low, see `doubted`
    differs: np.ndarray  # bool: another class than the given one is suggested
    agree: np.ndarray  # bool: the networks agree with each other, and so do those who judge in their place
    confidence: np.ndarray  # of the suggested class
    second_confidence: np.ndarray  # of the class after it
    best_chance: np.ndarray  # of the nearest prototype, whichever class it is of
    excused: np.ndarray  # bool: whatever the networks say, they err more often than labels do, and others are more suspicious
    alone: bool = False  # one model's probabilities are all that is known: nothing is relabelled without a person


def doubted(score: np.ndarray, tau: float, differs: np.ndarray) -> np.ndarray:
    """(N,) bool: the score is not above `tau`, nor, where the networks say the same as the label, near the usual one.

    With many classes and few samples of each all scores are low, and that of a right label says little by itself.
    """
    usual = float(np.median(score[~differs])) if (~differs).any() else 1.0
    found: np.ndarray = score <= np.where(differs, tau, min(tau, CONFIRMED_RATIO * usual))
    return found


def kinds(signs: Signs) -> np.ndarray:
    """(N,) of KINDS. Trusted, excused, or neither doubted nor contradicted: fine. Else like none, ambiguous, mislabelled.

    Where score and networks contradict each other (one doubts the label, the other does not), that is ambiguous too.
    """
    fine = (signs.score >= TRUSTED) | signs.excused | (~signs.doubted & ~signs.differs)
    usual = float(np.median(signs.confidence[fine])) if fine.any() else 1.0
    none = signs.doubted & (signs.best_chance <= NONE_CHANCE) & (signs.confidence < NONE_CONFIDENCE * usual)
    close = signs.second_confidence >= AMBIGUOUS_RATIO * signs.confidence
    ambiguous = close | (signs.doubted != signs.differs)
    return np.select([fine, none, ambiguous], [FINE, NONE, AMBIGUOUS], MISLABELLED)


def actions(signs: Signs, kind: np.ndarray) -> np.ndarray:
    """(N,) of ACTIONS: keep what is fine, drop what is like none, relabel what is surely mislabelled, review the rest.

    What looks like none of the classes, and still most like the one it was given, is for a person to judge.
    """
    sure = ~np.bool_(signs.alone) & signs.agree & (signs.score <= RELABEL_SCORE) & (signs.confidence >= RELABEL_CONFIDENCE)
    return np.select([kind == FINE, (kind == NONE) & signs.differs, (kind == MISLABELLED) & sure], [KEEP, DROP, RELABEL], REVIEW)


def reasons(signs: Signs, kind: np.ndarray, action: np.ndarray, classes: Sequence[str], codes: np.ndarray) -> list[str]:
    """A short sentence on each sample; `codes` (3, N) are its given, suggested and second class."""
    names = [f'"{" ".join(name.split())}"' for name in classes]
    arrays = (signs.score, signs.confidence, signs.second_confidence, signs.differs, signs.doubted, signs.agree, signs.excused)
    columns = ([names[code] for code in row] for row in codes.tolist())
    rows = zip(kind.tolist(), action.tolist(), *columns, *(array.tolist() for array in arrays))
    return [_reason(signs.alone, *row) for row in rows]


def _reason(
    alone: bool,
    kind: str,
    action: str,
    given: str,
    suggested: str,
    second: str,
    score: float,
    sure: float,
    next_best: float,
    differs: bool,
    doubted: bool,
    agree: bool,
    excused: bool,
) -> str:
    if kind == FINE and excused and differs:
        return f"Rather {suggested} ({sure:.2f}), but such doubts are wrong more often than labels are here (score {score:.2f})."
    if kind == FINE:
        return f"Fits {given} (score {score:.2f})."
    if kind == NONE:
        return f"Looks like none of the classes; closest is {suggested} ({sure:.2f})."
    if kind == MISLABELLED:
        if alone or action == RELABEL:
            return f"Looks like {suggested} ({sure:.2f}), not like {given} (score {score:.2f})."
        unsure = "that is not sure" if sure < RELABEL_CONFIDENCE else "the score is not low enough to relabel it unseen"
        doubt = unsure if agree else "opinions differ"
        return f"May be {suggested} ({sure:.2f}) rather than {given} (score {score:.2f}), but {doubt}."
    if not differs:
        return f"Most like {given} ({sure:.2f}), but its score is low ({score:.2f}); next is {second} ({next_best:.2f})."
    if not doubted:
        return f"Most like {suggested} ({sure:.2f}), but the score supports {given} ({score:.2f})."
    return f"Between {suggested} ({sure:.2f}) and {second} ({next_best:.2f}); given is {given} (score {score:.2f})."
