"""OpenHands SDK (V1): what the agent saw, rebuilt from events written for these tests."""

import json
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from ingesters.openhands import ingest_file
from records.skip import IngestReport
from records.state import Trace


def _event(kind: str, name: str, source: str, **fields: Any) -> dict[str, Any]:
    return {"kind": kind, "id": name, "timestamp": "2026-01-01T00:00:00", "source": source, **fields}


def _text(text: str) -> list[dict[str, str]]:
    return [{"type": "text", "text": text}]


def _system(name: str, *tools: str, kind: str = "SystemPromptEvent", **fields: Any) -> dict[str, Any]:
    listed = [{"title": tool, "description": f"about {tool}", "kind": "Tool"} for tool in tools]
    return _event(kind, name, "agent", system_prompt={"type": "text", "text": "sys"}, tools=listed, **fields)


def _said(name: str, source: str, text: str, **fields: Any) -> dict[str, Any]:
    role = "assistant" if source == "agent" else "user"
    return _event("MessageEvent", name, source, llm_message={"role": role, "content": _text(text)}, **fields)


def _act(name: str, response: str, command: str = "ls", thought: str = "", **fields: Any) -> dict[str, Any]:
    call = {"id": f"call-{name}", "name": "terminal", "arguments": json.dumps({"command": command})}
    return _event(
        "ActionEvent",
        name,
        "agent",
        thought=_text(thought) if thought else [],
        tool_name="terminal",
        tool_call_id=call["id"],
        tool_call=call,
        llm_response_id=response,
        **fields,
    )


def _saw(name: str, action: str, text: str, **observation: Any) -> dict[str, Any]:
    seen = {"kind": "FileEditorObservation", "content": _text(text), "is_error": False, **observation}
    return _event(
        "ObservationEvent",
        name,
        "environment",
        observation=seen,
        action_id=action,
        tool_name="terminal",
        tool_call_id=f"call-{action}",
    )


def _folder(tmp_path: Path, events: list[Any], **state: Any) -> tuple[Trace, IngestReport]:
    (tmp_path / "events").mkdir()
    for number, event in enumerate(events):
        (tmp_path / "events" / f"event-{number:05d}-{number}.json").write_text(json.dumps(event))
    if state:
        (tmp_path / "base_state.json").write_text(json.dumps(state))
    (trace,), report = ingest_file(tmp_path, "openhands_sdk_v1")
    return trace, report


def test_a_conversation_folder_with_its_state(tmp_path: Path) -> None:
    metadata = {"exit_code": 1, "working_dir": "/w", "prefix": "", "suffix": "\n[done]"}
    events = [
        _system("s", "terminal", dynamic_context={"type": "text", "text": "today"}),
        _said("u", "user", "go", extended_content=_text("a hint")),
        _act("a", "r1", thought="look"),
        _saw("o", "a", "oops", kind="TerminalObservation", exit_code=1, metadata=metadata),
        _said("m", "agent", "done", llm_response_id="r2"),
    ]
    usage = {"response_id": "r1", "prompt_tokens": 40, "completion_tokens": 2, "cache_read_tokens": 8}
    stats = {"usage_to_metrics": {"agent": {"model_name": "x", "token_usages": [usage]}}}
    state = {"id": "conv", "agent": {"llm": {"model": "moonshot/kimi-k2"}}, "stats": stats}
    trace, report = _folder(tmp_path, events, **state)
    (context,) = trace.contexts
    assert [(m.role, m.content) for m in context.messages] == [
        ("system", "sys\ntoday"),
        ("user", "go\na hint"),
        ("assistant", "look"),
        ("tool", "oops\n[done]\n[Current working directory: /w]\n[Command finished with exit code 1]"),
        ("assistant", "done"),
    ]
    first, last = context.steps
    assert (first.cut, first.model, first.family, first.native_id) == (
        2,
        "moonshot/kimi-k2",
        "moonshot",
        "r1",
    )
    assert (first.usage.prompt_tokens, first.usage.cached_tokens, last.usage.prompt_tokens) == (40, 8, None)
    assert (context.messages[3].error_kind, last.cwd, trace.harness_version) == ("exit_code", "/w", "1")
    assert (report.steps_main, report.tool_calls, report.tool_errors, report.contexts) == (2, 1, 1, 1)
    # the schema of the tool is not recorded, its description is
    (tool,) = context.tools
    assert (tool.name, tool.description, tool.origin) == ("terminal", "about terminal", "stand_in")
    assert context.fidelity.tools == "absent"


