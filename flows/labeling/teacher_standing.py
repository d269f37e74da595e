"""How the teachers of a workspace stand against its agents, and how reliable they are, by counts."""

from collections.abc import Iterator
from typing import Any

from tracemill.agreement.voting.calibration import calibrate_policy
from tracemill.agreement.voting.policy import Policy
from tracemill.agreement.voting.teacher_standing import (
    LEAST_COMPARED,
    Heard,
    TeacherStanding,
    compare_teachers,
)
from tracemill.flows.config.run_settings import RunSettings
from tracemill.flows.labeling.vote_policy import build_vote_policy
from tracemill.records.identity import StepId
from tracemill.records.pair import StepVotes
from tracemill.records.storage.table_rows import decisions_from_table, votes_from_table
from tracemill.records.storage.workspace import Workspace
from tracemill.teachers.gate.gate_decisions import EXPLORED

_KIN = "family of the student"


def measure_reliability(work: Workspace) -> dict[str, TeacherStanding]:
    """The standing of each teacher by the explored slice of a workspace, where all are asked."""
    return compare_teachers(_explored(work))


def _explored(work: Workspace) -> list[Heard]:
    explored = {
        decision.step_id
        for table in work.current("decisions")
        for decision in decisions_from_table(table)
        if decision.reason == EXPLORED
    }
    return list(_heard(work, explored)) if explored else []


def _heard(work: Workspace, explored: set[str]) -> Iterator[Heard]:
    resolved = {
        trace_id
        for table in work.current("traces")
        for trace_id, outcome in zip(table["trace_id"].to_pylist(), table["outcome"].to_pylist(), strict=True)
        if outcome == "resolved"
    }
    for table in work.current("votes"):
        for step in votes_from_table(table):
            if step.step_id in explored:
                yield _step(step, StepId.parse(step.step_id).trace_id in resolved)


def _step(step: StepVotes, resolved: bool) -> Heard:
    """The first vote of each teacher that counts, else that it has none."""
    actions: dict[str, str | None] = {}
    for vote in step.votes:
        if vote.counted or vote.teacher not in actions:
            actions[vote.teacher] = vote.key if vote.counted else None
    kin = frozenset(vote.teacher for vote in step.votes if vote.reason == _KIN)
    return Heard(actions, kin, resolved)


def measured_reliability_policy(settings: RunSettings, work: Workspace) -> Policy:
    """The vote of a configuration. One that weighs votes takes the counts of the explored slice as the
    workspace holds it now, reliability only where it is given none; they stay for the whole run."""
    policy = build_vote_policy(settings)
    return calibrate_policy(policy, _explored(work)) if policy.min_chance else policy


def measured_reliability_report(work: Workspace) -> dict[str, Any]:
    """For each teacher that was compared: its standing, the steps that it rests on, its agreement with the
    others, and whether a warning is due."""
    return {
        name: {
            "standing": round(each.standing, 3),
            "compared": each.compared,
            "agreed": each.agreed,
            "asked": each.asked,
            "told": each.compared >= LEAST_COMPARED,
            "weaker": each.weaker,
        }
        for name, each in sorted(measure_reliability(work).items())
        if each.asked
    }
