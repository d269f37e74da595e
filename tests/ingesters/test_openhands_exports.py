"""OpenHands V0 exports, several in a file: lines, lists and tables of sessions that users gave back."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tracemill.ingesters.detect_format import detect
from tracemill.ingesters.openhands.ingest_files import ingest_file
from tracemill.records.ingest_report import IngestReport
from tracemill.records.trace import Trace

STATUS = {"status": "ok", "source": "environment"}


def _session(task: str, day: int) -> list[dict[str, Any]]:
    """A session of an early version, with what the server said of the connection between its events."""
    stamp = f"2024-08-{day:02d}T10:00:00"
    ran = {"command": "ls", "thought": "Let me look."}
    return [
        {"action": "initialize", "args": {"AGENT": "CodeActAgent"}, "source": "environment"},
        STATUS,
        {"id": 1, "source": "environment", "observation": "agent_state_changed", "content": "", "extras": {}},
        {"source": "user", "action": "message", "args": {"content": task}},
        {"error": "Invalid token", "error_code": 401, "source": "environment"},
        {"id": 4, "timestamp": stamp, "source": "agent", "action": "run", "args": ran},
        {"id": 5, "cause": 4, "source": "agent", "observation": "run", "content": "a.py", "extras": {}},
        {"id": 6, "source": "agent", "action": "message", "args": {"content": "There is one file."}},
    ]


def _read(path: Path) -> tuple[list[Trace], IngestReport]:
    return ingest_file(path, str(detect(path)))


def _said(trace: Trace) -> list[tuple[str, str]]:
    return [(message.role, message.content) for message in trace.contexts[0].messages]


@pytest.mark.parametrize("layout", ["lines", "list"])
def test_a_file_of_several_exports_is_read_export_by_export(tmp_path: Path, layout: str) -> None:
    rows = [
        {"version": "1.0", "feedback": "positive", "trajectory": _session(task, day)}
        for day, task in ((1, "list it"), (2, "count it"))
    ]
    path = tmp_path / "feedback.json"
    lines = "\n".join(json.dumps(row) for row in rows)
    path.write_text(lines if layout == "lines" else json.dumps(rows, indent=2))
    traces, report = _read(path)
    assert [_said(trace)[0] for trace in traces] == [("user", "list it"), ("user", "count it")]
    assert _said(traces[0])[1:] == [
        ("assistant", "Let me look."),
        ("tool", "a.py"),
        ("assistant", "There is one file."),
    ]
    assert {trace.contexts[0].fidelity.context for trace in traces} == {"complete"}
    assert (report.steps_main, report.tool_calls, report.records["status"]) == (4, 2, 4)
    assert dict(report.skipped) == {}


def test_a_table_of_events_has_arguments_in_its_extras_and_no_causes(tmp_path: Path) -> None:
    columns = ("id", "source", "action", "observation", "content")
    events = [dict.fromkeys((*columns, "extras")) | event for event in _session("list it", 1)]
    for event in events:
        told = event.pop("args", None) or event["extras"] or {}
        event["extras"] = {key: told.get(key) for key in ("command", "thought", "content")}
    rows = [{"feedback": "positive", "trajectory": [{k: e[k] for k in (*columns, "extras")} for e in events]}]
    path = tmp_path / "feedback.parquet"
    pq.write_table(pa.Table.from_pylist(rows), path)
    (trace,), report = _read(path)
    assert _said(trace) == [
        ("user", "list it"),
        ("assistant", "Let me look."),
        ("tool", "a.py"),
        ("assistant", "There is one file."),
    ]
    (call,) = trace.contexts[0].messages[1].tool_calls
    assert json.loads(call.arguments) == {"command": "ls"}
    assert (report.steps_main, report.tool_calls, trace.contexts[0].fidelity.context) == (2, 1, "complete")


def test_a_row_of_pairs_needs_no_name_of_its_task(tmp_path: Path) -> None:
    session = _session("list it", 1)
    pairs = [[{"id": 3} | session[3], {"observation": "null", "content": "", "extras": {}}], session[5:7]]
    row = {"question_id": 7, "correct": False, "metadata": {"model_name": "gpt-4o"}, "history": pairs}
    path = tmp_path / "output.jsonl"
    path.write_text(json.dumps(row))
    (trace,), report = _read(path)
    assert (trace.dialect, trace.contexts[0].steps[0].model) == ("openhands_eval_v0", "gpt-4o")
    assert (report.steps_main, report.tool_calls) == (1, 1)
    path.write_text(json.dumps(row | {"history": [["a chat", "a reply"]]}))
    assert detect(path) is None
