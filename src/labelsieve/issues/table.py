"""The list of suspicious labels: scores and predictions per sample go in, a ranked table comes out. Needs no torch.

`label_score` is in [0, 1], low = suspicious; most suspicious first.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

COLUMNS = ("id", "given_label", "predicted_label", "label_score", "is_label_issue")


@dataclass(frozen=True)
class LabelIssues:
    """Columns by sample index; `order` lists the samples, most suspicious first."""

    ids: Sequence[str]
    classes: Sequence[str]
    given: np.ndarray  # (N,) int
    predicted: np.ndarray  # (N,) int
    score: np.ndarray  # (N,) in [0, 1]
    is_issue: np.ndarray  # (N,) bool
    order: np.ndarray  # (N,) int

    def rows(self) -> list[tuple[str, str, str, str, str]]:
        return [
            (
                self.ids[i],
                self.classes[self.given[i]],
                self.classes[self.predicted[i]],
                f"{self.score[i]:.6f}",
                str(bool(self.is_issue[i])),
            )
            for i in self.order
        ]

    def to_csv(self) -> str:
        return "".join(",".join(map(_quoted, row)) + "\n" for row in (COLUMNS, *self.rows()))


def _quoted(text: str) -> str:
    """A field as RFC 4180 wants it; the csv module leaves a lone carriage return bare, which no reader takes back."""
    return '"' + text.replace('"', '""') + '"' if any(sign in text for sign in ',"\r\n') else text


def rank(
    ids: Sequence[str],
    classes: Sequence[str],
    given: np.ndarray,
    probs: np.ndarray,
    chances: np.ndarray,
    tau: float,
) -> LabelIssues:
    """Rank samples by the mean clean chance of both networks; `probs` (N, K) their mean softmax, `chances` (2, N).

    A label is an issue when its score is not above `tau` and the networks would say something else. Equal scores are
    ordered by the share the networks give to the label.
    """
    score = np.clip(np.nan_to_num(chances.mean(0)), 0, 1)
    predicted = probs.argmax(1)
    share = probs[np.arange(len(given)), given]
    order = np.lexsort((share, score))
    return LabelIssues(ids, classes, given, predicted, score, (score <= tau) & (predicted != given), order)
