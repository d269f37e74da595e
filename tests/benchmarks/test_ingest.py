"""The copies the ingest benchmark is run on: new sessions to every reader, with all their links."""

import importlib.util
import json
from pathlib import Path
from types import ModuleType

import pytest

from tracemill.ingesters.claude_code.ingest_session import ingest_file
from tracemill.ingesters.discover import discover
from tracemill.ingesters.read_source import ingest_source

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples" / "sessions"
SESSION = "87751d4c-a850-4e2c-84dc-da6a797d76de"


@pytest.fixture(scope="module")
def copies() -> ModuleType:
    """The script, as a module."""
    spec = importlib.util.spec_from_file_location("session_copies", ROOT / "benchmarks" / "session_copies.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_copies_are_other_sessions_that_say_the_same(copies: ModuleType, tmp_path: Path) -> None:
    made = copies.many(EXAMPLES, tmp_path, 0.4)
    assert (made["files"], made["copies"], round(made["mb"], 2)) == (13, 2, 0.41)
    traces = [trace for source in discover([tmp_path]) for trace in ingest_source(source)[0]]
    assert len(traces) == len({trace.trace_id for trace in traces}) == 17
    (original,) = ingest_file(EXAMPLES / "claude_code" / "-home-dev-parcels" / f"{SESSION}.jsonl")[0]
    again = [trace for trace in traces if trace.origin == f"{SESSION}.jsonl"]
    for copy in again:
        messages = copy.contexts[0].messages
        assert [m.content for m in messages] == [m.content for m in original.contexts[0].messages]
        assert [s.cut for s in copy.contexts[0].steps] == [s.cut for s in original.contexts[0].steps]
        assert all(m.tool_call_id for m in messages if m.role == "tool")
    ids = [{step.native_id for step in trace.contexts[0].steps} for trace in (original, *again)]
    assert [len(each) for each in ids] == [12, 12, 12, 12]
    assert len(set().union(*ids)) == 48


def test_one_session_of_any_size_is_one_chain(copies: ModuleType, tmp_path: Path) -> None:
    made = copies.one(EXAMPLES / "claude_code", tmp_path, 0.2)
    assert made["copies"] == 7
    (trace,), report = ingest_file(tmp_path / "one.jsonl")
    assert (trace.step_count, len(trace.contexts)) == (7 * 12, 1)
    assert not report.skipped
    parents = [
        json.loads(line).get("parentUuid", "") for line in (tmp_path / "one.jsonl").read_text().splitlines()
    ]
    assert parents.count(None) == 1
