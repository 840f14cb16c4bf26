"""Which labels are known to be wrong. Every measurement needs that, and says so where it is missing."""

import numpy as np
from torch import Tensor

from labelsieve.errors import ToolError
from labelsieve.runs.rows import Rows


def right_labels(rows: Rows) -> Tensor:
    """(N,) which given labels are the true ones, on the host."""
    if rows.truth is None:
        raise ToolError(
            "the true labels are not known, so there is nothing to measure; make noise on purpose with --noise sym:0.2"
        )
    return rows.truth.labels == rows.data.labels


def wrong_labels(rows: Rows) -> np.ndarray:
    """(N,) the others."""
    return (~right_labels(rows)).numpy()


def check_some_wrong(rows: Rows) -> None:
    """Of labels that are all right there is no ranking to measure: its average precision would read 0."""
    if not wrong_labels(rows).any():
        raise ToolError("no label is wrong here, so there is nothing to rank; make noise on purpose with --noise sym:0.2")