def test_actions_of_one_response_are_one_step(tmp_path: Path) -> None:
    events = [
        _said("u", "user", "go"),
        _act("a", "r1", "one", thought="both"),
        _act("b", "r1", "two"),
        _saw("ob", "b", "2"),
        _saw("oa", "a", "1"),
        _act("c", "r2", "three"),
        _event("AgentErrorEvent", "e", "agent", error="no such tool", tool_name="x", tool_call_id="call-c"),
        _act("d", "r3", "four"),
        _event(
            "UserRejectObservation",
            "x",
            "user",
            rejection_reason="not now",
            rejection_source="hook",
            tool_name="terminal",
            tool_call_id="call-d",
        ),
    ]
    trace, report = _folder(tmp_path, events, id="conv")
    states = list(trace.states())
    assert [len(s.student_action.tool_calls) for s in states] == [2, 1, 1]
    assert [r.content for s in states for r in s.results] == [
        "1",
        "2",
        "no such tool",
        "Action rejected: not now",
    ]
    kinds = [(r.is_error, r.error_kind) for s in states for r in s.results]
    assert kinds == [(False, None), (False, None), (True, "tool_error"), (True, "hook")]
    assert (report.steps_main, report.tool_calls, report.tool_errors) == (3, 4, 2)


def _condensed(name: str, summary: str, *forgotten: str) -> dict[str, Any]:
    fields = {"forgotten_event_ids": list(forgotten), "summary": summary, "summary_offset": 2}
    return _event("Condensation", name, "environment", **fields)


def test_a_condensation_forgets_and_puts_its_summary_in_place(tmp_path: Path) -> None:
    events = [
        _system("s", "terminal"),
        _said("u", "user", "go"),
        _act("a", "r1", "one"),
        _saw("oa", "a", "1"),
        _act("b", "r2", "two"),
        _saw("ob", "b", "2"),
        _condensed("k", "one", "a", "oa"),
        _act("c", "r3", "three"),
        _saw("oc", "c", "3"),
        _condensed("l", "one, two", "k-summary", "b", "ob"),
        _act("d", "r4", "four"),
    ]
    trace, report = _folder(tmp_path, events, id="conv")
    assert [(c.start, len(c.steps)) for c in trace.contexts] == [
        ("start", 2), ("compaction", 1), ("compaction", 1),
    ]  # fmt: skip
    seen = [[m.content for m in c.messages[: c.steps[-1].cut]] for c in trace.contexts]
    assert seen == [["sys", "go", "", "1"], ["sys", "go", "one", "", "2"], ["sys", "go", "one, two", "", "3"]]
    assert report.compactions == 2


def test_new_tools_start_a_context_and_an_equal_update_does_not(tmp_path: Path) -> None:
    update = "SystemPromptUpdateEvent"
    events = [
        _system("s", "terminal"),
        _said("u", "user", "go"),
        _act("a", "r1"),
        _saw("oa", "a", "1"),
        _system("t", "terminal", kind=update),
        _act("b", "r2"),
        _saw("ob", "b", "2"),
        _system("v", "terminal", "finish", kind=update),
        _said("w", "user", "more"),
        _act("c", "r3"),
    ]
    trace, _ = _folder(tmp_path, events, id="conv")
    first, second = trace.contexts
    assert (second.start, [t.name for t in first.tools], [t.name for t in second.tools]) == (
        "tools_changed", ["terminal"], ["terminal", "finish"],
    )  # fmt: skip
    assert [m.role for m in second.messages[: second.steps[0].cut]] == [
        "system", "user", "assistant", "tool", "assistant", "tool", "user",
    ]  # fmt: skip


def test_going_back_in_the_event_tree_is_a_context_of_its_own(tmp_path: Path) -> None:
    events = [
        _said("u", "user", "go", parent_id=None),
        _act("a", "r1", "one", parent_id="u"),
        _saw("oa", "a", "1") | {"parent_id": "a"},
        _said("w", "user", "left", parent_id="oa"),
        _act("b", "r2", "two", parent_id="w"),
        _said("x", "user", "right", parent_id="oa"),
        _act("c", "r3", "three", parent_id="x"),
    ]
    trace, report = _folder(tmp_path, events, id="conv")
    assert [(c.start, len(c.steps)) for c in trace.contexts] == [("start", 2), ("rewind", 1)]
    branch = trace.contexts[1]
    assert [m.content for m in branch.messages[: branch.steps[0].cut]] == ["go", "", "1", "right"]
    assert report.branches_real == 1


