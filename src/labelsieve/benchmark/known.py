"""What a measurement must know of its data: true labels, pictures to test on. Where it does not, it says so before it begins."""

from torch import Tensor

from labelsieve.data.noisy_data import Held
from labelsieve.errors import ToolError
from labelsieve.runs.assemble import Rows


def right_labels(rows: Rows) -> Tensor:
    """(N,) which given labels are the true ones, on the host."""
    if rows.truth is None:
        raise ToolError(
            "the true labels are not known, so there is nothing to measure; make noise on purpose with --noise sym:0.2"
        )
    return rows.truth.labels == rows.data.labels


def held_pictures(rows: Rows) -> Held:
    if rows.test is None:
        raise ToolError("there are no test pictures to measure accuracy on; use data with a test or val split")
    return rows.test
