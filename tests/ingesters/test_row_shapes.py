"""Chat rows of other shapes: content blocks and DataClaw are read, all else is left out with its reason."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from file_readers import file_reader

from tracemill.harnesses.presentation import present_context
from tracemill.ingesters.reading.parquet_rows import TableSlice
from tracemill.ingesters.row_preview import preview_rows
from tracemill.ingesters.swe_gym.ingest_rows import iter_traces
from tracemill.records.ingest_report import IngestReport
from tracemill.records.message import ErrorKind, ToolCall
from tracemill.records.trace import Trace

ingest_file = file_reader("swe_gym", iter_traces)

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


def test_tools_that_a_search_found_are_named_in_its_result(tmp_path: Path) -> None:
    found = [{"type": "tool_reference", "tool_name": name} for name in ("Read", "Grep")]
    row = {
        "messages": [
            ASK,
            {"role": "assistant", "content": [use("ToolSearch", "toolu_1", query="select:Read,Grep")]},
            {"role": "user", "content": [result("toolu_1", found)]},
            {"role": "assistant", "content": [use("Read", "toolu_2", file_path="a.py")]},
        ]
    }
    (trace,), report = read(tmp_path, row)
    (context,) = trace.contexts
    assert [m.content for m in context.messages if m.role == "tool"] == [
        "[tool loaded: Read]\n[tool loaded: Grep]"
    ]
    assert (report.states, dict(report.skipped), dict(report.unknown)) == (2, {}, {})
    found[1] = {"type": "tool_reference"}
    assert read(tmp_path, row)[1].skipped == {"content part not understood: tool_reference": 1}


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
    assert report.flags == {"row that lacks a result": 1}


def says(*content: Any, role: str = "assistant", **fields: Any) -> list[dict[str, Any]]:
    return [ASK, {"role": role, "content": list(content), **fields}, {"role": "assistant", "content": "ok"}]


def sdk_call(call: str, name: str = "read", **args: Any) -> dict[str, Any]:
    return {"type": "tool-call", "toolCallId": call, "toolName": name, "args": args}


def sdk_result(call: str, **fields: Any) -> dict[str, Any]:
    return {"type": "tool-result", "toolCallId": call, "toolName": "read", **fields}


def ui_tool(call: str, state: str = "output-available", **fields: Any) -> dict[str, Any]:
    return {"type": "tool-read", "toolCallId": call, "state": state, "input": {}, "output": "x", **fields}


def ui(*parts: dict[str, Any], **fields: Any) -> list[dict[str, Any]]:
    return [ASK, {"id": "m2", "role": "assistant", "parts": list(parts), **fields}]


def item_call(call: str, name: str = "read", **fields: Any) -> dict[str, Any]:
    return {"type": "function_call", "id": "fc", "call_id": call, "name": name, "arguments": "{}", **fields}


def item_output(call: str, output: Any) -> dict[str, Any]:
    return {"type": "function_call_output", "call_id": call, "output": output}


def told(trace: Trace) -> list[tuple[str, str, str]]:
    """Role, text, and the calls or the call that is answered."""
    return [
        (m.role, m.content, m.tool_call_id or " ".join(f"{c.id}:{c.name}{c.arguments}" for c in m.tool_calls))
        for m in trace.contexts[0].messages
    ]


def test_items_of_the_responses_api_are_read_answer_by_answer(tmp_path: Path) -> None:
    row = {
        "model": "gpt-5-codex",
        "tools": [{"type": "function", "name": "read", "parameters": {"type": "object", "properties": {}}}],
        "messages": [
            {"type": "message", "role": "developer", "content": [{"type": "input_text", "text": "Be good."}]},
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "mend it"}]},
            {
                "type": "reasoning",
                "id": "rs_1",
                "summary": [{"type": "summary_text", "text": "look"}],
                "encrypted_content": "gAAA",
            },
            {
                "type": "message",
                "id": "msg_1",
                "role": "assistant",
                "status": "completed",
                "content": [{"type": "output_text", "text": "I look.", "annotations": []}],
            },
            item_call("call_1", arguments='{"path": "a.py"}', status="completed"),
            {"type": "reasoning", "summary": [{"type": "summary_text", "text": "both"}]},
            item_call("call_2", arguments='{"path":"b.py"}'),
            item_output("call_2", [{"type": "input_text", "text": "y = 2"}]),
            item_output("call_1", "x = 1"),
            item_call("call_3"),
            item_output("call_3", "z"),
            {"role": "assistant", "content": "done", "phase": "final_answer"},
        ],
    }
    (trace,), report = read(tmp_path, row)
    assert told(trace) == [
        ("system", "Be good.", ""),
        ("user", "mend it", ""),
        ("assistant", "I look.", 'call_1:read{"path": "a.py"} call_2:read{"path":"b.py"}'),
        ("tool", "y = 2", "call_2"),
        ("tool", "x = 1", "call_1"),
        ("assistant", "", "call_3:read{}"),
        ("tool", "z", "call_3"),
        ("assistant", "done", ""),
    ]
    (context,) = trace.contexts
    assert context.messages[2].reasoning == "look\n\nboth"
    assert [step.cut for step in context.steps] == [2, 5, 7]
    assert (context.fidelity.context, context.fidelity.tools, report.skipped) == ("complete", "recorded", {})
    shown = present_context(trace, context)
    assert [m.role for m in shown.messages] == [m.role for m in context.messages]


def test_messages_of_the_ai_sdk_are_read_with_calls_results_and_images(tmp_path: Path) -> None:
    messages = [
        {"role": "system", "content": "Be good."},
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "mend it"},
                {"type": "image", "image": "aGk=", "mediaType": "image/png"},
            ],
        },
        {
            "role": "assistant",
            "content": [
                {"type": "reasoning", "text": "look"},
                {"type": "text", "text": "I look."},
                sdk_call("c1") | {"input": {"path": "a.py"}, "args": None},
                sdk_call("c2")
                | {"input": {"path": "b.py"}, "args": None, "providerOptions": {"x": {"y": 1}}},
            ],
        },
        {
            "role": "tool",
            "content": [
                sdk_result("c2", output={"type": "error-text", "value": "no such file"}),
                sdk_result("c1", output={"type": "json", "value": {"z": 1, "a": "é"}}),
            ],
        },
        {"role": "assistant", "content": [sdk_call("c3")]},
        {
            "role": "tool",
            "content": [
                sdk_result("c3", output={"type": "content", "value": [{"type": "text", "text": "t"}]})
            ],
        },
        {"role": "assistant", "content": "done"},
    ]
    (trace,), report = read(tmp_path, {"messages": messages})
    lines = told(trace)
    assert lines[1][1].startswith("mend it\n[image: image/png")
    assert [lines[0], *lines[2:]] == [
        ("system", "Be good.", ""),
        ("assistant", "I look.", 'c1:read{"path":"a.py"} c2:read{"path":"b.py"}'),
        ("tool", "no such file", "c2"),
        ("tool", '{"z":1,"a":"é"}', "c1"),
        ("assistant", "", "c3:read{}"),
        ("tool", "t", "c3"),
        ("assistant", "done", ""),
    ]
    (context,) = trace.contexts
    assert [m.is_error for m in context.messages[3:5]] == [True, None]
    assert (context.messages[2].reasoning, context.fidelity.context, report.skipped) == (
        "look",
        "complete",
        {},
    )


def test_a_table_of_items_and_one_of_parts_are_read_as_lines_are(tmp_path: Path) -> None:
    """Every item of a table has every key, most of them null."""
    items = [ASK, item_call("1"), item_output("1", "x"), {"role": "assistant", "content": "ok"}]
    step = {"type": "step-start"}
    used = ui_tool("1", input={"path": "a.py"})
    parts = [{"id": "m1", **ASK}, *ui(used, step, {"type": "text", "text": "ok"})[1:]]
    output = {"type": "text", "value": "x"}
    core = [
        says({"type": "text", "text": "mend it"}, role="user")[1],
        says(sdk_call("1", path="a.py"))[1],
        says(sdk_result("1", output=output), role="tool")[1],
        says({"type": "text", "text": "ok"})[1],
    ]
    for number, messages in enumerate((items, parts, core)):
        rows = [{"instance_id": f"o__r-{number}", "messages": messages}]
        pq.write_table(pa.Table.from_pylist(rows), tmp_path / "rows.parquet")
        (from_table,), report = ingest_file(tmp_path / "rows.parquet")
        (from_lines,), _ = read(tmp_path, *rows)
        assert report.skipped == {}
        assert told(from_table) == told(from_lines)
        assert [role for role, *_ in told(from_table)] == ["user", "assistant", "tool", "assistant"]
        glanced = list(preview_rows(TableSlice(tmp_path / "rows.parquet", 0, 1, 1), "swe_gym"))
        assert [each.steps for each in glanced] == [2 if messages is core else None]


def test_results_of_an_early_ai_sdk_are_approximate(tmp_path: Path) -> None:
    """How `result` was written into the prompt is not recorded."""
    early = [ASK, *says(sdk_call("1", path="a.py"))[1:2]]
    early += [{"role": "tool", "content": [sdk_result("1", result={"n": 1}, isError=True)]}]
    (trace,), report = read(tmp_path, {"messages": [*early, {"role": "assistant", "content": "ok"}]})
    assert told(trace)[2] == ("tool", '{"n":1}', "1")
    assert trace.contexts[0].messages[2].is_error is True
    assert (trace.contexts[0].fidelity.context, report.tool_errors) == ("approximate", 1)


def test_messages_of_a_user_interface_are_read_step_by_step_as_approximate(tmp_path: Path) -> None:
    v4 = {
        "state": "result",
        "step": 1,
        "toolCallId": "c3",
        "toolName": "grep",
        "args": {"q": "x"},
        "result": "none",
    }
    parts = [
        {"type": "step-start"},
        {"type": "reasoning", "text": "look", "state": "done"},
        {"type": "text", "text": "I look.", "state": "done"},
        ui_tool("c1", input={"path": "a.py"}, output={"text": "x"}),
        {
            "type": "dynamic-tool",
            "toolName": "mcp_find",
            "toolCallId": "c2",
            "state": "output-error",
            "input": {},
            "errorText": "down",
        },
        {"type": "step-start"},
        {"type": "tool-invocation", "toolInvocation": v4},
        {"type": "step-start"},
        {"type": "text", "text": "done"},
    ]
    user = {"id": "m1", "role": "user", "parts": [{"type": "text", "text": "mend it"}], "createdAt": "2026"}
    messages = [user, {"id": "m2", "role": "assistant", "content": "I look.done", "parts": parts}]
    (trace,), report = read(tmp_path, {"messages": messages})
    assert told(trace) == [
        ("user", "mend it", ""),
        ("assistant", "I look.", 'c1:read{"path":"a.py"} c2:mcp_find{}'),
        ("tool", '{"text":"x"}', "c1"),
        ("tool", "down", "c2"),
        ("assistant", "", 'c3:grep{"q":"x"}'),
        ("tool", "none", "c3"),
        ("assistant", "done", ""),
    ]
    assert trace.step_count == 3
    assert (trace.contexts[0].fidelity.context, report.tool_errors, report.skipped) == ("approximate", 1, {})


@pytest.mark.parametrize(
    "messages",
    [
        [*ui(ui_tool("1", state="input-available")), *ui({"type": "text", "text": "ok"})],
        [ASK, item_call("1"), ASK, {"role": "assistant", "content": "ok"}],
        [*says(sdk_call("1"))[:2], ASK, {"role": "assistant", "content": "ok"}],
    ],
)
def test_what_stands_behind_a_call_without_its_result_is_lost(tmp_path: Path, messages: list[Any]) -> None:
    (trace,), report = read(tmp_path, {"messages": messages})
    assert [state.fidelity.context for state in trace.states()][1] == "lost"
    assert report.flags == {"row that lacks a result": 1}


CLAW_USE = {"tool": "Read", "input": {"file_path": "a.py"}}


@pytest.mark.parametrize(
    ("messages", "reason"),
    [
        (
            says({"type": "tool-call", "toolName": "r", "args": {}}),
            "tool call without toolCallId or arguments",
        ),
        (says(sdk_call("1") | {"args": "a.py"}), "tool call without toolCallId or arguments"),
        (says(sdk_call("1", name="")), "tool call not understood: tool_call.name"),
        (says(sdk_call("1"), {"type": "text", "text": "so"}), "text behind a call of the same answer"),
        (says(sdk_call("1"), {"type": "file", "data": "x"}), "content part not understood: file"),
        (says(sdk_call("1") | {"novel": "x"}), "key of tool-call not understood: novel"),
        (says(sdk_call("1"), role="user"), "content part not understood: tool-call"),
        (says(sdk_result("1", result="x")), "tool-result in a message of the agent"),
        (says(sdk_result("1"), role="tool"), "tool-result without a result"),
        (says({"type": "tool-result", "result": "x"}, role="tool"), "tool-result without toolCallId"),
        (
            says(sdk_result("1", output={"type": "execution-denied"}), role="tool"),
            "output of a tool not understood: execution-denied",
        ),
        (
            says(sdk_result("1", result="x"), {"type": "tool-approval-response"}, role="tool"),
            "content part not understood: tool-approval-response",
        ),
        (ui({"type": "source-url", "url": "x"}), "content part not understood: source-url"),
        (ui({"type": "data-weather", "data": {}}), "content part not understood: data-weather"),
        (ui(ui_tool("1", state="input-streaming")), "state of a tool not understood: input-streaming"),
        (ui(ui_tool("1", preliminary="x")), "key of a tool not understood: preliminary"),
        (ui(ui_tool("1"), {"type": "text", "text": "so"}), "text behind a call of the same answer"),
        (ui({"type": "text", "text": "so"}, content="other"), "content that differs from the parts"),
        (
            ui(ui_tool("1"), experimental_attachments=["x"]),
            "message key not understood: experimental_attachments",
        ),
        (
            says({"type": "a b/c", "data": "x"}),
            "content part not understood: a name that is not a plain word",
        ),
        (
            says({"type": "server_tool_use", "id": "1", "name": "w", "input": {}}),
            "content part not understood: server_tool_use",
        ),
        ([ASK, {"role": "assistant", "parts": [1]}], "message key not understood: parts"),
        (
            [ASK, {"role": "assistant", "content": "", "toolInvocations": [{"state": "result"}]}],
            "message key not understood: toolInvocations",
        ),
        ([ASK, {"role": "model", "parts": [{"text": "hi"}]}], "message key not understood: parts"),
        (
            [ASK, item_call("1"), {"role": "assistant", "content": "ok"}],
            "text behind a call of the same answer",
        ),
        ([ASK, item_call("1") | {"arguments": {}}], "function_call without call_id or arguments"),
        ([ASK, item_call("")], "function_call without call_id or arguments"),
        ([ASK, item_call("1", name="")], "tool call not understood: tool_call.name"),
        ([ASK, item_call("1") | {"novel": "x"}], "key of function_call not understood: novel"),
        (
            [ASK, item_call("1"), {"type": "function_call_output", "output": "x"}],
            "function_call_output without call_id or output",
        ),
        (
            [ASK, item_call("1"), {"type": "web_search_call", "id": "w", "status": "completed"}],
            "item not understood: web_search_call",
        ),
        ([ASK, {"type": "a b/c"}], "item not understood: a name that is not a plain word"),
        ([ASK, {"type": "reasoning", "summary": ["x"]}, item_call("1")], "part of reasoning not understood"),
        (
            [ASK, item_call("1"), item_output("1", "x"), *says({"type": "refusal", "refusal": "no"})[1:]],
            "content part not understood: refusal",
        ),
        (
            [
                ASK,
                {"role": "assistant", "content": "", "tool_calls": [{"id": "1", "custom": {"input": "x"}}]},
            ],
            "tool call not understood: tool_call.name",
        ),
        (says(result("1", "x")), "tool_result in a message of the agent"),
        (says(use("r", "1"), role="user"), "tool_use in a message that is not the agent's"),
        (says(use("", "1")), "tool call without a name"),
        (says(result("1", [use("r", "2")]), role="user"), "content block inside of a tool_result"),
        (says(use("r", "1"), {"type": "hologram", "data": "x"}), "content part not understood: hologram"),
        (
            says(result("1", "x"), {"type": "hologram", "data": "x"}, role="user"),
            "content part not understood: hologram",
        ),
        (
            says(result("1", [{"type": "hologram", "data": "x"}]), role="user"),
            "content part not understood: hologram",
        ),
        (
            [ASK, {"role": "assistant", "content": "", "tool_uses": [{"tool": "Read", "input": "a.py"}]}],
            "tool input that is not an object",
        ),
        (
            [ASK, {"role": "assistant", "content": "", "tool_uses": [CLAW_USE | {"result": "x"}]}],
            "key of tool_uses not understood: result",
        ),
        (
            [ASK, {"role": "assistant", "content": "", "tool_uses": [CLAW_USE | {"output": {"blob": "x"}}]}],
            "key of a tool's output not understood: blob",
        ),
        (
            [
                ASK,
                {
                    "role": "assistant",
                    "content": "",
                    "tool_uses": [CLAW_USE | {"output": {"content": [{"type": "hologram", "data": "x"}]}}],
                },
            ],
            "content part not understood: hologram",
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


CALL = {"id": "1", "type": "function", "function": {"name": "r", "arguments": "{}"}}
OBSERVED = {"role": "observation", "content": "x = 1", "tool_call_id": "1"}


NO_ARGUMENTS = "tool call not understood: tool_call.arguments"
NOT_OF_THE_AGENT = "tool_calls in a message that is not the agent's"
PART = "content part not understood"
DONE = {"role": "assistant", "content": "done"}


def acts(call: Any) -> list[Any]:
    """A conversation with one call."""
    turn = {"role": "assistant", "content": "", "tool_calls": call}
    return [
        ASK,
        turn,
        {"role": "tool", "tool_call_id": "1", "content": "x"},
        {"role": "assistant", "content": "done"},
    ]


@pytest.mark.parametrize(
    ("messages", "reason", "unknown"),
    [
        (
            acts([{"id": "1", "name": "r", "input": {"a": 1}}]),
            NO_ARGUMENTS,
            "",
        ),
        (acts([{"id": "1", "function": {"name": "r"}}]), NO_ARGUMENTS, ""),
        (
            acts([CALL | {"function": {"name": "r", "arguments": None}}]),
            NO_ARGUMENTS,
            "",
        ),
        (
            acts([CALL | {"function": {"name": "r", "arguments": [1]}}]),
            NO_ARGUMENTS,
            "",
        ),
        (acts(CALL), "tool call not understood: tool_calls", ""),
        (acts([CALL, "ls"]), "tool call not understood: tool_call", ""),
        (
            [*acts([CALL])[:2], OBSERVED, DONE],
            "role not understood: observation",
            "message observation",
        ),
        ([ASK, "IMPORTANT", DONE], "message that is not an object", ""),
        (
            [ASK | {"tool_calls": [CALL]}, DONE],
            NOT_OF_THE_AGENT,
            "",
        ),
        ([{"role": "user", "content": 17}, DONE], "content that is a number", ""),
        (
            [{"role": "user", "content": [17]}, DONE],
            f"{PART}: int",
            "part int",
        ),
        (
            [{"role": "user", "content": {"stdout": "x"}}, DONE],
            f"{PART}: untyped",
            "part untyped",
        ),
        (says({"type": "text", "words": "x"}), f"{PART}: text.text", "part text.text"),
        (says(result("1", 17), role="user"), "content that is a number", ""),
        (says(use("r", "1") | {"input": None}), "tool input that is not an object", ""),
        (says({"type": "hologram", "data": "x"}), f"{PART}: hologram", "part hologram"),
        (
            [ASK, {"type": "web_search_call"}],
            "item not understood: web_search_call",
            "item web_search_call",
        ),
    ],
)
def test_a_row_that_is_not_understood_whole_is_left_out_and_named(
    tmp_path: Path, messages: Any, reason: str, unknown: str
) -> None:
    traces, report = read(tmp_path, {"messages": messages}, {"messages": acts([CALL])})
    assert [trace.step_count for trace in traces] == [2]
    assert (report.skipped, report.unknown) == ({reason: 1}, {unknown: 1} if unknown else {})


@pytest.mark.parametrize(
    ("field", "reason"),
    [
        ({"tools": "no json"}, "tools that are not a list"),
        ({"tools": {"name": "r"}}, "tools that are not a list"),
        ({"tools": [{"name": "r"}, {"description": "nameless"}]}, "tool without a name"),
        ({"system": [{"type": "hologram"}]}, "content part not understood: hologram"),
        ({"system": 17}, "content part not understood: int"),
    ],
)
def test_a_row_whose_tools_or_system_prompt_are_not_understood_is_left_out(
    tmp_path: Path, field: dict[str, Any], reason: str
) -> None:
    traces, report = read(tmp_path, {"messages": acts([CALL])} | field)
    assert (traces, report.skipped) == ([], {reason: 1})
