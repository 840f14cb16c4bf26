"""Writes shares as percentages for people: rounding makes neither all of nearly all nor none of a few."""


def rounded(share: float, decimals: int = 1) -> str:
    """`12.3`, without the sign; `under 0.1` and `over 99.9` where the plain number would say none or all."""
    text, least = f"{100 * share:.{decimals}f}", 10**-decimals
    if 0 < share < 1 and float(text) in (0, 100):
        return f"under {least:.{decimals}f}" if share < 0.5 else f"over {100 - least:.{decimals}f}"
    return f"{abs(float(text)):.{decimals}f}" if float(text) == 0 else text


def ends(low: float, high: float, decimals: int = 1) -> tuple[str, str]:
    """An interval's, rounded outwards where the plain numbers would leave no room: from `99.9`, up to `0.1`."""
    least = 10**-decimals
    lowest = 100 * low if low >= 1 else min(100 * low, 100 - least)
    highest = 100 * high if high <= 0 else max(100 * high, least)
    return f"{max(lowest, 0.0):.{decimals}f}", f"{highest:.{decimals}f}"
