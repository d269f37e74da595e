"""A whole replay that stops by value between teachers: it learns from one set of sessions, stops at the next,
and a rerun decides the same and asks nobody."""

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tracemill.flows.config.run_settings import RunSettings, load_settings
from tracemill.flows.estimate.estimate_cost import estimate_cost
from tracemill.flows.ingest.ingest_run import IngestOrder, ingest_everything
from tracemill.flows.labeling.gate_weights import read_gate_stages
from tracemill.flows.labeling.label_shard import write_decisions
from tracemill.flows.labeling.vote_policy import ASKED
from tracemill.flows.sources.source_spec import order_of
from tracemill.flows.stages import replay_workspace
from tracemill.records.errors import ConfigError
from tracemill.records.reply import Decision
from tracemill.records.storage.table_rows import decisions_from_table
from tracemill.records.storage.workspace import Workspace
from tracemill.teachers.gate.gate_decisions import EXPLORED
from tracemill.teachers.gate.value_stages import is_worth, value_stage_of
from tracemill.teachers.gate.value_stop import NOT_WORTH_ON
from tracemill.teachers.planning.schedule import NOT_NEEDED

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "sessions"
TEACHERS = (("z-ai/glm-5.3", "0.01"), ("deepseek/deepseek-v4-pro-0813", "1"), ("qwen/qwen3.8-27b", "20"))
STOPPED = f"{NOT_NEEDED}: {NOT_WORTH_ON}"


def settings_of(workspace: Path, keep: float, **gate: Any) -> RunSettings:
    teachers = [
        {"type": "simulated", "model": model, "prices": {"prompt_usd": usd, "completion_usd": usd}}
        for model, usd in TEACHERS
    ]
    given: dict[str, Any] = {"workspace": str(workspace), "teachers": teachers}
    given |= {"budget": {"max_total_usd": 1000}, "replay": {"stop": "value", "keep": keep}}
    return load_settings(None, given | {"gate": {"policy": "voi", **gate}})


def decisions_of(workspace: Path) -> dict[str, list[Decision]]:
    found: dict[str, list[Decision]] = {}
    for table in Workspace.open(workspace, create=False).current("decisions"):
        for decision in decisions_from_table(table):
            found.setdefault(decision.step_id, []).append(decision)
    return found


@pytest.mark.slow
def test_it_learns_from_what_was_asked_and_stops_at_what_comes_after(tmp_path: Path) -> None:
    folder = tmp_path / "w"
    ingest_everything(IngestOrder(order_of(paths=[str(EXAMPLES / "claude_code")], idle_minutes=0), folder))
    replay_workspace(settings_of(folder, 0.5, explore=0.1), yes=True)
    before = decisions_of(folder)
    looks = [row for rows in before.values() for row in rows if row.heard]
    assert {value_stage_of(row.heard) for row in looks} == {1, 2}
    assert {row.heard_belief for row in looks} == {None}  # nothing was known
    assert {row.price for rows in before.values() for row in rows if row.place is not None} == {0.0}

    ingest_everything(IngestOrder(order_of(paths=[str(EXAMPLES)], idle_minutes=0), folder))
    record = replay_workspace(settings_of(folder, 0.5, explore=0.1), yes=True)
    every = decisions_of(folder)
    assert {step: every[step] for step in before} == before  # decided once
    fresh = [row for step, rows in every.items() if step not in before for row in rows]
    stopped = [row for row in fresh if row.outcome == STOPPED]
    assert stopped
    judged = [row for row in fresh if row.heard_belief is not None]
    for row in judged:
        goes = is_worth(row.heard_belief or 0, row.utility or 0, row.price or 0, row.to_go_usd or 0)
        assert row.heard_verdict == ("go on" if goes else "stop")
        assert row.price
        if row.heard_verdict == "stop":
            assert row.outcome == (ASKED if row.reason == EXPLORED else STOPPED)
    stages = read_gate_stages(Workspace.open(folder), judged[0].gate.partition("+")[2])
    assert stages is not None
    assert stages.probability(judged[0].features, judged[0].heard, 1) == judged[0].heard_belief
    counted = Counter(row.outcome for row in fresh)
    assert record["summary"]["not_asked"][STOPPED] == counted[STOPPED]
    assert record["summary"]["gate"]["stopped"] == len({row.step_id for row in stopped})

    assert estimate_cost(settings_of(folder, 0.5, explore=0.1)).total.calls == 0
    current = json.loads((folder / "decisions" / "gate" / "current.json").read_text())
    again = replay_workspace(settings_of(folder, 0.5, explore=0.1), yes=True)
    assert decisions_of(folder) == every
    assert (again["summary"]["calls"], again["summary"]["gate"]) == (0, record["summary"]["gate"])
    assert json.loads((folder / "decisions" / "gate" / "current.json").read_text()) == current

    # A crash before the outcomes are written: the weights that the rows name decide the same, not today's.
    work = Workspace.open(folder)
    for table in work.current("decisions"):
        rows = [
            replace(row, outcome="", heard=(), heard_belief=None, heard_verdict="")
            for row in decisions_from_table(table)
        ]
        traces = sorted({row.step_id.split(":")[0] for row in rows})
        write_decisions(work, traces[0].rpartition("-")[0], traces, rows)
    assert not any(row.heard for rows in decisions_of(folder).values() for row in rows)
    replay_workspace(settings_of(folder, 0.5, explore=0.1), yes=True)
    assert decisions_of(folder) == every


def test_a_stop_by_value_wants_a_gate_that_has_a_price(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"set gate.policy = \"voi\""):
        load_settings(None, {"workspace": str(tmp_path), "replay": {"stop": "value"}})
