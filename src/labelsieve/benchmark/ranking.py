"""How well a score puts wrong labels first. Scores are (N,), low = suspicious; `wrong` is (N,) booleans."""

import numpy as np
from sklearn.metrics import average_precision_score


def average_precision(score: np.ndarray, wrong: np.ndarray) -> float:
    """Area under precision over recall of the wrong labels, most suspicious first; equal scores count as one step."""
    return float(average_precision_score(wrong, -score))


def recall_at_true_count(score: np.ndarray, wrong: np.ndarray) -> float:
    """The share of all wrong labels among the first so many as there are wrong ones; here also the precision there."""
    return share_among_first(score, wrong, int(wrong.sum()))


def share_among_first(score: np.ndarray, hit: np.ndarray, count: int) -> float:
    """How many of the first `count`, lowest score first, are hits.

    Of equal scores at the end of these, as many count as an order by chance would have there on average.
    """
    last = np.partition(score, count - 1)[count - 1]
    before, level = score < last, score == last
    return float((hit[before].sum() + (count - before.sum()) * hit[level].mean()) / count)
