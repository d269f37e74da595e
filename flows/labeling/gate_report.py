"""What the gate did with the steps of a workspace: for the closing table and the manifest."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tracemill.flows.config.run_settings import RunSettings
from tracemill.flows.labeling.gate_run import gate_version
from tracemill.flows.labeling.gate_weights import UNTOLD, has_early_end
from tracemill.records.reply import Decision
from tracemill.records.storage.table_rows import decisions_from_table, votes_from_table
from tracemill.records.storage.workspace import Workspace
from tracemill.teachers.gate.gate_decisions import EXPLORED
from tracemill.teachers.gate.totals_estimate import Chance, estimate_totals

_SHOWN_VERSIONS = 5


def gate_report(work: Workspace, settings: RunSettings) -> dict[str, Any]:
    """Steps by what was decided on them and why, the versions of the weights, and the pairs that all steps
    together would have given; of the decisions that hold under these settings."""
    current = gate_version(settings)
    every: dict[str, list[Decision]] = {}
    for table in work.current("decisions"):
        for decision in decisions_from_table(table):
            if decision.gate.partition("+")[0] == current:
                every.setdefault(decision.step_id, []).append(decision)
    steps = {step_id: max(rows, key=lambda row: row.probability) for step_id, rows in every.items()}
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
        "stopped": sum(
            stop_belief_report(rows) is not None and not _explored(rows) for rows in every.values()
        ),
        "pairs": estimate_totals(gate_chances(every.values(), verdicts)).to_json(),
    }


def gate_chances(steps: Iterable[Sequence[Decision]], verdicts: Mapping[str, str]) -> Iterable[Chance]:
    """One for each step, given as its decisions, with what its vote came to. Where asking stopped by value
    the label is known by exploration alone, and so it counts as drawn with the probability of that; also at
    explored steps where it would have stopped."""
    for rows in steps:
        decision = max(rows, key=lambda row: row.probability)
        verdict, asked = verdicts.get(decision.step_id, ""), decision.verdict == "ask"
        found = None if not verdict or verdict in UNTOLD else float(verdict == "pair")
        left = stop_belief_report(rows) if asked else None
        if left is None:
            given_up = has_early_end(rows) is not None
            yield Chance(decision.probability, decision.belief or 0.0, 0.0 if given_up else found, asked)
        else:
            drawn, chance = _explored(rows), decision.probability
            chance = chance if decision.explore is None else min(decision.explore, chance)
            yield Chance(chance, left, found if drawn else None, drawn)


def stop_belief_report(rows: Iterable[Decision]) -> float | None:
    """The probability of a pair at which asking stopped by value at a step, or would have; None where not."""
    return next((row.heard_belief or 0.0 for row in rows if row.heard_verdict == "stop"), None)


def _explored(rows: Iterable[Decision]) -> bool:
    return any(row.reason == EXPLORED for row in rows)
