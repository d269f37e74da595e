"""OpenHands completion logs: alone, and with the session whose prompts they are."""

import json
from pathlib import Path
from typing import Any

import pytest

from tracemill.ingesters.discover import discover
from tracemill.ingesters.ingester_classes import OpenHandsIngester
from tracemill.ingesters.openhands.ingest_files import ingest_file
from tracemill.records.ingest_report import IngestReport
from tracemill.records.trace import Trace

TOOL = {
    "type": "function",
    "function": {"name": "terminal", "description": "runs", "parameters": {"type": "object"}},
}


def _write(path: Path, value: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(value if isinstance(value, str) else json.dumps(value))
    return path


def _call(call_id: str, command: str) -> dict[str, Any]:
    function = {"name": "terminal", "arguments": json.dumps({"command": command})}
    return {"id": call_id, "type": "function", "function": function}


def _log(
    response: str, prompt: list[dict[str, Any]], answer: dict[str, Any], **fields: Any
) -> dict[str, Any]:
    """A log as V0 and V1 write it."""
    return {
        "messages": prompt,
        "response": {
            "id": response,
            "model": "qwen3-coder",
            "choices": [{"message": {"role": "assistant", **answer}}],
            "usage": {"prompt_tokens": 10 * len(prompt), "completion_tokens": 1},
        },
        "kwargs": {"tools": [TOOL]},
        "cost": 0.25,
        **fields,
    }


def _says(role: str, text: str, **fields: Any) -> dict[str, Any]:
    return {"role": role, "content": [{"type": "text", "text": text}], **fields}


def _result(call_id: str, text: str) -> dict[str, Any]:
    return _says("tool", text, tool_call_id=call_id, name="terminal")


PROMPT = [_says("system", "the system prompt as sent"), _says("user", "go, with what a template added")]
FIRST = {"content": "look", "tool_calls": [_call("c1", "ls")]}
SECOND = {"content": "", "tool_calls": [_call("c2", "make")]}
LATER = [*PROMPT, _says("assistant", "look ", tool_calls=[_call("c1", "ls")]), _result("c1", "a b")]
LAST = [*LATER, _says("assistant", "", tool_calls=[_call("c2", "make")]), _result("c2", "boom\n[done]")]
LOGS = {
    "gpt-1769000001.1-aaaa.json": _log("resp-0001", PROMPT, FIRST),
    "gpt-1769000002.5-bbbb.json": _log("resp-0002", LATER, SECOND),
    "gpt-1769000003.25-cccc.json": _log("resp-0003", LAST, {"content": "bye"}),
}
SEEN = [
    ["the system prompt as sent", "go, with what a template added"],
    ["the system prompt as sent", "go, with what a template added", "look ", "a b"],
    ["the system prompt as sent", "go, with what a template added", "look ", "a b", "", "boom\n[done]"],
]


def _event(kind: str, name: str, source: str, **fields: Any) -> dict[str, Any]:
    return {"kind": kind, "id": name, "timestamp": "2026-01-21T10:00:00", "source": source, **fields}


def _conversation() -> list[dict[str, Any]]:
    """A V1 conversation of the responses r1, r2 and r3, its prompt other than the one logged."""
    events = [_event("MessageEvent", "u", "user", llm_message={"role": "user", "content": "go"})]
    for number, command, failed in ((1, "ls", False), (2, "make", True)):
        call = {"id": f"c{number}", "name": "terminal", "arguments": json.dumps({"command": command})}
        act = {
            "thought": [],
            "tool_call_id": f"c{number}",
            "tool_call": call,
            "llm_response_id": f"resp-000{number}",
        }
        seen = {"content": [{"type": "text", "text": "rebuilt"}], "is_error": failed}
        events.append(_event("ActionEvent", f"a{number}", "agent", tool_name="terminal", **act))
        events.append(_event("ObservationEvent", f"o{number}", "environment", tool_name="terminal",
                             tool_call_id=f"c{number}", observation=seen))  # fmt: skip
    said = {"role": "assistant", "content": [{"type": "text", "text": "bye"}]}
    return [*events, _event("MessageEvent", "m", "agent", llm_message=said, llm_response_id="resp-0003")]


def _folder(root: Path, events: list[dict[str, Any]]) -> Path:
    for number, event in enumerate(events):
        _write(root / "events" / f"event-{number:05d}-{number:08x}.json", event)
    _write(root / "base_state.json", {"id": root.name, "agent": {"llm": {"model": "configured"}}})
    return root


def _prompts(trace: Trace) -> list[list[str]]:
    return [[m.content for m in state.messages] for state in trace.states()]


def _assert_is_the_logged_session(trace: Trace, report: IngestReport, cost_usd: float = 0.75) -> None:
    """Prompts and tools as logged, verdicts of results as the events tell, and all of it once."""
    assert _prompts(trace) == SEEN
    (context,) = trace.contexts
    assert [(tool.name, tool.origin) for tool in context.tools] == [("terminal", "recorded")]
    assert (context.fidelity.system, context.fidelity.tools, context.fidelity.context) == (
        "recorded", "recorded", "complete",
    )  # fmt: skip
    assert [m.is_error for m in context.messages if m.role == "tool"] == [False, True]
    assert [(s.native_id, s.family, s.usage.prompt_tokens) for s in context.steps] == [
        ("resp-0001", "qwen", 20), ("resp-0002", "qwen", 40), ("resp-0003", "qwen", 60),
    ]  # fmt: skip
    assert trace.notes == {"reported_cost_micro_usd": cost_usd * 1e6}
    assert report.flags["prompt from its completion log"] == 3
    assert (report.traces, report.steps_main, report.tool_calls) == (1, 3, 2)


def test_logs_below_a_conversation_are_its_prompts_and_no_traces(tmp_path: Path) -> None:
    root = _folder(tmp_path / "conv", _conversation())
    for name, log in LOGS.items():
        _write(root / "telemetry" / name, log)
    _write(root / "telemetry" / "notes.json", {"messages": "none"})
    _write(root / "workspace" / "package.json", {"name": "x"})
    summary = _log("resp-000s", [_says("user", "sum this up")], {"content": "sum"})
    _write(root / "telemetry" / "gpt-1769000002.75-dddd.json", summary)
    assert [source.path for source in discover([tmp_path])] == [root]
    (trace,), report = ingest_file(root, "openhands_sdk_v1")
    _assert_is_the_logged_session(trace, report, cost_usd=1.0)  # the summary was paid for, too
    assert report.flags["completion log of no step"] == 1
    assert report.skipped == {"completion without a prompt or a response": 1}


@pytest.mark.parametrize("place", ["conversations/{}", "{}"])
def test_logs_beside_a_conversation_are_found_by_the_ids_of_responses(tmp_path: Path, place: str) -> None:
    root = _folder(tmp_path / place.format("0" * 32), _conversation())
    _folder(tmp_path / place.format("1" * 32), _conversation()[:1])
    for number, (name, log) in enumerate(LOGS.items()):
        _write(tmp_path / f"telemetry_{number}" / name, log)
    other = _write(tmp_path / "telemetry_0" / "gpt-1769000009.5-eeee.json", _log("resp-000x", PROMPT, FIRST))
    ingester = OpenHandsIngester()
    session, alone = ingester.ingest(tmp_path)
    assert alone.origin == other.name
    reports = {Path(report.path).name: report for report in ingester.reports}
    assert len(reports) == 3
    _assert_is_the_logged_session(session, reports[root.name])
    # a log that is asked for by its own path is a trace by itself
    (trace,), _ = ingest_file(
        tmp_path / "telemetry_1" / "gpt-1769000002.5-bbbb.json", "openhands_completion_v0"
    )
    assert _prompts(trace) == SEEN[1:2]


def test_logs_that_a_remote_agent_sent_as_events(tmp_path: Path) -> None:
    sent = [
        _event("LLMCompletionLogEvent", f"l{name}", "environment", filename=name, log_data=json.dumps(log))
        for name, log in LOGS.items()
    ]
    broken = _event("LLMCompletionLogEvent", "lb", "environment", filename="x", log_data="{")
    root = _folder(tmp_path / "conv", [*_conversation(), *sent, broken])
    (trace,), report = ingest_file(root, "openhands_sdk_v1")
    assert _prompts(trace) == SEEN
    assert report.skipped == {"completion without a prompt or a response": 1}


def test_a_step_without_a_log_keeps_its_rebuilt_prompt(tmp_path: Path) -> None:
    root = _folder(tmp_path / "conv", _conversation())
    _write(root / "logs" / "gpt-1769000002.5-bbbb.json", LOGS["gpt-1769000002.5-bbbb.json"])
    (trace,), report = ingest_file(root, "openhands_sdk_v1")
    # another form of the past begins a context: rebuilt, logged, rebuilt
    assert [(c.start, len(c.steps)) for c in trace.contexts] == [
        ("start", 1), ("rewritten", 1), ("rewritten", 1),
    ]  # fmt: skip
    assert [seen[:1] for seen in _prompts(trace)] == [["go"], ["the system prompt as sent"], ["go"]]
    assert [c.messages[-1].role for c in trace.contexts] == ["tool", "tool", "assistant"]
    assert report.flags["prompt from its completion log"] == 1


def test_a_log_of_another_answer_is_not_taken_for_the_step_with_its_id(tmp_path: Path) -> None:
    root = _folder(tmp_path / "conv", _conversation())
    other = {"content": "look", "tool_calls": [_call("c1", "rm -r /")]}
    _write(root / "logs" / "gpt-1769000001.1-aaaa.json", _log("resp-0001", PROMPT, other))
    (trace,), report = ingest_file(root, "openhands_sdk_v1")
    assert _prompts(trace)[0] == ["go"]
    assert report.flags["completion log of no step"] == 1
    assert report.flags["prompt from its completion log"] == 0


def test_a_log_that_goes_on_from_a_step_is_none_where_the_events_lost_nothing(tmp_path: Path) -> None:
    root = _folder(tmp_path / "conv", _conversation())
    asked = _log(
        "resp-0009", [*LATER, _says("user", "aside")], {"content": "", "tool_calls": [_call("c9", "id")]}
    )
    for name, log in {**LOGS, "gpt-1769000002.4-dddd.json": asked}.items():
        _write(root / "logs" / name, log)
    (trace,), report = ingest_file(root, "openhands_sdk_v1")
    assert _prompts(trace) == SEEN
    assert report.flags["completion log of no step"] == 1


def test_tools_that_change_in_the_logs_begin_a_context(tmp_path: Path) -> None:
    more = {"type": "function", "function": {"name": "finish", "parameters": {"type": "object"}}}
    root = _folder(tmp_path / "conv", _conversation())
    for name, log in LOGS.items():
        tools = [TOOL] if log["response"]["id"] == "resp-0001" else [TOOL, more]
        _write(root / "logs" / name, log | {"kwargs": {"tools": tools}})
    (trace,), _ = ingest_file(root, "openhands_sdk_v1")
    assert [[tool.name for tool in c.tools] for c in trace.contexts] == [["terminal"], ["terminal", "finish"]]
    assert [len(c.steps) for c in trace.contexts] == [1, 2]
    assert _prompts(trace) == SEEN


def _history(*lost: int) -> list[dict[str, Any]]:
    """A V0 history of the responses r1, r2 and r3; `lost` ones left an error alone."""
    events: list[dict[str, Any]] = [{"source": "user", "action": "message", "args": {"content": "go"}}]
    for number, answer in ((1, FIRST), (2, SECOND)):
        if number in lost:
            events.append({"source": "agent", "observation": "error", "content": "bad call", "extras": {}})
            continue
        response = {"id": f"resp-000{number}", "choices": [{"message": answer}]}
        meta = {"tool_call_id": f"c{number}", "function_name": "terminal", "model_response": response}
        metadata = {"exit_code": number - 1}
        events.append({"source": "agent", "action": "run", "args": {}, "tool_call_metadata": meta})
        seen = {"observation": "run", "content": "rebuilt", "extras": {"metadata": metadata}}
        events.append({"source": "agent", "tool_call_metadata": meta, **seen})
    finish = {"id": "resp-0003", "choices": [{"message": {"content": "bye"}}]}
    meta = {"tool_call_id": "c3", "function_name": "finish", "model_response": finish}
    events.append({"source": "agent", "action": "finish", "args": {}, "tool_call_metadata": meta})
    return [
        {"id": number, "timestamp": "2025-01-01T00:00:00", **event} for number, event in enumerate(events)
    ]


def _output(tmp_path: Path, *rows: dict[str, Any]) -> Path:
    return _write(tmp_path / "output.jsonl", "".join(json.dumps(row) + "\n" for row in rows))


def test_logs_next_to_an_output_are_the_prompts_of_its_rows(tmp_path: Path) -> None:
    output = _output(
        tmp_path,
        {"instance_id": "orchard__seedbank-1", "history": _history()},
        {"instance_id": "orchard__seedbank-2", "history": _history()},
        {"instance_id": "../orchard__seedbank-1", "history": _history()},
    )
    logs = tmp_path / "llm_completions"
    for name, log in LOGS.items():
        _write(logs / "orchard__seedbank-1" / name, log)
    torn = _write(logs / "orchard__seedbank-1" / "gpt-1769000004.5-dddd.json", "{")
    rowless = _write(
        logs / "orchard__seedbank-9" / "gpt-1769000005.5-eeee.json", LOGS["gpt-1769000001.1-aaaa.json"]
    )
    assert [source.path for source in discover([tmp_path])] == [torn, rowless, output]
    (logged, rebuilt, _), report = ingest_file(output, "openhands_eval_v0")
    assert _prompts(rebuilt)[0] == ["go"]
    assert report.skipped == {"completion log does not parse": 1}
    report.traces, report.steps_main, report.tool_calls = 1, logged.step_count, 2
    _assert_is_the_logged_session(logged, report)
    assert logged.instance_id == "orchard__seedbank-1"


def test_a_step_that_the_events_lost_is_found_in_its_log(tmp_path: Path) -> None:
    _output(tmp_path, {"instance_id": "a__b-1", "history": _history(2)})
    logs = tmp_path / "llm_completions" / "a__b-1"
    error = _says("user", "bad call\n[Error occurred in processing last action]")
    asked = _log("resp-000q", [*LATER, _says("user", "what did you do?")], {"content": "I looked"})
    for name, log in {
        "gpt-1769000001.1.json": LOGS["gpt-1769000001.1-aaaa.json"],
        "gpt-1769000002.1.json": asked,  # goes on from the step before, and calls nothing
        "gpt-1769000002.5.json": LOGS["gpt-1769000002.5-bbbb.json"],
        "gpt-1769000003.25.json": _log("resp-0003", [*LATER, error], {"content": "bye"}),
    }.items():
        _write(logs / name, log)
    (trace,), report = ingest_file(tmp_path / "output.jsonl", "openhands_eval_v0")
    assert [step.native_id for c in trace.contexts for step in c.steps] == [
        "resp-0001",
        "resp-0002",
        "resp-0003",
    ]
    # the harness does not show the answer again that it could not read
    assert [(c.start, len(c.steps)) for c in trace.contexts] == [("start", 2), ("rewritten", 1)]
    assert _prompts(trace)[2] == [*SEEN[1], "bad call\n[Error occurred in processing last action]"]
    assert report.flags == {
        "prompt from its completion log": 2,
        "lost step found in its completion log": 1,
        "completion log of no step": 1,
    }
    assert report.skipped == {}
    for path in logs.iterdir():
        path.unlink()
    (_,), report = ingest_file(tmp_path / "output.jsonl", "openhands_eval_v0")
    assert report.skipped == {"step lost: the response was malformed and is not recorded": 1}


CALL_1 = "look\n\n<function=terminal>\n<parameter=command>ls</parameter>\n</function>"
CALL_2 = "<function=terminal>\n<parameter=command>make</parameter>\n</function>"


@pytest.mark.parametrize("version", ["v0", "v1"])
def test_models_without_native_calls_were_sent_text_and_wrote_text(tmp_path: Path, version: str) -> None:
    texts = [
        {"role": "system", "content": "You have access to these functions: terminal"},
        {"role": "user", "content": "here is an example ... go"},
        {"role": "assistant", "content": CALL_1},
        {"role": "user", "content": "EXECUTION RESULT of [terminal]:\na b"},
        {"role": "assistant", "content": CALL_2},
        {"role": "user", "content": "EXECUTION RESULT of [terminal]:\nERROR:\nno"},
    ]
    # a stop word cuts the end off; of the second call nothing but the parsed form is left
    wrote = [CALL_1.removesuffix(">"), "", "bye"]
    parsed = [FIRST, SECOND, {"content": "bye"}]
    for number, length in enumerate((2, 4, 6)):
        text, structured = {"content": wrote[number]}, parsed[number]
        log = _log(f"resp-000{number + 1}", texts[:length], structured if version == "v1" else text)
        sides = {"raw_messages": [{}], "raw_response": _log("", [], text)["response"]}
        if version == "v0":
            sides = {"fncall_messages": [{}], "fncall_response": _log("", [], structured)["response"]}
        _write(tmp_path / "llm_completions" / "a__b-1" / f"m-176900000{number}.5.json", log | sides)
    _output(tmp_path, {"instance_id": "a__b-1", "history": _history()})
    (trace,), report = ingest_file(tmp_path / "output.jsonl", "openhands_eval_v0")
    (context,) = trace.contexts
    assert _prompts(trace) == [[m["content"] for m in texts[:length]] for length in (2, 4, 6)]
    assert [s.student_action.text for s in trace.states()] == [CALL_1, CALL_2, "bye"]
    assert (context.tools, report.tool_calls) == ((), 0)
    assert [m.error_kind for m in context.messages if m.content.startswith("EXEC")] == [None, "tool_error"]


def test_the_results_behind_a_last_step_in_text_are_text(tmp_path: Path) -> None:
    text = {"content": CALL_1}
    log = _log("resp-0001", PROMPT, text) | {"fncall_response": _log("", [], FIRST)["response"]}
    _write(tmp_path / "llm_completions" / "a__b-1" / "m-1769000000.5.json", log)
    _output(tmp_path, {"instance_id": "a__b-1", "history": _history()[:3]})
    (trace,), _ = ingest_file(tmp_path / "output.jsonl", "openhands_eval_v0")
    (context,) = trace.contexts
    last = context.messages[-1]
    assert (last.role, last.content.split("\n")[:2]) == (
        "user", ["EXECUTION RESULT of [terminal]:", "rebuilt"],
    )  # fmt: skip


@pytest.mark.parametrize(
    ("folder", "instance", "repository"),
    [
        ("llm_completions/orchard__seedbank-12", "orchard__seedbank-12", "orchard/seedbank"),
        ("a/b", None, None),
    ],
)
def test_a_log_in_the_folder_of_an_instance_is_of_that_instance(
    tmp_path: Path, folder: str, instance: str | None, repository: str | None
) -> None:
    log = _log("resp-0001", PROMPT, FIRST, timestamp=1733345367.5)
    (trace,), _ = ingest_file(_write(tmp_path / folder / "m-1.json", log), "openhands_completion_v0")
    assert (trace.instance_id, trace.repository) == (instance, repository)
    assert trace.started_at == "2024-12-04T20:49:27.500000+00:00"
    bad = _write(tmp_path / folder / "m-2.json", log | {"timestamp": 1e300})
    assert ingest_file(bad, "openhands_completion_v0")[0][0].started_at is None


def test_a_completion_log_is_the_exact_prompt_and_its_answer(tmp_path: Path) -> None:
    call = {
        "id": "c2",
        "type": "function",
        "function": {"name": "terminal", "arguments": '{"command":"make"}'},
    }
    failed = "x\n[Command finished with exit code 2]"
    log = {
        "messages": [
            {"role": "system", "content": [{"type": "text", "text": "sys"}]},
            {"role": "user", "content": [{"type": "text", "text": "hi"}]},
            {"role": "assistant", "tool_calls": [{**call, "id": "c1"}]},
            {"role": "tool", "tool_call_id": "c1", "content": [{"type": "text", "text": failed}]},
        ],
        "tools": [{"title": "terminal", "description": "Our own words", "kind": "TerminalTool"}],
        "response": {
            "id": "r",
            "model": "claude-x",
            "choices": [{"message": {"content": "again", "tool_calls": [call]}}],
            "usage": {"prompt_tokens": 12, "completion_tokens": 4},
        },
    }
    path = tmp_path / "log.json"
    path.write_text(json.dumps(log))
    (trace,), report = ingest_file(path, "openhands_completion_v1")
    (state,) = trace.states()
    assert [(m.role, m.content) for m in state.messages][:2] == [("system", "sys"), ("user", "hi")]
    assert (state.messages[3].is_error, state.messages[3].error_kind) == (True, "exit_code")
    assert state.student_action.tool_calls[0].arguments == '{"command":"make"}'
    assert (state.step.family, state.step.usage.prompt_tokens, report.steps_main) == ("anthropic", 12, 1)
    (tool,) = state.context.tools
    assert (tool.name, tool.description, tool.origin) == ("terminal", "Our own words", "stand_in")


def test_a_completion_log_of_the_responses_api(tmp_path: Path) -> None:
    log = {
        "instructions": "sys",
        "input": [
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hi"}]},
            {"type": "function_call", "call_id": "c1", "name": "finish", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "c1", "output": "ok"},
        ],
        "response": {"id": "r", "model": "gpt-5", "output": [
            {"type": "reasoning"},
            {"type": "message", "content": [{"type": "output_text", "text": "bye"}]},
            {"type": "function_call", "call_id": "c2", "name": "finish", "arguments": "{}"},
        ]},
    }  # fmt: skip
    path = tmp_path / "log.json"
    path.write_text(json.dumps(log))
    (trace,), _ = ingest_file(path, "openhands_completion_v1")
    messages = trace.contexts[0].messages
    assert [(m.role, m.content, [c.id for c in m.tool_calls]) for m in messages] == [
        ("system", "sys", []),
        ("user", "hi", []),
        ("assistant", "", ["c1"]),
        ("tool", "ok", []),
        ("assistant", "bye", ["c2"]),
    ]
