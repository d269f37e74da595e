"""Session traces of the Hub: what other programs write, and parts of other types. Our own exports are in
tests/flows/test_export.py."""

import json
from pathlib import Path
from typing import Any

import pytest
from changed_parts import changed
from file_readers import file_reader
from hypothesis import HealthCheck, given, settings

from tracemill.ingesters.census import take_census
from tracemill.ingesters.common.openai_messages import openai_image_text
from tracemill.ingesters.detect_format import detect
from tracemill.ingesters.sts.format import FORMAT
from tracemill.ingesters.sts.ingest_session import iter_traces
from tracemill.records.message import ErrorKind

ingest_file = file_reader("sts", iter_traces)
HEAD = {"type": "session", "harness": "my-agent", "id": "b1", "name": "Beds", "passed": True}


def message(role: str, content: str, **fields: Any) -> dict[str, Any]:
    return {"type": "message", "message": {"role": role, "content": content} | fields}


def call(call_id: str, name: str, arguments: str) -> dict[str, Any]:
    return {"id": call_id, "function": {"name": name, "arguments": arguments}}


SESSION = [
    HEAD,
    message("system", "You water."),
    message("user", "Count the beds.", timestamp=1_772_359_200_000),
    message(
        "assistant",
        "",
        toolCalls=[call("a", "bash", '{"command": "ls"}'), call("b", "bash", "{broken")],
        reasoningContent="Where?",
        model="qwen3-coder",
        timestamp=1_772_359_201_000,
    ),
    message("tool", "Exit code 2\nno such bed", toolCallId="b"),
    message("tool", "beds.py", toolCallId="a"),
    message("assistant", "Three."),
]


def write(path: Path, records: list[Any]) -> Path:
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def test_a_session_of_another_program(tmp_path: Path) -> None:
    path = write(tmp_path / "b1.jsonl", SESSION)
    assert detect(path) == "sts"
    (trace,), report = ingest_file(path)
    assert (trace.source, trace.harness, trace.started_at) == ("sts", "my-agent", "2026-03-01T10:00:01.000Z")
    first, second = trace.states()
    assert [m.role for m in first.messages] == ["system", "user"]
    assert [c.arguments for c in first.student_action.tool_calls] == ['{"command": "ls"}', "{broken"]
    assert (first.step.model, second.step.model) == ("qwen3-coder", None)
    assert [(m.content, m.error_kind) for m in first.results] == [
        ("Exit code 2\nno such bed", ErrorKind.EXIT_CODE),
        ("beds.py", None),
    ]
    fidelity = first.fidelity
    assert (fidelity.system, fidelity.tools, fidelity.context) == ("recorded", "absent", "approximate")
    assert (report.states, report.tool_calls, report.tool_errors) == (2, 2, 1)
    assert (dict(report.skipped), dict(report.flags), dict(report.unknown)) == ({}, {}, {})


def test_what_follows_a_broken_line_is_lost(tmp_path: Path) -> None:
    path = write(tmp_path / "b1.jsonl", SESSION)
    lines = path.read_text().splitlines()
    path.write_text("\n".join([*lines[:5], lines[5][:30], *lines[6:]]))
    (trace,), report = ingest_file(path)
    assert [state.fidelity.context for state in trace.states()] == ["approximate", "lost"]
    assert report.skipped == {"not json": 1}


def node(own: str, parent: str | None, role: str, content: str, **fields: Any) -> dict[str, Any]:
    return message(role, content, id=own, parent=parent, convId="t1", type="text", children=[], **fields)


TREE = [
    HEAD | {"harness": "llama.app", "id": "t1", "currNode": "a3"},
    node("root", None, "system", ""),
    node("u1", "root", "user", "Count the beds."),
    node("a1", "u1", "assistant", "", toolCalls=[call("c1", "bash", '{"command": "ls"}')]),
    node("r1", "a1", "tool", "Exit code 2\nno such bed", toolCallId="c1"),
    node("a2", "r1", "assistant", "None."),
    node("a3", "r1", "assistant", "", toolCalls=[call("c2", "bash", '{"command": "ls -a"}')]),
    node("r3", "a3", "tool", "beds.py", toolCallId="c2"),
    node("a4", "r3", "assistant", "One."),
]


def test_a_tree_of_messages_is_a_context_for_each_branch(tmp_path: Path) -> None:
    (trace,), report = ingest_file(write(tmp_path / "t1.jsonl", TREE))
    assert [(c.start, len(c.steps), [m.content for m in c.messages]) for c in trace.contexts] == [
        ("start", 2, ["Count the beds.", "", "Exit code 2\nno such bed", "None."]),
        ("rewind", 2, ["Count the beds.", "", "Exit code 2\nno such bed", "", "beds.py", "One."]),
    ]
    states = list(trace.states())
    assert [[m.role for m in s.messages] for s in states] == [
        ["user"],
        ["user", "assistant", "tool"],
        ["user", "assistant", "tool"],
        ["user", "assistant", "tool", "assistant", "tool"],
    ]
    assert {(s.fidelity.system, s.fidelity.context) for s in states} == {("absent", "approximate")}
    assert (report.states, report.tool_errors, report.branches_real) == (4, 1, 1)
    assert (dict(report.skipped), dict(report.flags), dict(report.unknown)) == ({}, {}, {})