def test_a_slice_of_a_session_says_what_is_lost(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    rows = [_saw("o", "gone", "1"), _act("a", "r1"), _saw("oa", "a", "2"), {"kind": "Condensation"}, "text"]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows) + '{"kind": ')
    (trace,), report = ingest_file(path, "openhands_sdk_v1")
    assert trace.contexts[0].fidelity.context == "lost"
    assert dict(report.skipped) == {"not an object": 1, "not json": 1}
    assert report.flags["no base_state.json"] == 1
    assert report.flags["result without its call"] == 1


def test_rows_of_an_evaluation_may_hold_v1_events(tmp_path: Path) -> None:
    row = {
        "instance_id": "orchard__seedbank-7",
        "history": [_said("u", "user", "go"), _act("a", "r1")],
        "test_result": {"report": {"resolved": True}},
        "metadata": {"llm": {"model": "z-ai/glm-4.6"}},
    }
    path = tmp_path / "output.jsonl"
    path.write_text(json.dumps(row) + "\n")
    (trace,), _ = ingest_file(path, "openhands_eval_v0")
    assert (trace.outcome, trace.repository, trace.contexts[0].steps[0].family) == (
        "resolved", "orchard/seedbank", "zai",
    )  # fmt: skip


def test_the_port_that_records_streams_instead_of_content(tmp_path: Path) -> None:
    seen = _saw("o", "a", "")
    seen["observation"] = {"kind": "TerminalObservation", "stdout": "out", "stderr": "err", "exit_code": 2}
    act = _act("a", "r1")
    act["tool_call"] = {
        "id": "call-a",
        "type": "function",
        "function": {"name": "terminal", "arguments": "{}"},
    }
    trace, _ = _folder(tmp_path, [_said("u", "user", "go"), act, seen], id="conv")
    (result,) = next(iter(trace.states())).results
    assert (result.content, result.is_error, result.error_kind) == ("out\nerr", True, "exit_code")


def test_a_folder_without_readable_state_is_read_and_flagged(tmp_path: Path) -> None:
    trace, report = _folder(tmp_path, [_said("u", "user", "go"), _act("a", "r1"), 5])
    assert (trace.step_count, report.flags["no base_state.json"]) == (1, 1)
    assert dict(report.skipped) == {"event is no object": 1}
    (tmp_path / "base_state.json").write_text("{")
    (tmp_path / "events" / "event-00009-x.json").write_text("{")
    (again,), report = ingest_file(tmp_path, "openhands_sdk_v1")
    assert again == trace
    assert dict(report.skipped) == {
        "event is no object": 1,
        "event file does not parse": 1,
        "base_state.json does not parse": 1,
    }


_PLAN = st.lists(
    st.tuples(st.sampled_from(["act", "user", "said", "condense", "tools"]), st.integers(0, 3)), max_size=12
)


def _planned(number: int, kind: str, extra: int) -> list[dict[str, Any]]:
    name = f"e{number}"
    if kind == "user":
        return [_said(name, "user", "more")]
    if kind == "said":
        return [_said(name, "agent", "done", llm_response_id=f"r{number}")]
    if kind == "condense":
        return [_condensed(name, "so far", *(f"e{extra}-{place}" for place in range(4)), f"o{extra}-0")]
    if kind == "tools":
        return [_system(name, *(f"tool{n}" for n in range(extra)), kind="SystemPromptUpdateEvent")]
    acts = [_act(f"{name}-{place}", f"r{number}", str(place)) for place in range(extra + 1)]
    seen = [_saw(f"o{number}-{place}", f"{name}-{place}", str(place)) for place in range(extra + 1)]
    return [*acts, *reversed(seen)]


@given(_PLAN)
def test_laws_hold_on_generated_conversations(tmp_path_factory: Any, plan: list[tuple[str, int]]) -> None:
    events = [
        _system("s", "terminal"),
        _said("u", "user", "go"),
        _act("first", "r"),
        _saw("of", "first", "1"),
    ]
    for number, (kind, extra) in enumerate(plan):
        events += _planned(number, kind, extra)
    path = tmp_path_factory.mktemp("laws") / "events.jsonl"
    path.write_text("".join(json.dumps(event) + "\n" for event in events))
    traces, report = ingest_file(path, "openhands_sdk_v1")
    assert traces == ingest_file(path, "openhands_sdk_v1")[0]
    assert report.steps_main == 1 + sum(kind in ("act", "said") for kind, _ in plan)
    for state in traces[0].states():
        calls = [call.id for call in state.student_action.tool_calls]
        answered = [m.tool_call_id for m in state.messages if m.role == "tool"]
        assert not set(calls) & set(answered)
        assert len(answered) == len(set(answered))
        assert set(answered) <= {call.id for m in state.messages for call in m.tool_calls}
        assert [result.tool_call_id for result in state.results] == calls
