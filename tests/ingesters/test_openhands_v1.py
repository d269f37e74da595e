"""OpenHands SDK (V1): what the agent saw, rebuilt from events written for these tests."""

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from whole_records import whole_text

from tracemill.ingesters.openhands.ingest_files import ingest_file
from tracemill.records.ingest_report import IngestReport
from tracemill.records.trace import Trace


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


def _act(
    name: str, response: str, command: str = "ls", thought: str = "", /, **fields: Any
) -> dict[str, Any]:
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
        _act("a", "r1", "ls", "look"),
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
        _act("a", "r1", "one", "both"),
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
        "2",  # as they came
        "1",
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


def test_a_result_that_stands_before_its_call_is_shown_to_no_step(tmp_path: Path) -> None:
    events = [
        _said("u", "user", "go"),
        _act("a", "r1", "one"),
        _saw("ob", "b", "told too early", is_error=True),
        _saw("oa", "a", "1"),
        _act("b", "r2", "two"),
        _act("c", "r3", "three"),
        _saw("oc", "c", "3"),
        _said("m", "agent", "done", llm_response_id="r4"),
    ]
    trace, report = _folder(tmp_path, events, id="conv")
    shown = [message.content for state in trace.states() for message in state.messages]
    assert "told too early" not in shown
    assert [state.fidelity.context for state in trace.states()] == ["lost"] * len(list(trace.states()))
    assert (report.steps_main, report.tool_calls, report.tool_errors) == (4, 3, 1)
    assert report.flags["result before its call"] == 1


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


def test_a_folder_without_readable_state_is_read_and_flagged(tmp_path: Path) -> None:
    trace, report = _folder(tmp_path, [_said("u", "user", "go"), _act("a", "r1"), 5])
    assert (trace.step_count, report.flags["no base_state.json"]) == (1, 1)
    assert dict(report.skipped) == {"event is not an object": 1}
    (tmp_path / "base_state.json").write_text("{")
    (tmp_path / "events" / "event-00009-x.json").write_text("{")
    (again,), report = ingest_file(tmp_path, "openhands_sdk_v1")
    assert again == trace
    assert dict(report.skipped) == {
        "event is not an object": 1,
        "event file does not parse": 1,
        "base_state.json does not parse": 1,
    }


def _seen(trace: Trace, context: int, step: int = 0) -> list[str]:
    """What the agent saw, text by text."""
    chosen = trace.contexts[context]
    return [m.content for m in chosen.messages[: chosen.steps[step].cut]]


def test_a_response_torn_by_a_condensation_is_dropped_whole(tmp_path: Path) -> None:
    events = [
        _said("u", "user", "go"),
        _act("a", "r1", "one", "both"),
        _act("b", "r1", "two"),
        _saw("oa", "a", "1"),
        _saw("ob", "b", "2"),
        _act("c", "r2", "three"),
        _saw("oc", "c", "3"),
        _condensed("k", "sum", "a", "oa") | {"summary_offset": 1},
        _act("d", "r3", "four"),
    ]
    trace, report = _folder(tmp_path, events, id="conv")
    assert _seen(trace, 1) == ["go", "sum", "", "3"]
    assert [c.id for m in trace.contexts[1].messages for c in m.tool_calls] == ["call-c", "call-d"]
    assert report.steps_main == 3


def test_a_tool_loop_torn_by_a_condensation_is_dropped_whole(tmp_path: Path) -> None:
    thinking = {"thinking_blocks": [{"type": "thinking", "thinking": "hm"}]}
    events = [
        _said("u", "user", "go"),
        _act("a", "r1", "one", **thinking),
        _saw("oa", "a", "1"),
        _act("b", "r2", "two"),
        _saw("ob", "b", "2"),
        _said("v", "user", "on"),
        _act("c", "r3", "three"),
        _saw("oc", "c", "3"),
        _condensed("k", "sum", "a", "oa") | {"summary_offset": 1},
        _act("d", "r4", "four"),
    ]
    trace, _ = _folder(tmp_path, events, id="conv")
    # the loop that began with thinking ends at the text of the user: b is part of it, c is not
    assert _seen(trace, 1) == ["go", "sum", "on", "", "3"]


