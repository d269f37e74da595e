"""OpenHands files and folders that are broken: counted, named, and never fatal to others."""

import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tracemill.ingesters.discover import discover
from tracemill.ingesters.ingester_classes import OpenHandsIngester
from tracemill.ingesters.openhands.files import READERS
from tracemill.ingesters.openhands.ingest_files import ingest_file
from tracemill.ingesters.read_source import ingest_source
from tracemill.records.errors import SourceError

USER = {"id": 0, "source": "user", "action": "message", "args": {"content": "go"}}
SAID = {"id": 1, "source": "agent", "action": "message", "args": {"content": "done"}}
V1_USER = {"kind": "MessageEvent", "id": "u", "source": "user", "llm_message": {"content": "go"}}
V1_SAID = {"kind": "MessageEvent", "id": "a", "source": "agent", "llm_message": {"content": "done"}}


def _write(path: Path, *rows: Any) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_what_is_broken_as_a_whole_is_a_source_error(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text("{}")
    for dialect, wanted in (("openhands_events_v0", "list of events"), ("nothing", "choose one")):
        with pytest.raises(SourceError, match=wanted):
            ingest_file(path, dialect)
    with pytest.raises(SourceError):
        ingest_file(tmp_path / "absent.json", "openhands_eval_v0")


def test_every_source_of_a_folder_is_read_or_named(tmp_path: Path) -> None:
    lines = (json.dumps(V1_USER) + "\n" + json.dumps(V1_SAID) + "\n").encode()
    files = {
        "cut.jsonl": lines + b'{"kind": "MessageEv',
        "bytes.jsonl": lines[:-1] + b"\n" + b'{"kind": "MessageEvent", "id": "b", "x": "\xff"}\n',
        "nothing.jsonl": b"",
        "text.jsonl": lines + b'"a line that is a string"\n',
        "cut.json": json.dumps([USER, SAID]).encode()[:-9],
        "other.json": b'{"name": "package"}',
        "whole.json": json.dumps([USER, SAID]).encode(),
    }
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    found = {s.path.name: ingest_source(s) for s in discover([tmp_path])}
    read = {name: (len(traces), dict(r.skipped), dict(r.flags)) for name, (traces, r) in found.items()}
    no_state = {"no base_state.json": 1}
    assert {name: said for name, said in read.items() if said[0]} == {
        "cut.jsonl": (1, {"not json": 1}, no_state),
        "bytes.jsonl": (1, {"event that is not understood": 1}, no_state | {"repaired json": 1}),
        "text.jsonl": (1, {"not an object": 1}, no_state),
        "whole.json": (1, {}, {}),
    }
    assert {name for name, (_, report) in found.items() if report.error} == {
        "nothing.jsonl", "cut.json", "other.json",
    }  # fmt: skip
    ingester = OpenHandsIngester()
    assert len(list(ingester.ingest(tmp_path))) == 4
    assert sum(bool(report.error) for report in ingester.reports) == 3


@pytest.mark.parametrize("dialect", ["openhands_events_v0", "openhands_sdk_v1"])
def test_lines_of_50_mb(tmp_path: Path, dialect: str) -> None:
    big = "x" * 50_000_000
    call = {"id": "c", "name": "terminal", "arguments": "{}"}
    meta = {"tool_call_id": "c", "function_name": "terminal"}
    rows: dict[str, list[dict[str, Any]]] = {
        "openhands_events_v0": [
            USER,
            {"id": 1, "source": "agent", "action": "mcp", "args": {}, "tool_call_metadata": meta},
            {"id": 2, "source": "agent", "observation": "mcp", "content": big, "tool_call_metadata": meta},
            {**SAID, "id": 3},
        ],
        "openhands_sdk_v1": [
            V1_USER,
            {"kind": "ActionEvent", "id": "b", "source": "agent", "tool_call_id": "c", "tool_call": call},
            {"kind": "ObservationEvent", "id": "o", "source": "environment", "tool_call_id": "c",
             "observation": {"content": [{"type": "text", "text": big}]}},
            V1_SAID,
        ],
    }  # fmt: skip
    (source,) = discover([_write(tmp_path / "events.jsonl", *rows[dialect])])
    assert source.dialect == dialect
    (trace,), report = ingest_source(source)
    assert (trace.step_count, report.error, dict(report.skipped)) == (2, None, {})
    last = trace.contexts[0].messages[trace.contexts[0].steps[1].cut - 1]
    assert 30_000 <= len(last.content) <= 50_000  # cut as the agent was shown it


@contextmanager
def _as_nobody() -> Iterator[None]:
    """Root may open everything; as nobody, permissions count."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


def test_folders_without_permission_are_named_and_the_rest_is_read() -> None:
    root = Path(tempfile.mkdtemp())  # pytest's own folders are closed to nobody as they are
    try:
        root.chmod(0o755)
        for name in ("a_closed", "b_closed_events", "c_open", "d_closed_logs"):
            (root / name / "events").mkdir(parents=True)
            _write(root / name / "events" / "event-00000-u.json", V1_USER)
            _write(root / name / "events" / "event-00001-a.json", V1_SAID)
            _write(root / name / "base_state.json", {"id": name})
        (root / "d_closed_logs" / "logs").mkdir()
        closed = [root / "a_closed", root / "b_closed_events" / "events", root / "d_closed_logs" / "logs"]
        for folder in closed:
            folder.chmod(0)
        with _as_nobody():
            found = {s.path.name: ingest_source(s) for s in discover([root])}
            ingester = OpenHandsIngester()
            traces = list(ingester.ingest(root))
        assert {name: len(traces) for name, (traces, _) in found.items()} == {
            "a_closed": 0, "b_closed_events": 0, "c_open": 1, "d_closed_logs": 1,
        }  # fmt: skip
        errors = {name: report.error or "" for name, (_, report) in found.items()}
        assert "Permission denied" in errors["a_closed"]
        assert "events cannot be listed: Permission denied" in errors["b_closed_events"]
        assert found["d_closed_logs"][1].flags == {"folder of completion logs cannot be listed": 1}
        assert (len(traces), [bool(r.error) for r in ingester.reports]) == (2, [True, True, False, False])
    finally:
        for folder in root.rglob("*"):
            folder.chmod(0o755)
        shutil.rmtree(root)


def _words(text: str) -> list[str]:
    return text.split()


_KEYS = _words(
    "id source action observation args extras content cause tool_call_metadata history kind llm_message "
    "tool_call forgotten_event_ids summary summary_offset tools system_prompt parent_id messages response "
    "metadata metrics microagent_knowledge recall_type model_response choices message tool_calls input "
    "llm_response_id issue instance name function arguments token_usages response_id"
)
_VALUES = _words(
    "agent user run edit message system condensation recall finish error delegate a assistant tool "
    "ActionEvent ObservationEvent MessageEvent Condensation SystemPromptEvent SystemPromptUpdateEvent "
    "AgentErrorEvent workspace_context"
)
_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 9) | st.sampled_from(_VALUES) | st.just(1.5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(_KEYS), inner, max_size=5),
    max_leaves=25,
)


@settings(max_examples=120)
@given(
    st.sampled_from(sorted(READERS)),
    st.lists(st.dictionaries(st.sampled_from(_KEYS), _JSON, max_size=7), max_size=5),
)
def test_no_json_of_any_types_is_fatal(
    tmp_path_factory: Any, dialect: str, rows: list[dict[str, Any]]
) -> None:
    folder = tmp_path_factory.mktemp("fuzz")
    wrapped = [*rows, {"instance_id": "a__b-1", "history": rows}]
    path = _write(folder / "x.jsonl", *wrapped)
    if dialect.startswith("openhands_completion"):
        path = folder / "x.json"
        path.write_text(json.dumps(rows[0] if rows else {}))
    traces, report = ingest_file(path, dialect)
    assert len(traces) == report.traces
