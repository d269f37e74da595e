"""What the gate did with the steps of a workspace: for the closing table and the manifest."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from flows.gate_weights import UNTOLD
from flows.gating import gate_version
from flows.settings import RunSettings
from records.reply import Decision
from records.rows import decisions_from_table, votes_from_table
from records.workspace import Workspace
from teachers.gate_totals import Chance, totals_of

_SHOWN_VERSIONS = 5


def gate_report(work: Workspace, settings: RunSettings) -> dict[str, Any]:
    """Steps by what was decided on them and why, the versions of the weights, and the pairs that all steps
    together would have given; of the decisions that hold under these settings."""
    current = gate_version(settings)
    steps: dict[str, Decision] = {}
    for table in work.current("decisions"):
        for decision in decisions_from_table(table):
            before = steps.get(decision.step_id)
            if decision.gate.partition("+")[0] == current and (
                before is None or decision.probability > before.probability
            ):
                steps[decision.step_id] = decision
    if not steps:
        return {}
    verdicts: dict[str, str] = {}
    for table in work.current("votes"):
        verdicts |= {s.step_id: s.verdict for s in votes_from_table(table) if s.step_id in steps}
    weights = Counter(d.gate.partition("+")[2] for d in steps.values())
    return {
        "policy": settings.gate.policy,
        "version": current,
        "weights": dict(weights.most_common(_SHOWN_VERSIONS)) if any(weights) else {},
        "steps": {
            verdict: dict(Counter(d.reason for d in steps.values() if d.verdict == verdict).most_common())
            for verdict in ("ask", "skip")
        },
        "pairs": totals_of(chances_of(steps.values(), verdicts)).to_json(),
    }


def chances_of(decisions: Iterable[Decision], verdicts: Mapping[str, str]) -> Iterable[Chance]:
    """One for each of these decisions, one of a step, with what its vote came to."""
    for decision in decisions:
        verdict = verdicts.get(decision.step_id, "")
        found = None if not verdict or verdict in UNTOLD else float(verdict == "pair")
        asked = decision.verdict == "ask"
        yield Chance(decision.probability, decision.belief or 0.0, found, asked)
