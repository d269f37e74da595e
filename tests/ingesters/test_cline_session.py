"""Sessions of Cline 4: messages, results of any kind, compactions, subagents."""

import copy
import json
from collections import Counter
from pathlib import Path
from typing import Any

from changed_parts import changed
from file_readers import file_reader
from hypothesis import HealthCheck, given, settings

from tracemill.harnesses.agents.registry import harness_for
from tracemill.harnesses.core.vocabulary import Operation
from tracemill.harnesses.operations import find_action_operation
from tracemill.ingesters.census import take_census
from tracemill.ingesters.cline.format import FORMAT
from tracemill.ingesters.cline.sdk_session import iter_traces
from tracemill.ingesters.detect_format import detect
from tracemill.ingesters.discover import discover
from tracemill.records.trace import Usage

ingest_file = file_reader("cline_session", iter_traces)
MODEL = {"id": "claude-sonnet-4-6", "provider": "anthropic"}


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def used(call_id: str, name: str, **given: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": call_id, "name": name, "input": given}


def result(call_id: str, content: Any, **fields: Any) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": call_id, "content": content} | fields


def user(*blocks: Any, **fields: Any) -> dict[str, Any]:
    return {"id": "u", "role": "user", "content": list(blocks)} | fields


def says(*blocks: Any, **fields: Any) -> dict[str, Any]:
    return {"id": "a", "role": "assistant", "content": list(blocks), "modelInfo": MODEL} | fields


def session(*messages: Any, **fields: Any) -> dict[str, Any]:
    head = {"version": 1, "updated_at": "2026-03-01T10:00:00Z", "agent": "lead", "sessionId": "s1"}
    return head | {"messages": list(messages)} | fields


MESSAGES = (
    user(text("Count the beds.")),
    says(
        {"type": "thinking", "thinking": "Where?"},
        used("t1", "read_files", files=[{"path": "/r/beds.py"}]),
        used("t2", "run_commands", commands=["ls"]),
        ts=1_772_359_200_000,
    ),
    user(
        result("t1", "BEDS = 3", is_error=False),
        result("t2", [{"query": "ls", "result": "beds.py", "success": True}], is_error=True),
        text("Hurry."),
    ),
    says(
        text("Three."),
        metrics={"inputTokens": 21, "outputTokens": 8, "cacheReadTokens": 3, "cost": 0.13},
    ),
)


def write(path: Path, value: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value, indent="\t"))
    return path


def count(path: Path) -> Counter[str]:
    """Count answers with text or calls, and calls, without the reader."""
    found: Counter[str] = Counter()
    for message in json.loads(path.read_text())["messages"]:
        kinds = Counter(block["type"] for block in message["content"])
        acts = message["role"] == "assistant" and (kinds["text"] or kinds["tool_use"])
        found.update({"steps": int(bool(acts)), "calls": kinds["tool_use"], "results": kinds["tool_result"]})
    return found


def test_a_session_becomes_steps_with_prefixes_and_facts(tmp_path: Path) -> None:
    path = write(tmp_path / "s1" / "s1.messages.json", session(*MESSAGES, system_prompt="You count."))
    write(tmp_path / "s1" / "s1.json", {"cwd": "/home/dev/garden", "started_at": "2026-03-01T09:59:00Z"})
    (source,) = discover([tmp_path])
    assert (source.path, source.dialect) == (path, "cline_session")
    (trace,), report = ingest_file(path)
    assert (report.states, report.tool_calls) == (count(path)["steps"], count(path)["calls"]) == (2, 2)
    assert (trace.source, trace.harness, trace.project, trace.started_at) == (
        *("cline", "cline_sdk", "garden"),
        "2026-03-01T09:59:00Z",
    )
    first, second = trace.states()
    assert [(m.role, m.content) for m in first.messages] == [
        ("system", "You count."),
        ("user", "Count the beds."),
    ]
    assert [(m.role, m.content, m.is_error) for m in second.messages[3:]] == [
        ("tool", "BEDS = 3", False),
        ("tool", '[{"query":"ls","result":"beds.py","success":true}]', True),
        ("user", "Hurry.", None),
    ]
    assert (first.step.model, first.step.timestamp) == ("claude-sonnet-4-6", "2026-03-01T10:00:00.000Z")
    assert (first.step.cwd, second.step.usage) == ("/home/dev/garden", Usage(21, 8, 3, 0.13))
    assert first.context.messages[2].reasoning == "Where?"
    fidelity = first.fidelity
    assert (fidelity.system, fidelity.tools, fidelity.context) == ("recorded", "absent", "approximate")
    assert find_action_operation(first.student_action, trace.harness) in (Operation.READ, Operation.RUN)
    assert "run_commands" in harness_for(trace.harness).tools
    assert (dict(report.skipped), dict(report.flags), dict(report.unknown)) == ({}, {}, {})


def test_a_compaction_beside_it_begins_a_context(tmp_path: Path) -> None:
    later = (user(text("And the trees?")), says(text("Two.")))
    path = write(tmp_path / "s1" / "s1.messages.json", session(*MESSAGES, *later))
    kept = [user(text("So far: three beds.")), says(text("Three."))]
    beside = {"version": 1, "source_message_count": 4, "messages": kept}
    write(tmp_path / "s1" / "s1.compaction.json", beside)
    assert len(discover([tmp_path])) == 1
    (trace,), report = ingest_file(path)
    assert [(c.start, len(c.steps)) for c in trace.contexts] == [("start", 2), ("compaction", 1)]
    *_, last = trace.states()
    assert [m.content for m in last.messages] == ["So far: three beds.", "Three.", "And the trees?"]
    assert (report.compactions, report.records) == (1, {"user": 3, "assistant": 3})


def test_a_subagent_is_a_side_trace_of_the_session_of_its_folder(tmp_path: Path) -> None:
    main = write(tmp_path / "s1" / "s1.messages.json", session(*MESSAGES))
    side = write(
        tmp_path / "s1" / "agent-7.messages.json", session(*MESSAGES, agent="subagent", sessionId="s1__7")
    )
    (one,), _ = ingest_file(main)
    (two,), report = ingest_file(side)
    assert (two.kind, two.parent_trace_id, report.steps_side) == ("side", one.trace_id, 2)
    assert two.trace_id != one.trace_id


def test_what_is_not_understood_is_named_and_what_follows_is_lost(tmp_path: Path) -> None:
    messages = [
        *MESSAGES,
        user(text("seen only"), metadata={"displayOnly": True}),
        user(text("Look."), {"type": "hologram"}),
        says(text("I see.")),
        says({"type": "thinking", "thinking": "hm"}),
    ]
    write(tmp_path / "s1.json", "no manifest")
    path = write(tmp_path / "s1.messages.json", session(*messages, version=2))
    (tmp_path / "s1.compaction.json").write_text("{")
    (trace,), report = ingest_file(path)
    assert [state.fidelity.context for state in trace.states()] == ["approximate", "approximate", "lost"]
    assert dict(report.unknown) == {"block hologram": 1}
    assert dict(report.flags) == {
        "session of a later version of the contract": 1,
        "file beside the session that cannot be read": 1,
        "message that was displayed and not sent": 1,
        "step without action": 1,
    }
    assert set(take_census([path]).found["cline", "no version"].unknown_kinds) == {"block hologram"}


@given(changed([session(*MESSAGES)]))
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_part_of_another_type_stops_nothing(tmp_path: Path, records: list[Any]) -> None:
    path = write(tmp_path / "s1.messages.json", records[0])
    ingest_file(path)
    detect(path)
    list(FORMAT.kinds(copy.deepcopy(records[0])))
