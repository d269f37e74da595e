"""Turn the votes at a step into a reward for the student's action."""

from collections import Counter
from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Literal, get_args

from tracemill.records.pair import Vote

ConsensusShape = Literal["plurality", "weighted", "variance_weighted", "score_regression"]
STUDENT = "student"
"""Key of a vote for the student's own action."""


def consensus_reward(
    votes: Sequence[Vote],
    shape: ConsensusShape = "weighted",
    teacher_weights: Mapping[str, float] | None = None,
    scores: Mapping[str, float] | None = None,
) -> float | None:
    """Return the reward of the student's action at one step, None if no vote, or score, counts.

    With w_i the weight of teacher i (1 if `teacher_weights` names none), a_i its action, a the student's,
    and p(x) = sum of w_i over a_i = x / sum of w_i:

        plurality           1 if n(a) >= n(x) for all x, else 0; n(x) is the number of votes for x
        weighted            p(a)
        variance_weighted   p(a) (1 - v), v = sum over x of p(x) (1 - p(x)): the variance of a vote
        score_regression    the r that minimises sum of w_i (s_i - r)^2, which is their weighted mean; s_i are
                            teachers' `scores` of the student's action

    Raises ValueError for an unknown shape, and for a weight or score that cannot be used.
    """
    if shape not in get_args(ConsensusShape):
        raise ValueError(f"shape is {shape!r}; it must be one of {', '.join(get_args(ConsensusShape))}.")
    weights = teacher_weights or {}
    if bad := [name for name, weight in weights.items() if not (isfinite(weight) and weight >= 0)]:
        raise ValueError(f"The weight of {bad[0]} is {weights[bad[0]]}; it must be 0 or more, and finite.")
    if shape == "score_regression":
        return _mean_score(scores or {}, weights)
    counted = [vote for vote in votes if vote.counted]
    mass: dict[str, float] = {}
    for vote in counted:
        mass[vote.key] = mass.get(vote.key, 0.0) + weights.get(vote.teacher, 1.0)
    total = sum(mass.values())
    if total == 0:
        return None
    if shape == "plurality":
        count = Counter(vote.key for vote in counted)
        return float(count[STUDENT] == max(count.values()))
    share = {key: weight / total for key, weight in mass.items()}
    own = share.get(STUDENT, 0.0)
    if shape == "weighted":
        return own
    return own * (1 - sum(part * (1 - part) for part in share.values()))


def _mean_score(scores: Mapping[str, float], weights: Mapping[str, float]) -> float | None:
    if bad := [name for name, score in scores.items() if not isfinite(score)]:
        raise ValueError(f"The score of {bad[0]} is {scores[bad[0]]}; it must be finite.")
    total = sum(weights.get(name, 1.0) for name in scores)
    return sum(weights.get(name, 1.0) * score for name, score in scores.items()) / total if total else None