def test_second_late_and_missing_results(tmp_path: Path) -> None:
    late = _saw("oa", "a", "late")
    events = [
        _said("u", "user", "go"),
        _act("a", "r1", "one"),
        _act("b", "r2", "two"),  # though a has no result yet
        _event("AgentErrorEvent", "e", "agent", error="lost it", tool_name="t", tool_call_id="call-b"),
        _saw("ob", "b", "second"),
        _act("c", "r3", "three"),
        late,
        _saw("oc", "c", "3"),
        _act("d", "r4", "four"),
    ]
    trace, report = _folder(tmp_path, events, id="conv")
    assert [(c.start, len(c.steps)) for c in trace.contexts] == [
        ("start", 1), ("rewritten", 2), ("rewritten", 1),
    ]  # fmt: skip
    assert [_seen(trace, 1), _seen(trace, 1, 1)] == [["go"], ["go", "", "lost it"]]
    assert _seen(trace, 2) == ["go", "", "", "lost it", "", "late", "3"]
    assert {k: n for k, n in report.flags.items() if "result" in k} == {
        "call without a result": 2,
        "second result of one call": 1,
        "result after the next step began": 1,
    }


def _saw_early(name: str, action: str, kind: str, **fields: Any) -> dict[str, Any]:
    """A result as versions before November 2025 recorded it: without `content` and `is_error`."""
    event = _saw(name, action, "")
    return {**event, "observation": {"kind": kind, **fields}}


def test_early_observations_name_their_error_in_a_field_of_its_own(tmp_path: Path) -> None:
    bash = {"exit_code": None, "timeout": False, "metadata": {"exit_code": -1}}
    events = [
        _said("u", "user", "go"),
        _act("a", "r1", "one"),
        _saw_early("oa", "a", "FileEditorObservation", output="", error="The path does not exist."),
        _act("b", "r2", "two"),
        _saw_early("ob", "b", "FileEditorObservation", output="# 1 file", error=""),
        _act("c", "r3", "three"),
        _saw_early("oc", "c", "BrowserObservation", output="old page", error="no such element"),
        _act("d", "r4", "four"),
        _saw_early("od", "d", "BrowserObservation", output="page", error=None, screenshot_data="aGk="),
        _act("e", "r5", "five"),
        _saw_early("oe", "e", "ExecuteBashObservation", output="half", error=True, **bash),
        _act("f", "r6", "six"),
        _saw_early("of", "f", "FinishObservation", message="All done."),
    ]
    trace, report = _folder(tmp_path, events, id="conv")
    results = [state.results[0] for state in trace.states()]
    assert [result.content for result in results] == [
        "The path does not exist.",
        "# 1 file",
        "Error: no such element",
        f"page\n[image: image/png, 2 bytes, blake2b {_digest(b'hi')}]",
        "[There was an error during command execution.]\nhalf",
        "All done.",
    ]
    assert [result.is_error for result in results] == [True, None, True, None, True, None]
    assert report.tool_errors == 3


def test_failures_stand_under_their_header_and_long_results_are_cut(tmp_path: Path) -> None:
    task = {"kind": "TaskObservation", "task_id": "task_1", "subagent": "general", "status": "error"}
    events = [
        _said("u", "user", "go"),
        _act("a", "r1", "one"),
        _saw("oa", "a", "Error: no such file", is_error=True),
        _act("b", "r2", "two"),
        _saw("ob", "b", "x" * 60_000),
        _act("c", "r3", "three"),
        _saw("oc", "c", "gave up", is_error=True, **task),
        _act("d", "r4", "four"),
        _saw("od", "d", "seen", kind="BrowserObservation", screenshot_data="aGk="),
    ]
    trace, report = _folder(tmp_path, events, id="conv")
    failed, long, tasked, shot = (state.results[0] for state in trace.states())
    # each part of a result is a text of its own, as completion logs show
    assert failed.content == "[An error occurred during execution.]\n\nError: no such file"
    assert (failed.is_error, failed.error_kind, report.tool_errors) == (True, "tool_error", 2)
    assert len(long.content) == 50_000
    assert (long.content[:9], long.content[-3:], "<response clipped>" in long.content) == (
        "xxxxxxxxx",
        "xxx",
        True,
    )
    assert tasked.content.startswith("Task ID: task_1\nSubagent: general\nStatus: error\n[An error")
    assert shot.content == f"seen\n[image: image/png, 2 bytes, blake2b {_digest(b'hi')}]"


