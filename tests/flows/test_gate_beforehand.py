"""Under a gate that chooses, an estimate and a dry run list what a replay then asks."""

import json
import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tracemill.cli.estimate_output import estimate_rows
from tracemill.flows.config.run_settings import RunSettings, load_settings
from tracemill.flows.estimate.dry_run import write_requests
from tracemill.flows.estimate.estimate_cost import estimate_cost
from tracemill.flows.ingest.ingest_order import IngestOptions
from tracemill.flows.ingest.ingest_run import ingest_everything
from tracemill.flows.labeling import ask_batches
from tracemill.flows.labeling.trace_batches import list_trace_batches
from tracemill.flows.sources.source_spec import order_of
from tracemill.flows.workspace_commands import replay_workspace
from tracemill.records.identity import StepId
from tracemill.records.storage.table_rows import replies_from_table
from tracemill.records.storage.trace_rows import traces_from_table
from tracemill.records.storage.workspace import Workspace
from tracemill.teachers.core.presets import OPEN
from tracemill.teachers.openrouter_stub.server import RunningStubServer, running
from tracemill.teachers.openrouter_stub.stub_settings import StubSettings

ROOT = Path(__file__).resolve().parents[2]
KEY = "sk-or-gate"
SESSIONS = ROOT / "examples" / "sessions"


@pytest.fixture(scope="module")
def ingested(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All example sessions, of several sources; to be copied."""
    folder = tmp_path_factory.mktemp("gate") / "w"
    ingest_everything(IngestOptions(order_of(paths=[str(SESSIONS)], min_age_minutes=0), folder))
    return folder


@pytest.fixture
def served() -> Iterator[RunningStubServer]:
    with running(StubSettings(api_key=KEY)) as server:
        yield server


@pytest.fixture
def work(ingested: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("OPENROUTER_API_KEY", KEY)
    return shutil.copytree(ingested, tmp_path / "w")


def settings_of(work: Path, url: str, concurrency: int = 16, cap: float = 0.5) -> RunSettings:
    teachers = [
        {"type": "openrouter", "model": teacher.model, "base_url": url, "local": True}
        for teacher in OPEN.teachers
    ]
    given: dict[str, Any] = {"workspace": str(work), "teachers": teachers, "budget": {"max_total_usd": cap}}
    gate = {"share": 0.3}
    return load_settings(None, given | {"gate": gate, "replay": {"stop": "off", "concurrency": concurrency}})


def listed(work: Path) -> set[tuple[str, str]]:
    lines = (json.loads(line) for line in (work / "dry-run.jsonl").read_text().splitlines())
    return {(line["step_id"], line["teacher"]) for line in lines}


def asked(work: Path) -> set[tuple[str, str]]:
    tables = Workspace.open(work, create=False).current("replies")
    return {(reply.step_id, reply.teacher) for table in tables for reply in replies_from_table(table)}


def test_a_dry_run_lists_every_step_that_the_gate_then_asks(work: Path, served: RunningStubServer) -> None:
    settings = settings_of(work, served.url)
    record = write_requests(settings)
    assert record["decided_later"] == 0
    calls = estimate_cost(settings).total.calls
    replay_workspace(settings, yes=True)
    assert asked(work) == listed(work)
    assert calls == len(asked(work)) > 30


def grown(sessions: Path) -> Path:
    """The examples with twelve SWE-Gym runs, which make a plan of their own at one call in flight."""
    shutil.copytree(SESSIONS, sessions)
    path = sessions / "swe_gym" / "trajectories.jsonl"
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    copies = (row | {"run_id": f"{row['run_id']}-{number}"} for number in range(6) for row in rows)
    path.write_text("".join(json.dumps(row) + "\n" for row in copies))
    return sessions


def test_what_a_gate_decides_after_the_first_answers_is_counted_and_said(
    tmp_path: Path, served: RunningStubServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENROUTER_API_KEY", KEY)
    monkeypatch.setattr(ask_batches, "FEWEST_CALLS", 1)
    folder = tmp_path / "w"
    sources = order_of(paths=[str(grown(tmp_path / "s"))], min_age_minutes=0)
    ingest_everything(IngestOptions(sources, folder))
    settings = settings_of(folder, served.url, concurrency=1)
    (first,) = (frozenset(ids) for ids in list_trace_batches(Workspace.open(folder)) if len(ids) == 12)
    steps = Counter(
        str(state.step_id.trace_id) in first
        for table in Workspace.open(folder).current("traces")
        for trace in traces_from_table(table)
        for state in trace.states()
    )
    record, told = write_requests(settings), estimate_cost(settings)
    assert record["decided_later"] == told.decided_later == steps[False] > 10
    assert dict(estimate_rows(told))["decided later"].startswith(f"{steps[False]:,} steps: ")

    replay_workspace(settings, yes=True)
    sure = [
        {(step, teacher) for step, teacher in found if StepId.parse(step).trace_id in first}
        for found in (listed(folder), asked(folder))
    ]
    assert sure[0] == sure[1] != set()
    again = write_requests(settings)
    assert (again["decided_later"], sum(again["requests"].values())) == (0, 0)
