"""Score steps by the gate or by one of its baselines; the highest score goes first."""

from collections.abc import Callable, Mapping, Sequence

from tracemill.records.identity import digest
from tracemill.teachers.core.teacher_settings import GatePolicy
from tracemill.teachers.gate.pair_value import ValuedStep

Score = Callable[[ValuedStep, int], float]
"""(step, seed of the run) to the score that steps are sorted by."""


def _by_hash(step: ValuedStep, seed: int) -> float:
    return int(digest("order", str(seed), step.facts.step_id, size=7), 16) / 2**56


def _voi(step: ValuedStep, seed: int) -> float:
    return step.score


def _first_k(step: ValuedStep, seed: int) -> float:
    return -float(step.facts.place) + _by_hash(step, seed) / 2


def _after_error(step: ValuedStep, seed: int) -> float:
    return float(step.facts.after_error) + _by_hash(step, seed) / 2


def _entropy_only(step: ValuedStep, seed: int) -> float:
    return (step.facts.entropy or 0.0) + _by_hash(step, seed) * 1e-6


SCORES: Mapping[GatePolicy, Score] = {
    "voi": _voi,
    "random": _by_hash,
    "first_k": _first_k,
    "after_error": _after_error,
    "entropy_only": _entropy_only,
}
"""`voi`: utility times probability over expected cost. `random`: by a hash. `first_k`: the first steps of
every context. `after_error`: steps after an error first. `entropy_only`: where the student's tokens had most
entropy. What a baseline does not tell apart goes by the hash."""


def baseline_scores(steps: Sequence[ValuedStep], policy: GatePolicy, seed: int) -> list[float]:
    """Return the score of every step under a policy that chooses; `all` has none."""
    return [SCORES[policy](step, seed) for step in steps]