def _digest(data: bytes) -> str:
    return hashlib.blake2b(data, digest_size=8).hexdigest()


@pytest.mark.parametrize(("day", "texts"), [("2026-05-30", ["a", "b"]), ("2026-06-05", ["a\nb"])])
def test_user_texts_in_a_row_are_one_message_since_june_2026(
    tmp_path: Path, day: str, texts: list[str]
) -> None:
    events = [_said("u", "user", "a"), _said("v", "user", "b"), _act("c", "r1")]
    trace, _ = _folder(tmp_path, [e | {"timestamp": f"{day}T10:00:00"} for e in events], id="conv")
    assert _seen(trace, 0) == texts


def _tree(*events: tuple[str | None, dict[str, Any]]) -> list[dict[str, Any]]:
    """Events, each behind the one named."""
    return [event | {"parent_id": parent} for parent, event in events]


def test_branches_have_contexts_of_their_own_also_when_one_is_taken_up_again(tmp_path: Path) -> None:
    events = _tree(
        (None, _said("u", "user", "go")),
        ("u", _said("l", "user", "left")),
        ("l", _act("a", "r1", "one")),
        ("a", _saw("oa", "a", "1")),
        ("u", _said("r", "user", "right")),
        ("r", _act("b", "r2", "two")),
        ("b", _saw("ob", "b", "2")),
        ("oa", _act("c", "r3", "three")),
        ("__root__", _said("n", "user", "new")),
        ("n", _act("d", "r4", "four")),
        ("d", _event("ConversationStateUpdateEvent", "x", "environment", key="k", value=1)),
        ("d", _saw("od", "d", "4")),
        ("od", _act("e", "r5", "five")),
    )
    trace, report = _folder(tmp_path, events, id="conv")
    assert [(c.start, len(c.steps)) for c in trace.contexts] == [
        ("start", 1), ("rewind", 1), ("rewind", 1), ("rewind", 2),
    ]  # fmt: skip
    # the tree came after user texts in a row had become one message
    assert [_seen(trace, 0), _seen(trace, 1)] == [["go\nleft"], ["go\nright"]]
    assert _seen(trace, 2) == ["go\nleft", "", "1"]
    assert [_seen(trace, 3), _seen(trace, 3, 1)] == [["new"], ["new", "", "4"]]
    assert (report.branches_real, dict(report.skipped)) == (3, {})


def test_a_parent_that_is_not_there_is_said(tmp_path: Path) -> None:
    events = _tree(
        (None, _said("u", "user", "go")),
        ("u", _act("a", "r1")),
        ("gone", _saw("o", "a", "1")),
        ("o", _act("b", "r2")),
    )
    trace, report = _folder(tmp_path, events, id="conv")
    assert [c.fidelity.context for c in trace.contexts] == ["lost"]
    assert report.flags["parent event is not recorded"] == 1
    assert trace.step_count == 2


@pytest.mark.parametrize(
    ("missing", "lost", "flags"),
    [(1, "lost", 1), (4, "complete", 0)],
)
def test_missing_events_are_counted_and_what_follows_is_lost(
    tmp_path: Path, missing: int, lost: str, flags: int
) -> None:
    trace, _ = _folder(tmp_path, _LINE, id="conv")
    assert trace.contexts[0].fidelity.context == "complete"
    (tmp_path / "events" / f"event-{missing:05d}-{missing}.json").unlink()
    (trace,), report = ingest_file(tmp_path, "openhands_sdk_v1")
    assert trace.contexts[0].fidelity.context == lost
    assert report.flags["gap in the numbers of events"] == flags


_LINE = [
    _said("u", "user", "go"),
    _said("v", "user", "more"),
    _act("a", "r1"),
    _saw("oa", "a", "1"),
    _said("w", "user", "end"),
]


