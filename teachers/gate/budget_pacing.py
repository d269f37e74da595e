"""Which steps of a batch the remaining budget is for: lambda, the price of money, as a quantile.

Steps are sorted by score. Those of the batch whose scores are among the best of all steps seen lately, up to
the share of their cost that the budget covers, are asked. With every step in one batch that is the greedy
knapsack; in batches it paces the budget over what is still to come (S. Balseiro et al., Robust budget pacing
with a single sample, ICML 2023).
"""

import math
from collections import deque
from collections.abc import Sequence
from itertools import accumulate

EXPLORED_MONEY = 0.2
"""The share of the money that goes to exploration at most: with little money a twentieth of the steps, asked
by all teachers, would take half of it."""
_REMEMBERED = 2000


class Pacer:
    """Scores and costs of the steps seen last, by which lambda is set."""

    def __init__(self) -> None:
        self._past: deque[tuple[float, float]] = deque(maxlen=_REMEMBERED)

    def threshold(self, scores: Sequence[float], costs_usd: Sequence[float], share: float) -> float:
        """The score from which on a step is asked, so that asked steps take `share` of the cost of all, those
        of this batch and those remembered; -inf where all are asked, inf where none is."""
        here = list(zip(scores, costs_usd, strict=True))
        every = sorted([*self._past, *here], reverse=True)
        if share >= 1.0:
            return -math.inf
        total = sum(cost for _, cost in every)
        room = share * total
        threshold = math.inf
        for (score, _), spent in zip(every, accumulate(cost for _, cost in every), strict=True):
            if spent > room + 1e-12 * total:
                break
            threshold = score
        return threshold

    def remember(self, scores: Sequence[float], costs_usd: Sequence[float]) -> None:
        """The steps of a batch that was decided."""
        self._past.extend(zip(scores, costs_usd, strict=True))


def paced_explored_share(explore: float, share: float) -> float:
    """The share of the steps that is asked at random by all teachers: `explore`, or less where that
    would take more than `EXPLORED_MONEY` of the money, a share of what all teachers at all steps would cost.
    Who wants more than that explored may spend as much on it."""
    return min(explore, max(EXPLORED_MONEY, explore) * share)


def paced_choice_share(share: float, explore: float) -> float:
    """The share of cost that is left to choose by, where `share` of all may be spent and a random share
    `explore` of the steps is asked anyway."""
    return 0.0 if explore >= 1.0 else max(0.0, (share - explore) / (1.0 - explore))
