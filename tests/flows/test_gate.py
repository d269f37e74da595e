"""The gate in a whole replay over a socket: paced by the cap, replayed by a rerun, learning in between."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tracemill.flows.config.run_settings import RunSettings, load_settings
from tracemill.flows.estimate.estimate_cost import estimate_cost
from tracemill.flows.forget.forget_run import forget_target
from tracemill.flows.ingest.ingest_order import IngestOptions
from tracemill.flows.ingest.ingest_run import ingest_everything
from tracemill.flows.labeling.gate_weights import GateTrainingSet, gate_weights_folder, keep_weights
from tracemill.flows.labeling.vote_policy import ASKED as HEARD
from tracemill.flows.run_state.closing_table import closing_table_rows
from tracemill.flows.run_state.run_summary import ReleaseOutcome, Summary
from tracemill.flows.sources.source_spec import order_of
from tracemill.flows.workspace_commands import replay_workspace
from tracemill.records.reply import AskDecision
from tracemill.records.storage.table_rows import decisions_from_table
from tracemill.records.storage.workspace import Workspace
from tracemill.teachers.gate.gate_decisions import EXPLORED, NOT_WORTH, WORTH
from tracemill.teachers.gate.pair_model import learn_pair_model
from tracemill.teachers.openrouter_stub.server import running
from tracemill.teachers.openrouter_stub.stub_settings import StubSettings
from tracemill.teachers.planning.schedule import NOT_NEEDED

SESSIONS = Path(__file__).resolve().parents[2] / "examples" / "sessions" / "claude_code"
MODELS = ("deepseek/deepseek-v4-pro-0813", "z-ai/glm-5.3", "qwen/qwen3.8-27b")


def settings_of(workspace: Path, url: str, cap: float, **gate: Any) -> RunSettings:
    teachers = [
        {"type": "openrouter", "model": m, "base_url": url, "local": True, "max_tokens": 500} for m in MODELS
    ]
    given: dict[str, Any] = {"workspace": str(workspace), "teachers": teachers}
    return load_settings(None, given | {"budget": {"max_total_usd": cap}, "gate": gate})


def decisions_of(workspace: Path) -> dict[tuple[str, str], AskDecision]:
    tables = Workspace.open(workspace, create=False).current("decisions")
    return {(d.step_id, d.teacher): d for table in tables for d in decisions_from_table(table)}


def test_a_run_asks_what_the_budget_is_best_spent_on_and_a_rerun_decides_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "w"
    ingest_everything(IngestOptions(order_of(paths=[str(SESSIONS)], min_age_minutes=0), folder))
    monkeypatch.setenv("OPENROUTER_API_KEY", "k-gate")
    with running(StubSettings(api_key="k-gate")) as server:
        every = estimate_cost(settings_of(folder, server.url, 5.0)).total
        settings = settings_of(folder, server.url, 5.0, share=0.4, explore=0.1)
        told = estimate_cost(settings).total
        assert told.usd_cached < every.usd_cached / 2
        record = replay_workspace(settings, yes=True)
        first, calls = decisions_of(folder), server.stats()["requests"]
        assert 0 < calls < 3 * len({step for step, _ in first})

        again = replay_workspace(settings, yes=True)
        assert decisions_of(folder) == first  # although the gate has learned since
        assert again["summary"]["gate"] == record["summary"]["gate"]
        assert server.stats()["requests"] == calls

    reasons = {d.reason for d in first.values()}
    assert reasons == {WORTH, EXPLORED, NOT_WORTH}
    for decision in first.values():
        assert decision.features
        assert decision.expected_usd
        assert 0 < (decision.belief or 0) < 1
        assert 0 < (decision.explore or 0) < 0.1  # a fifth of the money pays for no more
        chances = {WORTH: {1.0}, NOT_WORTH: {decision.explore}}.get(decision.reason, {1.0, decision.explore})
        assert decision.probability in chances
    current = json.loads((folder / "decisions" / "gate" / "current.json").read_text())["version"]
    weights = json.loads((folder / "decisions" / "gate" / f"{current}.json").read_text())
    report = record["summary"]["gate"]
    assert weights["asked"] > 0
    assert weights["pairs"] == report["pairs"]["counted"]
    assert report["pairs"]["low"] <= report["pairs"]["estimate"] <= report["pairs"]["high"]
    assert sum(report["steps"]["ask"].values()) == report["pairs"]["asked"]
    row = dict(
        closing_table_rows(
            Summary.from_json(record["summary"]), 5.0, [], ReleaseOutcome(None, None, 0, False, {}, {})
        )
    )
    assert row["step selection"].splitlines()[0] == "40% of the full cost"
    assert "all would give about" in row["step selection"]


def test_without_a_gate_every_step_is_asked_and_said_so(tmp_path: Path) -> None:
    folder = tmp_path / "w"
    ingest_everything(IngestOptions(order_of(paths=[str(SESSIONS)], min_age_minutes=0), folder))
    settings = load_settings(
        None, {"workspace": str(folder), "preset": "simulated", "budget": {"max_total_usd": 1}}
    )
    report = replay_workspace(settings, yes=True)["summary"]["gate"]
    assert report["share"] == 1
    assert set(report["steps"]["ask"]) == {"every step", EXPLORED}
    assert not (folder / "decisions" / "gate").exists()


def test_how_often_a_teacher_is_asked_counts_a_step_once() -> None:
    made = GateTrainingSet()
    one = AskDecision("s:0:0", "a", "ask", WORTH, "g", 1.0, 0.5, features=("op=run",), outcome=HEARD)
    spared = replace(one, step_id="s:0:1", outcome=f"{NOT_NEEDED}: the pair is certain")
    made.add([one, one, spared, replace(one, teacher="b")], {"s:0:0": "pair"})
    assert made.share("a", 0.5) == (1 + 50 * 0.5) / (2 + 50)
    made.add([replace(spared, outcome=HEARD)], {})
    assert made.share("a", 0.5) == (2 + 50 * 0.5) / (2 + 50)
    assert made.share("c", 0.25) == 0.25


def test_weights_are_forgotten_with_what_they_were_learned_from(tmp_path: Path) -> None:
    folder = tmp_path / "w"
    ingest_everything(IngestOptions(order_of(paths=[str(SESSIONS)], min_age_minutes=0), folder))
    work = Workspace.open(folder, create=False)
    keep_weights(work, learn_pair_model([(("project=01234567",), True)]))
    assert len(list(gate_weights_folder(work).iterdir())) == 2
    some = min(work.current("traces"), key=len).column("trace_id").to_pylist()[0]
    settings = load_settings(None, {"workspace": str(folder)})
    forget_target(settings, some, "trace", True, True)
    assert not gate_weights_folder(work).exists()