def test_an_event_file_that_is_broken_or_a_folder_is_counted(tmp_path: Path) -> None:
    _folder(tmp_path, _LINE, id="conv")
    (tmp_path / "events" / "event-00001-1.json").write_bytes(b'{"kind": "\xff')
    (tmp_path / "events" / "event-00004-4.json").unlink()
    (tmp_path / "events" / "event-00004-4.json").mkdir()
    (trace,), report = ingest_file(tmp_path, "openhands_sdk_v1")
    assert (trace.step_count, trace.contexts[0].fidelity.context) == (1, "lost")
    assert dict(report.skipped) == {"event file does not parse": 2}


def test_subagents_are_side_traces_under_the_call_that_gave_them_their_task(tmp_path: Path) -> None:
    call = _act("a", "r1")
    call["tool_call"] = {"id": "call-a", "name": "task", "arguments": json.dumps({"prompt": "look there"})}
    child = tmp_path / "subagents" / "0123"
    (child / "events").mkdir(parents=True)
    _write_events(child, [_said("cu", "user", "look there"), _act("cb", "cr1"), _saw("co", "cb", "x")])
    (child / "base_state.json").write_text(json.dumps({"id": "child"}))
    grandchild = child / "subagents" / "4567"
    (grandchild / "events").mkdir(parents=True)
    _write_events(grandchild, [_said("gu", "user", "deeper"), _act("gb", "gr1")])
    (tmp_path / "events").mkdir()
    _write_events(tmp_path, [_said("u", "user", "go"), call, _saw("o", "a", "done"), _act("b", "r2")])
    (main, side, deeper), report = ingest_file(tmp_path, "openhands_sdk_v1")
    assert [t.kind for t in (main, side, deeper)] == ["main", "side", "side"]
    assert (side.parent_trace_id, side.parent_call_id) == (main.trace_id, "call-a")
    assert (deeper.parent_trace_id, deeper.parent_call_id) == (side.trace_id, None)
    assert (report.steps_main, report.steps_side, report.states) == (2, 2, 4)


def _write_events(root: Path, events: list[Any]) -> None:
    for number, event in enumerate(events):
        (root / "events" / f"event-{number:05d}-{number}.json").write_text(json.dumps(event))


def test_usage_model_cost_and_version_of_what_surrounds_the_events(tmp_path: Path) -> None:
    usages = [
        {"response_id": "r1", "model": "deepseek/deepseek-v3", "prompt_tokens": 5, "completion_tokens": 1},
        {"response_id": "r2", "model": "z-ai/glm-4.6", "prompt_tokens": 9, "completion_tokens": 2},
    ]
    metrics = {"model_name": "x", "accumulated_cost": 0.25, "token_usages": usages}
    condenser = {"model_name": "y", "accumulated_cost": 0.05, "token_usages": []}
    state = {
        "id": "conv",
        "agent": {"llm": {"model": "configured", "native_tool_calling": False}},
        "workspace": {"working_dir": "/home/me/orchard"},
        "stats": {"usage_to_metrics": {"agent": metrics, "condenser": condenser}},
    }
    events = [_said("u", "user", "go"), _act("a", "r1"), _saw("o", "a", "1"), _act("b", "r2")]
    trace, report = _folder(tmp_path, events, **state)
    steps = trace.contexts[0].steps
    assert [(s.family, s.usage.prompt_tokens, s.usage.completion_tokens) for s in steps] == [
        ("deepseek", 5, 1), ("zai", 9, 2),
    ]  # fmt: skip
    assert (trace.notes, trace.project) == ({"reported_cost_micro_usd": 300_000}, "orchard")
    assert report.flags["tools and calls are text in the prompt"] == 1
    row = {"instance_id": "a__b-1", "history": events, "metadata": {"openhands_sdk_version": "1.7.2"}}
    row["metrics"] = metrics
    (tmp_path / "output.jsonl").write_text(json.dumps(row))
    (rowed,), _ = ingest_file(tmp_path / "output.jsonl", "openhands_eval_v0")
    assert (rowed.harness_version, rowed.notes["reported_cost_micro_usd"]) == ("1.7.2", 250_000)
    assert [s.family for s in rowed.contexts[0].steps] == ["deepseek", "zai"]


