"""The confidence interval of a proportion."""

import math

TWO_SIDED_95 = 1.959964
"""The quantile of the normal distribution for two-sided 95 %."""


def wilson_interval(hits: int, of: int) -> tuple[float, float]:
    """Return the 95 % interval of a proportion, 0 to 1 for none.

    E. B. Wilson, Journal of the American Statistical Association 22, 1927, 209-212.
    """
    if not of:
        return 0.0, 1.0
    share, square = hits / of, TWO_SIDED_95**2 / of
    middle = (share + square / 2) / (1 + square)
    half = TWO_SIDED_95 / (1 + square) * math.sqrt(share * (1 - share) / of + square / (4 * of))
    return max(middle - half, 0.0), min(middle + half, 1.0)
