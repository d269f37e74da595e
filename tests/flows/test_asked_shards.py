"""Shards that are asked in one plan: their calls are in flight together, their rows stay apart."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tracemill.flows.config.run_settings import load_settings
from tracemill.flows.ingest.ingest_order import IngestOptions
from tracemill.flows.ingest.ingest_run import ingest_everything
from tracemill.flows.labeling.ask_batches import FEWEST_CALLS, MOST_SHARDS, TRACES_A_CALL, group_batches
from tracemill.flows.sources.source_spec import order_of
from tracemill.flows.workspace_commands import replay_workspace
from tracemill.records.storage.table_rows import decisions_from_table, replies_from_table
from tracemill.records.storage.workspace import Workspace
from tracemill.teachers.openrouter_stub.server import running
from tracemill.teachers.openrouter_stub.stub_settings import StubSettings

SESSIONS = Path(__file__).resolve().parents[2] / "examples" / "sessions"
MODELS = ("simulated/deepseek-a", "simulated/kimi-a", "simulated/glm-a")
KEY = "sk-or-shards"


def settings_of(work: Path, url: str, **replay: Any) -> Any:
    teachers = [
        {"type": "openrouter", "model": m, "base_url": url, "local": True, "max_tokens": 50} for m in MODELS
    ]
    given: dict[str, Any] = {"workspace": str(work), "teachers": teachers, "budget": {"max_total_usd": 5}}
    return load_settings(None, given | {"replay": replay})


def test_the_calls_of_all_shards_are_in_flight_together_and_every_row_is_in_its_own_shard(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENROUTER_API_KEY", KEY)
    ingest_everything(IngestOptions(order_of(paths=[str(SESSIONS)], min_age_minutes=0), tmp_path / "w"))
    work = Workspace.open(tmp_path / "w")
    sources = {
        trace_id: source
        for table in work.current("traces")
        for trace_id, source in zip(table["trace_id"].to_pylist(), table["source"].to_pylist(), strict=True)
    }
    assert max(Counter(sources.values()).values()) < len(sources)
    with running(StubSettings(api_key=KEY, latency_s=0.1)) as server:
        first = replay_workspace(settings_of(tmp_path / "w", server.url, stop="off"))["summary"]
        stats = server.stats()
        assert stats["most_in_flight"] >= len(sources)  # each trace's first step, whatever its source
        again = replay_workspace(settings_of(tmp_path / "w", server.url, stop="off"))["summary"]
        assert server.stats()["received"] == stats["received"]
    assert first["calls"] == first["asked"] == stats["received"] == again["reused"]
    for name, rows_of in (("replies", replies_from_table), ("decisions", decisions_from_table)):
        for shard in work.live(name):
            steps = {row.step_id.split(":")[0] for t in [work.read(name, shard)] for row in rows_of(t)}
            assert len({sources[trace_id] for trace_id in steps}) == 1
    rows = [row for table in work.current("replies") for row in replies_from_table(table)]
    assert len({(row.step_id, row.teacher) for row in rows}) == len(rows) == stats["received"]


def test_a_plan_holds_as_many_shards_as_keep_the_calls_in_flight() -> None:
    shards = [[f"t{number}" for number in range(size)] for size in (120, 200, 170, 50, 50, 50, 50, 50)]
    assert [len(plan) for plan in group_batches(shards, 0)] == [1] * len(shards)
    plans = list(group_batches(shards, 3))
    assert [[len(shard) for shard in plan] for plan in plans] == [[120, 200], [170, 50, 50, 50], [50, 50]]
    assert TRACES_A_CALL * max(3, FEWEST_CALLS) == 320
    assert MOST_SHARDS == 4
