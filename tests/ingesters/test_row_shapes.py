"""Chat rows of other shapes: content blocks and DataClaw are read, all else is left out with its reason."""

import json
from pathlib import Path
from typing import Any

import pytest

from tracemill.harnesses.presentation import present_context
from tracemill.ingesters.swe_gym.ingest_rows import ingest_file
from tracemill.records.ingest_report import IngestReport
from tracemill.records.message import ErrorKind, ToolCall
from tracemill.records.trace import Trace

ASK = {"role": "user", "content": "mend it"}


def read(tmp_path: Path, *rows: Any) -> tuple[list[Trace], IngestReport]:
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return ingest_file(path)


def use(name: str, call: str, **arguments: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": call, "name": name, "input": arguments}


def result(call: str, content: Any, **fields: Any) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": call, "content": content, **fields}


def test_content_blocks_are_read_with_calls_results_and_ids(tmp_path: Path) -> None:
    row = {
        "system": [{"type": "text", "text": "Be good."}],
        "model": "claude-sonnet-4-5",
        "tools": [
            {"name": "Read", "description": "Reads.", "input_schema": {"type": "object", "properties": {}}}
        ],
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "mend it"}]},
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": "look", "signature": "s"},
                    {"type": "text", "text": "I look."},
                    use("Read", "toolu_1", file_path="a.py"),
                    use("Read", "toolu_2", file_path="b.py"),
                ],
            },
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "and hurry"},
                    result("toolu_1", [{"type": "text", "text": "x = 1"}]),
                    result("toolu_2", "File does not exist.", is_error=True),
                ],
            },
            {"role": "assistant", "content": [{"type": "text", "text": "done"}]},
        ],
    }
    (trace,), report = read(tmp_path, row)
    (context,) = trace.contexts
    assert [(m.role, m.content, m.tool_call_id) for m in context.messages] == [
        ("system", "Be good.", None),
        ("user", "mend it", None),
        ("assistant", "I look.", None),
        ("tool", "x = 1", "toolu_1"),
        ("tool", "File does not exist.", "toolu_2"),
        ("user", "and hurry", None),
        ("assistant", "done", None),
    ]
    assert context.messages[2].tool_calls == (
        ToolCall("toolu_1", "Read", '{"file_path":"a.py"}'),
        ToolCall("toolu_2", "Read", '{"file_path":"b.py"}'),
    )
    assert context.messages[2].reasoning == "look"
    assert [m.is_error for m in context.messages[3:5]] == [None, True]
    assert (trace.harness, [step.cut for step in context.steps]) == ("claude_code", [2, 6])
    assert (trace.contexts[0].fidelity.system, context.fidelity.tools) == ("recorded", "recorded")
    assert (report.tool_calls, report.tool_errors, report.skipped, report.flags) == (2, 1, {}, {})
    assert present_context(trace, context).kind == "system=recorded,tools=recorded"


def claw(**fields: Any) -> dict[str, Any]:
    messages = [
        {"role": "user", "content": "mend it", "timestamp": "2026-02-01T00:00:00Z"},
        {
            "role": "assistant",
            "content": "I look.",
            "thinking": "hm",
            "timestamp": "2026-02-01T00:00:01Z",
            "tool_uses": [
                {
                    "tool": "Read",
                    "input": {"file_path": "a.py"},
                    "output": {"text": "x = 1", "raw": {"n": 1}},
                    "status": "success",
                },
                {
                    "tool": "Bash",
                    "input": {"command": "ls"},
                    "output": {"text": "Exit code 1\nno"},
                    "status": "error",
                },
            ],
        },
        {"role": "assistant", "content": "done", "timestamp": "2026-02-01T00:00:02Z"},
    ]
    return {
        "session_id": "s1",
        "model": "claude-opus-4-6",
        "project": "shop",
        "start_time": "2026-02-01T00:00:00Z",
        "source": "claude",
        "messages": messages,
        "stats": {"tool_uses": 2},
        **fields,
    }


def test_dataclaw_rows_are_read_with_calls_and_results(tmp_path: Path) -> None:
    (trace,), report = read(tmp_path, claw())
    (context,) = trace.contexts
    assert [(m.role, m.content) for m in context.messages] == [
        ("user", "mend it"),
        ("assistant", "I look."),
        ("tool", "x = 1"),
        ("tool", "Exit code 1\nno"),
        ("assistant", "done"),
    ]
    calls = context.messages[1].tool_calls
    assert [(call.name, call.parsed()) for call in calls] == [
        ("Read", {"file_path": "a.py"}),
        ("Bash", {"command": "ls"}),
    ]
    assert [m.tool_call_id for m in context.messages[2:4]] == [call.id for call in calls]
    assert [m.error_kind for m in context.messages[2:4]] == [None, ErrorKind.EXIT_CODE]
    assert (context.messages[1].reasoning, trace.harness, trace.project) == ("hm", "claude_code", "shop")
    assert (context.steps[0].model, context.steps[0].family) == ("claude-opus-4-6", "anthropic")
    assert (trace.started_at, context.fidelity.context) == ("2026-02-01T00:00:00Z", "approximate")
    assert (report.tool_calls, report.tool_errors, report.skipped) == (2, 1, {})


