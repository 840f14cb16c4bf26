"""Anybody's vectors as an array (N, D) that numbers can be read from, or an error that says what is wrong with them."""

from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labelsieve.api.labels import BadInput, plain


def numbers(features: Any) -> NDArray[Any]:
    """(N, D) as they lie in memory or on the disk; objects (a frame's numbers that may be missing) become floats."""
    if hasattr(features, "toarray") and hasattr(features, "nnz"):
        raise BadInput(
            "features: they are a sparse matrix; make them dense, by .toarray() or, where they are wide, by TruncatedSVD"
        )
    values = np.asarray(plain(features))
    if values.ndim == 2 and len(values) == 0:
        raise BadInput("features: there are no rows; give at least one sample of two classes each")
    if values.ndim != 2 or 0 in values.shape:
        raise BadInput(f"features: the shape is {values.shape}; they must be (N, D), one row a sample")
    if values.dtype.kind == "O":
        with suppress(TypeError, ValueError):
            values = values.astype(np.float64)
    if values.dtype.kind not in "fiub":
        raise BadInput(f"features: the values are {values.dtype}; they must be numbers")
    return values