def test_what_a_server_says_of_its_state_stands_in_for_the_base_state(tmp_path: Path) -> None:
    usage = {"response_id": "r1", "prompt_tokens": 5, "completion_tokens": 1}
    stats = {"usage_to_metrics": {"agent": {"model_name": "x", "token_usages": [usage]}}}
    full = {"agent": {"llm": {"model": "qwen/qwen3-coder"}}, "workspace": {"working_dir": "/srv/seedbank"}}
    update = "ConversationStateUpdateEvent"
    events = [
        _event(update, "x", "environment", key="full_state", value=full),
        _said("u", "user", "go"),
        _act("a", "r1"),
        _event(update, "y", "environment", key="stats", value=stats),
    ]
    (trace,), _ = _read(tmp_path / "events.jsonl", events)
    (step,) = trace.contexts[0].steps
    assert (step.model, step.family, step.usage.prompt_tokens) == ("qwen/qwen3-coder", "qwen", 5)
    assert (step.cwd, trace.project) == ("/srv/seedbank", "seedbank")


def test_a_blank_thought_is_not_sent(tmp_path: Path) -> None:
    events = [_said("u", "user", "go"), _act("a", "r1", "ls", "\n\n"), _saw("o", "a", "1")]
    trace, _ = _folder(tmp_path, events, id="conv")
    assert trace.contexts[0].messages[1].content == ""


def test_bookkeeping_is_no_part_of_the_prompt(tmp_path: Path) -> None:
    kinds = [
        "PauseEvent",
        "TokenEvent",
        "StreamingDeltaEvent",
        "CondensationRequest",
        "HookExecutionEvent",
        "New",
    ]
    books = [_event(kind, f"k{n}", "environment", text="x") for n, kind in enumerate(kinds)]
    invalid = _act("b", "r2") | {"action": None, "tool_name": "nothing", "reasoning_content": "because"}
    error = _event(
        "AgentErrorEvent", "e", "agent", error="no such tool", tool_name="x", tool_call_id="call-b"
    )
    events = [
        _said("u", "user", "go"),
        *books[:3],
        _act("a", "r1"),
        *books[3:],
        _saw("oa", "a", "1"),
        invalid,
        error,
    ]
    trace, report = _folder(tmp_path, events, id="conv")
    assert [m.role for m in trace.contexts[0].messages] == ["user", "assistant", "tool", "assistant", "tool"]
    assert trace.contexts[0].messages[3].reasoning == "because"
    assert [report.records[kind] for kind in kinds] == [1] * 6
    assert (report.tool_errors, dict(report.skipped)) == (1, {})


def test_what_an_agent_behind_acp_did_is_not_known(tmp_path: Path) -> None:
    foreign = _event("ACPToolCallEvent", "f", "agent", tool_call_id="x", title="edit", raw_input={"a": 1})
    events = [_said("u", "user", "go"), foreign, _said("m", "agent", "done")]
    trace, report = _folder(tmp_path, events, id="conv")
    assert (trace.contexts[0].fidelity.context, report.steps_main) == ("lost", 1)
    assert report.flags["call of a foreign agent (ACP), not shown"] == 1


def test_numbers_of_events_may_have_more_digits(tmp_path: Path) -> None:
    (tmp_path / "events").mkdir()
    for number, event in zip((99998, 99999, 100000, 100001), _LINE[:4], strict=True):
        (tmp_path / "events" / f"event-{number}-{number:08x}.json").write_text(json.dumps(event))
    (tmp_path / "events" / ".eventlog.lock").write_text("")
    (trace,), report = ingest_file(tmp_path, "openhands_sdk_v1")
    assert [m.content for m in trace.contexts[0].messages] == ["go", "more", "", "1"]
    assert dict(report.skipped) == {}


