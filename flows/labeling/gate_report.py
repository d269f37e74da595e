"""Report what the gate did, for the closing table and the manifest."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tracemill.flows.config.run_settings import RunSettings
from tracemill.flows.labeling.gate_run import gate_version
from tracemill.flows.labeling.gate_weights import UNTOLD, ended_in_agreement
from tracemill.records.reply import AskDecision
from tracemill.records.storage.table_rows import decisions_from_table, votes_from_table
from tracemill.records.storage.workspace import Workspace
from tracemill.teachers.gate.totals_estimate import LoggedStep, estimate_totals

_SHOWN_VERSIONS = 5


def gate_report(work: Workspace, settings: RunSettings) -> dict[str, Any]:
    """Report the gate's decisions under these settings.

    The report has steps by decision and reason, the versions of the weights, and an estimate of the pairs
    that asking at all steps would have given.
    """
    current = gate_version(settings)
    every: dict[str, list[AskDecision]] = {}
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
        "share": settings.gate.share,
        "version": current,
        "weights": dict(weights.most_common(_SHOWN_VERSIONS)) if any(weights) else {},
        "steps": {
            verdict: dict(Counter(d.reason for d in steps.values() if d.verdict == verdict).most_common())
            for verdict in ("ask", "skip")
        },
        "pairs": estimate_totals(gate_chances(every.values(), verdicts)).to_json(),
    }


def gate_chances(steps: Iterable[Sequence[AskDecision]], verdicts: Mapping[str, str]) -> Iterable[LoggedStep]:
    """Yield one record per step: its decisions and its verdict."""
    for rows in steps:
        decision = max(rows, key=lambda row: row.probability)
        verdict = verdicts.get(decision.step_id, "")
        pairs = None if not verdict or verdict in UNTOLD else float(verdict == "pair")
        if ended_in_agreement(rows):
            pairs = 0.0
        yield LoggedStep(decision.probability, decision.belief or 0.0, pairs, decision.verdict == "ask")
