"""Warn of pairs in both directions: one kind of action over another here, the other way round there.

Some are right, since states differ: to read comes before an edit here and is needless there. Where most pairs
have an opposite, a model learns from them little but noise: sides drawn at random give a share close to 1.
"""

from collections import Counter
from collections.abc import Iterable

from tracemill.records.pair import DPOPair

LEAST_PAIRS = 40
"""Pairs of two kinds of action that a warning needs."""
MOST_OPPOSED = 0.5


def count_opposed(pairs: Iterable[DPOPair]) -> tuple[int, int]:
    """Return how many pairs have an opposite, and how many have sides of two kinds.

    Of n pairs that choose one kind over another and m the other way round, 2 min(n, m) have an opposite.
    """
    counts = Counter((pair.chosen_operation, pair.rejected_operation) for pair in pairs)
    differing = {kinds: count for kinds, count in counts.items() if kinds[0] != kinds[1]}
    opposed = sum(min(count, counts[other, one]) for (one, other), count in differing.items())
    return opposed, sum(differing.values())


def direction_warnings(pairs: Iterable[DPOPair]) -> tuple[str, ...]:
    """Return a sentence if more than `MOST_OPPOSED` of at least `LEAST_PAIRS` pairs have an opposite."""
    opposed, differing = count_opposed(pairs)
    if differing < LEAST_PAIRS or opposed <= MOST_OPPOSED * differing:
        return ()
    return (
        f"{opposed} of {differing} pairs with two kinds of action have an opposite: they prefer one kind to "
        "another that as many pairs prefer to it. Teachers may not know which is better.",
    )