def test_a_branch_without_its_parent_and_what_is_attached_are_lost(tmp_path: Path) -> None:
    records = [each for each in TREE if each["type"] == "session" or each["message"]["id"] != "r1"]
    (trace,), report = ingest_file(write(tmp_path / "t1.jsonl", records))
    assert [(c.start, len(c.steps), c.fidelity.context) for c in trace.contexts] == [
        ("start", 1, "approximate"),
        ("rewind", 1, "lost"),
        ("rewind", 2, "lost"),
    ]
    assert dict(report.flags) == {"message whose parent is not in the file": 2}
    attached = [*TREE[:2], node("u1", "root", "user", "Count.", extra=[{"type": "TEXT", "name": "beds.py"}])]
    (trace,), report = ingest_file(write(tmp_path / "t2.jsonl", [*attached, *TREE[3:4]]))
    assert (trace.contexts[0].fidelity.context, trace.contexts[0].lost_from) == ("lost", 0)
    assert dict(report.unknown) == {"message extra.TEXT": 1}


def test_attachments_whose_content_is_in_the_file_stand_behind_the_text(tmp_path: Path) -> None:
    image = "data:image/png;base64,AAAA"
    attached = [
        {
            "type": "PDF",
            "name": "map.pdf",
            "content": "",
            "processedAsImages": True,
            "images": [image, image],
        },
        {"type": "MCP_RESOURCE", "name": "log", "content": "wet", "serverName": "shed", "uri": "shed://log"},
        {"type": "PDF", "name": "plan.pdf", "content": "Two rows.", "base64Data": "AAAA"},
        {"type": "context", "name": "old.txt", "content": "dry"},
        {"type": "TEXT", "name": "beds.py", "content": "BEDS = 3\n"},
        {"type": "IMAGE", "name": "bed.png", "base64Url": image, "size": 3},
    ]
    records = [*TREE[:2], node("u1", "root", "user", "Count.", extra=attached), *TREE[3:]]
    (trace,), report = ingest_file(write(tmp_path / "t1.jsonl", records))
    shown = openai_image_text(image)
    assert [c.messages[0].content for c in trace.contexts] == 2 * [
        f"Count.\n{shown}\n\n\n--- File: beds.py ---\nBEDS = 3\n"
        f"\n\n\n--- File: old.txt ---\ndry\n{shown}\n{shown}"
        "\n\n\n--- PDF File: plan.pdf ---\nTwo rows.\n\n\n--- MCP Resource: log (shed) ---\nwet"
    ]
    assert {state.fidelity.context for state in trace.states()} == {"approximate"}
    assert (report.states, dict(report.unknown)) == (4, {})


@pytest.mark.parametrize(
    ("place", "extra", "name"),
    [
        (
            2,
            [{"type": "TEXT", "name": "a", "content": "b"}, {"type": "AUDIO", "base64Data": "A"}],
            "extra.AUDIO",
        ),
        (
            2,
            [{"type": "PDF", "name": "a", "content": "", "processedAsImages": True, "images": [""]}],
            "extra.PDF",
        ),
        (2, [{"type": "IMAGE", "name": "a"}], "extra.IMAGE"),
        (2, {"type": "TEXT"}, "extra"),
        (4, [{"type": "TEXT", "name": "a", "content": "b"}], "extra"),
    ],
)
def test_an_attachment_without_its_content_loses_what_follows(
    tmp_path: Path, place: int, extra: Any, name: str
) -> None:
    records = [dict(each) for each in TREE[:6]]
    records[place] = {"type": "message", "message": records[place]["message"] | {"extra": extra}}
    (trace,), report = ingest_file(write(tmp_path / "t1.jsonl", records))
    assert ([s.fidelity.context for s in trace.states()][-1], dict(report.unknown)) == (
        "lost",
        {f"message {name}": 1},
    )


def test_what_is_not_understood_is_named_and_what_follows_is_lost(tmp_path: Path) -> None:
    records = [
        message("user", "too early"),
        *SESSION,
        message("oracle", "I see."),
        message("user", "And?"),
        message("assistant", "Four."),
        message("assistant", " "),
        HEAD | {"id": "b2"},
        message("user", "Nobody answers."),
        {"type": "hologram"},
    ]
    path = write(tmp_path / "b1.jsonl", records)
    (trace,), report = ingest_file(path)
    assert [state.fidelity.context for state in trace.states()] == ["approximate", "approximate", "lost"]
    assert dict(report.unknown) == {"message role": 1, "record hologram": 1}
    assert dict(report.skipped) == {"message before the header": 1, "session without a step": 1}
    assert dict(report.flags) == {"step without action": 1}
    census = take_census([tmp_path]).found["sts", "no version"]
    assert set(census.unknown_kinds) == {"message oracle", "hologram"}


@given(changed(SESSION))
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_part_of_another_type_stops_nothing(tmp_path: Path, records: list[Any]) -> None:
    path = write(tmp_path / "b1.jsonl", records)
    traces, _ = ingest_file(path)
    for record in records:
        FORMAT.detect(record)
        list(FORMAT.kinds(record))
    for state in (state for trace in traces for state in trace.states()):
        called = [c.id for m in state.messages for c in m.tool_calls]
        assert len(called) == len(set(called))
