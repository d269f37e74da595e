"""The port of the OpenHands SDK to TypeScript: one events.jsonl, whose messages are the prompt."""

import json
from pathlib import Path
from typing import Any

from tracemill.ingesters.openhands.ingest_files import ingest_file
from tracemill.records.ingest_report import IngestReport
from tracemill.records.trace import Trace

TOOL = {
    "type": "function",
    "function": {"name": "terminal", "description": "runs", "parameters": {"type": "object"}},
}


def _event(kind: str, name: str, source: str, **fields: Any) -> dict[str, Any]:
    return {"kind": kind, "id": name, "timestamp": "2025-11-27T15:22:22.620Z", "source": source, **fields}


def _state(name: str, key: str, value: Any) -> dict[str, Any]:
    return _event("ConversationStateUpdateEvent", name, "agent", key=key, value=value)


def _says(own: str, source: str, role: str, text: str, **fields: Any) -> dict[str, Any]:
    content = [{"type": "text", "text": text}] if text else []
    return _event("MessageEvent", own, source, llm_message={"role": role, "content": content, **fields})


def _call(call_id: str, command: str) -> dict[str, Any]:
    arguments = json.dumps({"command": command})
    return {"id": call_id, "type": "function", "function": {"name": "terminal", "arguments": arguments}}


def _step(number: int, command: str, shown: str, **observation: Any) -> list[dict[str, Any]]:
    """What one response with a call leaves: request, answer, usage, action, observation, result as shown."""
    call_id = f"call_{number}"
    call = _call(call_id, command)
    act = {"thought": [], "tool_name": "terminal", "tool_call_id": call_id, "tool_call": call}
    seen = {"tool_name": "terminal", "tool_call_id": call_id, "action_id": f"a{number}"}
    model = "gpt-5" if number < 3 else "claude-sonnet-4-5"
    return [
        _state(f"q{number}", "llm_request", {"model": model, "tool_count": 1, "tools": ["terminal"]}),
        _state(f"w{number}", "llm_stream", "..."),
        _says(f"m{number}", "agent", "assistant", "", tool_calls=[call]),
        _state(
            f"y{number}", "llm_usage", {"inputTokens": 100 * number, "outputTokens": 7, "cacheReadTokens": 64}
        ),
        _event("ActionEvent", f"a{number}", "agent", llm_response_id=f"random-{number}", **act),
        _event("ObservationEvent", f"o{number}", "environment", observation=observation, **seen),
        _says(f"t{number}", "environment", "tool", shown, tool_call_id=call_id, name="terminal"),
    ]


SYSTEM = _event("SystemPromptEvent", "", "agent", system_prompt={"text": "sys"}, tools=[TOOL])


def _read(tmp_path: Path, *events: dict[str, Any]) -> tuple[list[Trace], IngestReport]:
    path = tmp_path / "events.jsonl"
    path.write_text("".join(json.dumps(event) + "\n" for event in events))
    return ingest_file(path, "openhands_sdk_v1")


def test_a_response_is_one_step_and_its_results_are_the_texts_shown(tmp_path: Path) -> None:
    shown = '{"stdout":"a","stderr":"","exit_code":0}'
    (trace,), report = _read(
        tmp_path,
        SYSTEM,
        _says("u", "user", "user", "go"),
        *_step(1, "ls", shown, stdout="a", stderr="", exit_code=0),
        *_step(2, "make", '{"stderr":"no"}', stdout="", stderr="no", exit_code=2),
        *_step(3, "make", "Path escapes", error="x"),
        _says("d", "agent", "assistant", "done"),
    )
    (context,) = trace.contexts
    assert [(m.role, m.content) for m in context.messages] == [
        ("system", "sys"),
        ("user", "go"),
        ("assistant", ""),
        ("tool", shown),
        ("assistant", ""),
        ("tool", '{"stderr":"no"}'),
        ("assistant", ""),
        ("tool", "Path escapes"),
        ("assistant", "done"),
    ]
    results = [m for m in context.messages if m.role == "tool"]
    assert [(m.tool_call_id, m.is_error, m.error_kind) for m in results] == [
        ("call_1", False, None),
        ("call_2", True, "exit_code"),
        ("call_3", True, "tool_error"),
    ]
    assert (report.steps_main, report.tool_calls, report.tool_errors) == (4, 3, 2)
    assert [c.arguments for m in context.messages for c in m.tool_calls] == [
        '{"command": "ls"}',
        '{"command": "make"}',
        '{"command": "make"}',
    ]
    assert [tool.origin for tool in context.tools] == ["recorded"]


def test_model_and_usage_of_each_request(tmp_path: Path) -> None:
    early = [
        _state("y0", "llm_usage", {"input": 31, "output": 277, "cacheRead": 0}),
        _says("m0", "agent", "assistant", "hello"),
        _state("z0", "llm_usage", {"inputTokens": 31, "outputTokens": 277, "cacheReadTokens": 0}),
    ]
    (trace,), _ = _read(
        tmp_path,
        SYSTEM,
        _says("u", "user", "user", "hi"),
        *early,
        _says("v", "user", "user", "go"),
        *_step(1, "ls", "a", stdout="a"),
        *_step(3, "id", "b", stdout="b"),
        _state("q9", "llm_request", {"model": "gpt-5"}),
        _says("d", "agent", "assistant", "done"),
    )
    steps = trace.contexts[0].steps
    assert [(s.model, s.family) for s in steps] == [
        (None, "unknown"), ("gpt-5", "openai"), ("claude-sonnet-4-5", "anthropic"), ("gpt-5", "openai"),
    ]  # fmt: skip
    assert [(s.usage.prompt_tokens, s.usage.cached_tokens) for s in steps] == [
        (31, 0), (100, 64), (300, 64), (None, None),
    ]  # fmt: skip


def test_usage_of_a_request_is_not_that_of_the_step_before(tmp_path: Path) -> None:
    first = [e for e in _step(1, "ls", "a", stdout="a") if e["id"] != "y1"]
    second = _step(2, "id", "b", stdout="b")
    early = _state("e2", "llm_usage", {"input": 200, "output": 7, "cacheRead": 64})
    events = [_says("u", "user", "user", "go"), *first, second[0], early, *second[1:]]
    (trace,), _ = _read(tmp_path, *events)
    assert [step.usage.prompt_tokens for step in trace.contexts[0].steps] == [None, 200]


def test_before_results_were_messages_the_streams_are_the_text(tmp_path: Path) -> None:
    step = [
        e
        for e in _step(1, "make", "", stdout="out", stderr="err", exit_code=2)
        if e["id"] not in ("m1", "t1")
    ]
    (trace,), report = _read(tmp_path, _says("u", "user", "user", "go"), *step)
    ((result,),) = (state.results for state in trace.states())
    assert (result.content, result.is_error, result.error_kind) == ("out\nerr", True, "exit_code")
    assert (trace.contexts[0].steps[0].native_id, report.tool_calls) == ("random-1", 1)


def test_a_run_of_errors_alone_is_no_session(tmp_path: Path) -> None:
    traces, report = _read(
        tmp_path,
        SYSTEM,
        _says("u", "user", "user", "go"),
        _event("ConversationErrorEvent", "e", "agent", code="x", detail="no key"),
    )
    assert (traces, dict(report.skipped)) == ([], {"session without a step": 1})
