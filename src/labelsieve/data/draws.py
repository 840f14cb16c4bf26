"""Random draws that are the same on every machine: orders, numbers and row choices by seed.

Only the raw PCG64 stream is used: NumPy promises to keep it, while the methods of its Generator may change.
"""

import numpy as np
from numpy.typing import NDArray

from labelsieve.errors import UsageError

IntArray = NDArray[np.int64]


class Draws:
    """A stream of draws. `stream` keeps two uses of one seed apart."""

    def __init__(self, stream: int, seed: int) -> None:
        if not 0 <= seed < 2**63:
            raise UsageError(f"seed {seed} is not in 0..2^63-1; give a whole number from 0 on")
        self._bits = np.random.PCG64(np.random.SeedSequence((stream, seed)))

    def order(self, count: int) -> IntArray:
        """A random permutation of 0..count-1, (count,)."""
        return np.argsort(self._bits.random_raw(count), kind="stable").astype(np.int64)

    def below(self, limit: int, count: int) -> IntArray:
        """`count` whole numbers in 0..limit-1. The remainder's bias is limit / 2^64, beyond notice."""
        return (self._bits.random_raw(count) % np.uint64(limit)).astype(np.int64)

    def uniform(self, count: int) -> NDArray[np.float64]:
        """`count` numbers in [0, 1), each a multiple of 2^-53."""
        return (self._bits.random_raw(count) >> np.uint64(11)).astype(np.float64) * 2.0**-53


def stratified_rows(labels: IntArray, size: int, draws: Draws) -> IntArray:
    """`size` row numbers, ascending, spread over the classes as `labels` (N,) are; no class is left out.

    Counts are shared out by largest remainder; a class that gets nothing takes one from the largest.
    """
    present, counts = np.unique(labels, return_counts=True)
    if not len(present) <= size <= len(labels):
        raise UsageError(
            f"cannot choose {size} of {len(labels)} samples in {len(present)} classes; "
            f"choose between {len(present)} and {len(labels)}"
        )
    take, remainders = np.divmod(size * counts, len(labels))
    take[np.argsort(-remainders, kind="stable")[: size - int(take.sum())]] += 1
    for lacking in np.flatnonzero(take == 0):
        take[np.argmax(take)] -= 1
        take[lacking] = 1
    chosen = []
    for label, quota in zip(present, take):
        rows = np.flatnonzero(labels == label)
        chosen.append(rows[draws.order(len(rows))[:quota]])
    return np.sort(np.concatenate(chosen))
