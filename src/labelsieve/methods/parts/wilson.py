"""What a share may be when it was counted on few: Wilson's score interval. It knows no labels, so whoever cleans may use it."""

import math


def share_interval(hits: int, of: int, z: float = 1.96) -> tuple[float, float]:
    """Between which shares the true one lies (95 %) where `hits` among `of` were counted; nan where nothing was.

    A bootstrap would say 1 to 1 where all of twenty are hits, and holds far less than it says near there.
    """
    if of == 0:
        return math.nan, math.nan
    centre = (hits + z * z / 2) / (of + z * z)
    half = z / (of + z * z) * math.sqrt(hits * (of - hits) / of + z * z / 4)
    return max(centre - half, 0.0), min(centre + half, 1.0)
