"""Score steps by the gate or by chance; the highest score goes first."""

from collections.abc import Sequence

from tracemill.records.identity import digest
from tracemill.teachers.core.teacher_settings import GatePolicy
from tracemill.teachers.gate.pair_value import ValuedStep


def baseline_scores(steps: Sequence[ValuedStep], policy: GatePolicy, seed: int) -> list[float]:
    """Return the score of every step under a policy that chooses; `all` has none.

    `voi`: utility times probability over expected cost. `random`: by a hash of seed and step.
    """
    if policy == "voi":
        return [step.score for step in steps]
    return [int(digest("order", str(seed), step.facts.step_id, size=7), 16) / 2**56 for step in steps]