def test_what_stands_behind_a_call_without_its_output_is_lost(tmp_path: Path) -> None:
    row = claw()
    del row["messages"][1]["tool_uses"][1]["output"]
    (trace,), report = read(tmp_path, row)
    assert (trace.contexts[0].fidelity.context, trace.contexts[0].lost_from) == ("lost", 1)
    assert report.flags == {"row with a call without its result": 1}


def says(*content: Any, role: str = "assistant", **fields: Any) -> list[dict[str, Any]]:
    return [ASK, {"role": role, "content": list(content), **fields}, {"role": "assistant", "content": "ok"}]


CLAW_USE = {"tool": "Read", "input": {"file_path": "a.py"}}


@pytest.mark.parametrize(
    ("messages", "reason"),
    [
        (
            says({"type": "tool-call", "toolCallId": "1", "toolName": "r", "args": {}}),
            "content part not understood: tool-call",
        ),
        (
            says({"type": "tool-result", "toolCallId": "1", "result": "x"}, role="tool"),
            "content part not understood: tool-result",
        ),
        (says({"type": "a b/c", "data": "x"}), "content part not understood: a name that is no plain word"),
        (
            says({"type": "server_tool_use", "id": "1", "name": "w", "input": {}}),
            "content part not understood: server_tool_use",
        ),
        (
            [ASK, {"role": "assistant", "parts": [{"type": "text", "text": "hi"}]}],
            "message key not understood: parts",
        ),
        (
            [ASK, {"role": "assistant", "content": "", "toolInvocations": [{"state": "result"}]}],
            "message key not understood: toolInvocations",
        ),
        ([ASK, {"role": "model", "parts": [{"text": "hi"}]}], "message key not understood: parts"),
        (
            [
                ASK,
                {"type": "function_call", "call_id": "1", "name": "r", "arguments": "{}"},
                {"role": "assistant", "content": "ok"},
            ],
            "item not understood: function_call",
        ),
        (
            [
                ASK,
                {"role": "assistant", "content": "", "tool_calls": [{"id": "1", "custom": {"input": "x"}}]},
            ],
            "tool call not understood",
        ),
        (says(result("1", "x")), "tool_result in a message of the agent"),
        (says(use("r", "1"), role="user"), "tool_use in a message that is not the agent's"),
        (says(use("", "1")), "tool call without a name"),
        (says(result("1", [use("r", "2")]), role="user"), "content block inside of a tool_result"),
        (
            [ASK, {"role": "assistant", "content": "", "tool_uses": [{"tool": "Read", "input": "a.py"}]}],
            "tool input that is no object",
        ),
        (
            [ASK, {"role": "assistant", "content": "", "tool_uses": [CLAW_USE | {"result": "x"}]}],
            "key of tool_uses not understood: result",
        ),
        (
            [ASK, {"role": "assistant", "content": "", "tool_uses": [CLAW_USE | {"output": {"blob": "x"}}]}],
            "key of a tool's output not understood: blob",
        ),
    ],
)
def test_a_row_that_holds_another_shape_is_left_out_whole(
    tmp_path: Path, messages: list[Any], reason: str
) -> None:
    plain = {"messages": [ASK, {"role": "assistant", "content": "hi"}]}
    traces, report = read(tmp_path, {"messages": messages}, plain)
    assert len(traces) == 1
    assert report.skipped == {reason: 1}


def test_what_says_nothing_is_no_reason_and_no_step(tmp_path: Path) -> None:
    empty = {
        "role": "assistant",
        "content": None,
        "tool_calls": [],
        "novel": None,
        "loss": 1,
        "masked": True,
        "parts": [],
    }
    (trace,), report = read(tmp_path, {"messages": [ASK, empty, {"role": "assistant", "content": "hi"}]})
    assert [state.student_action.text for state in trace.states()] == ["hi"]
    assert (report.flags, report.skipped) == ({"step without action": 1}, {})
    traces, report = read(tmp_path, {"messages": [ASK, empty]})
    assert (traces, report.skipped) == ([], {"row without a step": 1})


def test_what_stands_behind_a_message_that_was_left_out_is_lost(tmp_path: Path) -> None:
    said = [{"role": "assistant", "content": f"step {n}"} for n in range(3)]
    critic = {"role": "critic", "content": "no"}
    (trace,), report = read(tmp_path, {"messages": [ASK, said[0], critic, said[1], said[2]]})
    assert [state.fidelity.context for state in trace.states()] == ["complete", "lost", "lost"]
    assert report.skipped == {"message of no known role": 1}
