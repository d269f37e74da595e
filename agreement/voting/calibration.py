"""How often a further teacher does what two teachers did, by how reliable these are: counted, then made
monotone.

Posteriors of a model of votes are over-confident, so that votes are weighed by counts alone. At steps where
all teachers were asked, every two that did the same are a trial, and whether a third did it too is its
outcome. Isotonic regression: pool-adjacent-violators, Barlow et al., 1972.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations

from tracemill.agreement.voting.policy import Policy
from tracemill.agreement.voting.teacher_standing import Heard, compare_teachers

Counts = Mapping[str, tuple[int, int]]
"""For each teacher how often it was with the consensus of the others, and how often there was one."""
Steps = tuple[tuple[float, float], ...]
"""(trust from which on, chance) of a step function, in rising order."""
_PRIOR_AGREED, _PRIOR_ASKED = 2.0, 2.5
_LEAST, _MOST = 0.05, 0.95


def calibrate_policy(policy: Policy, steps: Sequence[Heard]) -> Policy:
    """The policy with the teachers' reliability, unless it has any, and with the chances that follow from
    these steps."""
    known = policy.reliability or {
        name: (each.agreed, each.asked) for name, each in compare_teachers(steps).items() if each.asked
    }
    return replace(policy, reliability=known, chances=fit_calibration_steps(_trials(steps, known)))


def calibrated_chance(teachers: Iterable[str], policy: Policy) -> float:
    """The chance that a further teacher does what these did: 0.5 where nothing was counted."""
    trust = calibrated_trust(teachers, policy.reliability)
    under = [chance for least, chance in policy.chances if least <= trust]
    return max(under, default=policy.chances[0][1] if policy.chances else 0.5)


def calibrated_trust(teachers: Iterable[str], reliability: Counts) -> float:
    """Sum of the log odds of the teachers' reliability."""
    rates = [calibrated_reliability(teacher, reliability) for teacher in sorted(teachers)]
    return sum(math.log(rate / (1 - rate)) for rate in rates)


def calibrated_reliability(teacher: str, reliability: Counts) -> float:
    """How often a teacher is with the others, as far as its counts say: 0.8 without any."""
    agreed, asked = reliability.get(teacher, (0, 0))
    return min(_MOST, max(_LEAST, (agreed + _PRIOR_AGREED) / (asked + _PRIOR_ASKED)))


def fit_calibration_steps(trials: Iterable[tuple[float, bool]]) -> Steps:
    """The step function of trust that never falls and is nearest to the outcomes (True or False) of trials,
    each step smoothed by one trial of either outcome."""
    counts: dict[float, tuple[int, int]] = {}
    for trust, came in trials:
        before, tried = counts.get(trust, (0, 0))
        counts[trust] = (before + came, tried + 1)
    blocks: list[tuple[float, int, int]] = []
    for trust in sorted(counts):
        least, (came, tried) = trust, counts[trust]
        while blocks and blocks[-1][1] * tried >= came * blocks[-1][2]:
            least, before, others = blocks.pop()
            came, tried = came + before, tried + others
        blocks.append((least, came, tried))
    return tuple((least, (came + 1) / (tried + 2)) for least, came, tried in blocks)


def _trials(steps: Iterable[Heard], reliability: Counts) -> Iterator[tuple[float, bool]]:
    for step in steps:
        voted = {name: key for name, key in step.actions.items() if key is not None and name not in step.kin}
        for one, two in combinations(sorted(voted), 2):
            if voted[one] == voted[two]:
                trust = calibrated_trust((one, two), reliability)
                yield from ((trust, voted[third] == voted[one]) for third in voted if third not in (one, two))