def test_lines_in_a_json_file_and_a_list_in_a_jsonl_file(tmp_path: Path) -> None:
    lines = tmp_path / "events.json"
    lines.write_text("".join(json.dumps(e) + "\n" for e in _LINE))
    listed = tmp_path / "events.jsonl"
    listed.write_text(json.dumps(_LINE))
    wrapped = tmp_path / "wrapped.jsonl"
    wrapped.write_text(json.dumps({"events": _LINE}))
    single = tmp_path / "single.json"
    single.write_text(json.dumps(_act("z", "r9")))
    traces = [ingest_file(path, "openhands_sdk_v1")[0][0] for path in (lines, listed, wrapped, single)]
    assert [t.contexts[0].messages for t in traces[1:3]] == [traces[0].contexts[0].messages] * 2
    assert [t.step_count for t in traces] == [1, 1, 1, 1]


_PLAN = st.lists(
    st.tuples(
        st.sampled_from(["act", "user", "said", "condense", "tools", "rewind", "torn", "update", "gap"]),
        st.integers(0, 3),
    ),
    max_size=14,
)


def _planned(number: int, kind: str, extra: int) -> list[Any]:
    name = f"e{number}"
    if kind == "user":
        return [_said(name, "user", "more")]
    if kind == "said":
        return [_said(name, "agent", "done", llm_response_id=f"r{number}")]
    if kind == "condense":
        return [_condensed(name, "so far", *(f"e{extra}-{place}" for place in range(4)), f"o{extra}-0")]
    if kind == "tools":
        return [_system(name, *(f"tool{n}" for n in range(extra)), kind="SystemPromptUpdateEvent")]
    if kind == "rewind":
        return [_said(name, "user", "again", parent_id=["u", "of", "__root__", "gone"][extra])]
    if kind == "update":
        return [_event("ConversationStateUpdateEvent", name, "environment", key="k", value=extra)]
    if kind == "gap":
        return ["no event"]
    thinking: dict[str, Any] = {"thinking_blocks": [{}]} if extra == 2 else {}
    acts = [_act(f"{name}-{place}", f"r{number}", str(place), **thinking) for place in range(extra + 1)]
    seen = [_saw(f"o{number}-{place}", f"{name}-{place}", str(place)) for place in range(extra + 1)]
    return [*acts, *reversed(seen[1:] if kind == "torn" else seen)]


def _plan_events(plan: list[tuple[str, int]]) -> list[Any]:
    events: list[Any] = [
        _system("s", "terminal"),
        _said("u", "user", "go"),
        _act("first", "r"),
        _saw("of", "first", "1"),
    ]
    for number, (kind, extra) in enumerate(plan):
        events += _planned(number, kind, extra)
    return events


def _read(path: Path, events: list[Any]) -> tuple[list[Trace], IngestReport]:
    path.write_text("".join(json.dumps(event) + "\n" for event in events))
    return ingest_file(path, "openhands_sdk_v1")


@settings(max_examples=150)
@given(_PLAN)
def test_laws_hold_on_generated_conversations(tmp_path_factory: Any, plan: list[tuple[str, int]]) -> None:
    path = tmp_path_factory.mktemp("laws") / "events.jsonl"
    events = _plan_events(plan)
    traces, report = _read(path, events)
    assert whole_text(traces) == whole_text(ingest_file(path, "openhands_sdk_v1")[0])
    assert report.steps_main == 1 + sum(kind in ("act", "torn", "said") for kind, _ in plan)
    for state in traces[0].states():
        calls = [call.id for call in state.student_action.tool_calls]
        answered = [m.tool_call_id for m in state.messages if m.role == "tool"]
        called = [call.id for m in state.messages for call in m.tool_calls]
        assert not set(calls) & set(answered)
        assert sorted(filter(None, answered)) == sorted(called)  # every call has its result, once
        assert {result.tool_call_id for result in state.results} <= set(calls)
    for context in traces[0].contexts:
        cuts = [step.cut for step in context.steps]
        assert cuts == sorted(set(cuts))
        assert [context.messages[cut].role for cut in cuts] == ["assistant"] * len(cuts)
    # bookkeeping in other places, or none of it: the same sessions
    told = [e for e in events if not (isinstance(e, dict) and e["kind"] == "ConversationStateUpdateEvent")]
    moved, _ = _read(path, [_planned(99, "update", 0)[0], *told])
    assert whole_text(moved) == whole_text(traces)
