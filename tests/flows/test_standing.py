"""The standing of teachers, and the counts that weigh their votes, out of a workspace's own tables."""

from pathlib import Path

import pytest

from tracemill.agreement.voting.calibration import calibrated_chance
from tracemill.flows.config.run_settings import load_settings
from tracemill.flows.labeling.teacher_standing import (
    measure_reliability,
    measured_reliability_policy,
    measured_reliability_report,
)
from tracemill.flows.release.release_run import release_run_teachers
from tracemill.flows.run_state.closing_table import closing_table_rows
from tracemill.flows.run_state.run_summary import ReleaseOutcome, Summary
from tracemill.records.pair import StepVotes, Vote
from tracemill.records.reply import Decision
from tracemill.records.storage.table_rows import decisions_to_table, votes_to_table
from tracemill.records.storage.workspace import Workspace
from tracemill.teachers.gate.gate_decisions import ASKED, EXPLORED


def vote(teacher: str, key: str, reason: str = "") -> Vote:
    return Vote(teacher, teacher, 0, not reason, reason, key, "edit", False, 0.0, "k")


def decided(step: str, reason: str) -> Decision:
    return Decision(step, "a", "ask", reason, "all", 1.0, 0.5)


def workspace(folder: Path) -> Workspace:
    """Twelve explored steps at which `a` does what nobody else does and the agent what all others do; one
    that shows the opposite, and one like it that was not explored."""
    work = Workspace.open(folder)
    steps = [f"t:0:{number}" for number in range(14)]
    against = (vote("a", "x"), vote("b", "student"), vote("c", "student"), vote("d", "student"))
    other = (vote("a", "y"), vote("b", "y"), vote("c", "y"), vote("d", "", "family of the student"))
    votes = [StepVotes(step, "agrees_with_student", against) for step in steps[:12]]
    votes += [StepVotes(steps[12], "pair", other), StepVotes(steps[13], "pair", other)]
    reasons = [EXPLORED] * 13 + [ASKED]
    made = [decided(step, reason) for step, reason in zip(steps, reasons, strict=True)]
    work.write("decisions", decisions_to_table(made), ["t"], "s", "2026-01-01")
    work.write("votes", votes_to_table(votes), ["t"], "s", "2026-01-01")
    return work


def test_only_explored_steps_count_and_a_weak_teacher_is_named(tmp_path: Path) -> None:
    work = workspace(tmp_path / "w")
    found = measure_reliability(work)
    assert (found["a"].agreed, found["a"].asked, found["a"].better, found["a"].worse) == (1, 13, 1.0, 12.0)
    assert found["a"].weaker
    assert (found["d"].agreed, found["d"].asked) == (12, 12)
    summary = Summary(standing=measured_reliability_report(work))
    rows = dict(closing_table_rows(summary, None, [], ReleaseOutcome(None, None, 0, False, {}, {})))
    first, *rest = rows["teachers' standing"].split("\n")
    assert first == (
        "   0.13  a, with the others at 1 of 13 steps: weaker than the agents, its votes make bad labels"
    )
    assert all(line.endswith("(too few to tell)") for line in rest)
    assert Summary.from_json(summary.to_json()).standing == summary.standing


def test_weighed_votes_take_these_counts_unless_told_others(tmp_path: Path) -> None:
    work = workspace(tmp_path / "w")
    told = {"workspace": str(work.root), "agreement": {"policy": "weighted"}}
    assert measured_reliability_policy(load_settings(None, told), work).reliability["a"] == (1, 13)
    told["agreement"] = {"policy": "weighted", "reliability": {"a": [3, 4]}}
    assert measured_reliability_policy(load_settings(None, told), work).reliability == {"a": (3, 4)}
    weighed = measured_reliability_policy(load_settings(None, told), work)
    assert weighed.min_chance == 0.5
    assert calibrated_chance(("b", "c"), weighed) == pytest.approx(40 / 77)
    told["agreement"]["min_chance"] = 0.8
    assert measured_reliability_policy(load_settings(None, told), work).min_chance == 0.8
    told["agreement"] = {}
    assert measured_reliability_policy(load_settings(None, told), work).reliability == {}


def test_the_card_names_the_standing_of_those_that_were_compared(tmp_path: Path) -> None:
    report = measured_reliability_report(workspace(tmp_path / "w"))
    settings = load_settings(None, {"preset": "simulated", "budget": {"max_total_usd": 1}})
    names = [teacher.name for teacher in settings.asked()]
    summary = Summary(standing={names[0]: report["a"], names[1]: report["b"]})
    found = {entry.name: entry.standing for entry in release_run_teachers(settings, summary)}
    assert [found[name] for name in names[:2]] == [report["a"]["standing"], None]
