"""Choose which steps of a batch the remaining budget is for.

Steps are sorted by score. Those among the best of all recent steps, up to the share of cost that the budget
covers, are asked. In one batch that is the greedy knapsack; over batches it paces the budget (S. Balseiro et
al., Robust budget pacing with a single sample, ICML 2023). The threshold is lambda, the price of money.
"""

import math
from collections import deque
from collections.abc import Sequence
from itertools import accumulate

EXPLORED_MONEY = 0.2
"""Highest share of the money for exploration: with little money, 5 % of the steps asked of all teachers
would take half of it."""
_REMEMBERED = 2000


class BudgetPacer:
    """Scores and costs of recent steps, from which the threshold of selection is computed."""

    def __init__(self) -> None:
        self._past: deque[tuple[float, float]] = deque(maxlen=_REMEMBERED)

    def threshold(self, scores: Sequence[float], costs_usd: Sequence[float], share: float) -> float:
        """Return the score above which a step is asked, so that `share` of the cost is spent.

        The cost is that of this batch and the stored recent steps. Return -inf if all are asked, inf if
        none is.
        """
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
        """Store the scores and costs of a decided batch."""
        self._past.extend(zip(scores, costs_usd, strict=True))


def paced_explored_share(explore: float, share: float) -> float:
    """Return the share of steps to explore: `explore`, or less if money is scarce.

    Exploration takes at most `EXPLORED_MONEY` of the money, or `explore` if that is more. `share` is the
    share of the full cost that may be spent.
    """
    return min(explore, max(EXPLORED_MONEY, explore) * share)


def paced_choice_share(share: float, explore: float) -> float:
    """Return the share of cost left for selected steps, beside randomly explored ones.

    `share` of the full cost may be spent; `explore` of the steps are asked anyway.
    """
    return 0.0 if explore >= 1.0 else max(0.0, (share - explore) / (1.0 - explore))
