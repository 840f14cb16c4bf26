"""Decides how bright white is in 16-bit grey pictures, from the largest values of the data set.

Cameras and scanners often store 10, 12 or 14 bits in 16. A data set has one white, because
brightness means something in it: the white of the fewest usual bits that hold all pictures.
"""

from collections.abc import Iterable, Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

DEPTHS = (8, 10, 12, 14, 16)
WHITEST = 65535
FLAG = "--set pictures.white=N"


def white_for(top: float) -> int:
    """The value that is white where `top` is the largest."""
    return next((2**bits - 1 for bits in DEPTHS if top < 2**bits), WHITEST)


@lru_cache(maxsize=8)
def narrowing(white: int) -> NDArray[np.uint8]:
    """(65536,) the byte that each value becomes: 0 stays, `white` and all above become 255."""
    return np.clip(np.rint(np.arange(WHITEST + 1) / (white / 255)), 0, 255).astype(np.uint8)


def counted(tops: Iterable[float]) -> tuple[int, ...]:
    """How many pictures need each of `DEPTHS`, by their largest values; empty without any."""
    found = [white_for(top) for top in tops]
    return tuple(found.count(2**bits - 1) for bits in DEPTHS) if found else ()


def common_white(counts: Sequence[int]) -> int:
    """The white that holds all of the counted pictures; without any, that of 16 bits."""
    return max((2**bits - 1 for bits, count in zip(DEPTHS, counts) if count), default=WHITEST)


def about_white(counts: Sequence[int], white: int) -> tuple[str, ...]:
    """What should be said of the counted pictures where `white` is white."""
    total, said = sum(counts), []
    low = sum(count for bits, count in zip(DEPTHS, counts) if 16 * 2**bits <= white + 1)
    over = sum(count for bits, count in zip(DEPTHS[1:], counts[1:]) if 2 ** (bits - 2) > white)
    if total and white != WHITEST:
        said.append(f"{total:,} pictures have 16 bits: {white:,} is white in them, by their largest value or as said ({FLAG})")
    if low:
        said.append(
            f"{low:,} of {total:,} pictures of 16 bits use less than 1/16 of the range and become nearly black; if they have "
            f"fewer bits than others, bring all to one range, or say what is white: {FLAG}"
        )
    if over:
        said.append(f"{over:,} of {total:,} pictures of 16 bits have values above {white:,}, which become white too ({FLAG})")
    return tuple(said)
