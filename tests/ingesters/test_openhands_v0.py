"""OpenHands V0: what the agent saw, rebuilt from events written for these tests."""

import json
from pathlib import Path
from random import Random
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from whole_records import whole_text

from tracemill.ingesters.ingester_classes import OpenHandsIngester
from tracemill.ingesters.openhands.ingest_files import ingest_file
from tracemill.records.message import Message
from tracemill.records.trace import Trace


def _call(
    response: str, calls: list[tuple[str, str, dict[str, Any]]], place: int, text: str = ""
) -> dict[str, Any]:
    """The call metadata of the `place`-th call of a response."""
    listed = [
        {"id": i, "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
        for i, name, arguments in calls
    ]
    message = {"role": "assistant", "content": text, "tool_calls": listed}
    response_dict = {"id": response, "model": "qwen3-coder", "choices": [{"message": message}]}
    return {
        "function_name": calls[place][1],
        "tool_call_id": calls[place][0],
        "model_response": response_dict,
        "total_calls_in_response": len(calls),
    }


def _event(number: int, source: str, **fields: Any) -> dict[str, Any]:
    return {"id": number, "timestamp": f"2026-01-01T00:00:{number % 60:02d}", "source": source, **fields}


def _user(number: int, text: str) -> dict[str, Any]:
    return _event(number, "user", action="message", args={"content": text, "wait_for_response": False})


def _run(number: int, command: str, output: str, code: int = 0, text: str = "") -> list[dict[str, Any]]:
    """An action that runs a command, and its observation."""
    meta = _call(f"r{number}", [(f"c{number}", "execute_bash", {"command": command})], 0, text)
    metadata = {"exit_code": code, "working_dir": "/w", "py_interpreter_path": "", "prefix": "", "suffix": ""}
    return [
        _event(
            number, "agent", action="run", args={"command": command, "thought": text}, tool_call_metadata=meta
        ),
        _event(
            number + 1,
            "agent",
            observation="run",
            content=output,
            cause=number,
            tool_call_metadata=meta,
            extras={"command": command, "metadata": metadata},
        ),
    ]


def _system(number: int) -> dict[str, Any]:
    tool = {
        "type": "function",
        "function": {"name": "execute_bash", "description": "d", "parameters": {"type": "object"}},
    }
    arguments = {"content": "be good", "tools": [tool], "openhands_version": "0.35.0"}
    return _event(number, "agent", action="system", args=arguments)


def _trace(tmp_path: Path, events: list[Any]) -> tuple[Trace, Any]:
    path = tmp_path / "trajectory.json"
    path.write_text(json.dumps(events))
    (trace,), report = ingest_file(path, "openhands_events_v0")
    return trace, report


def _roles(messages: Any) -> list[str]:
    return [message.role for message in messages]


def test_a_session_becomes_steps_with_prefixes_and_facts(tmp_path: Path) -> None:
    events = [
        _system(0),
        _user(1, "fix it"),
        *_run(2, "ls", "a.py", text="look"),
        *_run(4, "cat a.py", "x = 1"),
    ]
    trace, report = _trace(tmp_path, events)
    context = trace.contexts[0]
    assert [step.cut for step in context.steps] == [2, 4]
    assert _roles(context.messages) == ["system", "user", "assistant", "tool", "assistant", "tool"]
    assert context.messages[2].content == "look"
    assert (
        context.messages[3].content
        == "a.py\n[Current working directory: /w]\n[Command finished with exit code 0]"
    )
    assert [step.cwd for step in context.steps] == [None, "/w"]
    assert {(step.model, step.family) for step in context.steps} == {("qwen3-coder", "qwen")}
    assert [step.native_id for step in context.steps] == ["r2", "r4"]
    assert [tool.name for tool in context.tools] == ["execute_bash"]
    assert (context.fidelity.system, context.fidelity.tools, context.fidelity.context) == (
        "recorded", "recorded", "complete",
    )  # fmt: skip
    assert (trace.harness_version, trace.started_at, trace.origin) == (
        "0.35.0", "2026-01-01T00:00:00", "trajectory.json",
    )  # fmt: skip
    assert (report.steps_main, report.tool_calls, report.tool_errors, report.states) == (2, 2, 0, 2)


def test_results_of_parallel_calls_stand_in_call_order_and_a_user_text_outside_of_them(
    tmp_path: Path,
) -> None:
    calls = [("c1", "execute_bash", {"command": "a"}), ("c2", "execute_bash", {"command": "b"})]
    metas = [_call("r", calls, place) for place in (0, 1)]
    observe = {"observation": "run", "extras": {"metadata": {"exit_code": 0}}}
    events = [
        _user(0, "go"),
        _event(1, "agent", action="run", args={"command": "a"}, tool_call_metadata=metas[0]),
        _event(2, "agent", action="run", args={"command": "b"}, tool_call_metadata=metas[1]),
        _event(3, "agent", content="second", tool_call_metadata=metas[1], **observe),
        _user(4, "hurry"),
        _event(5, "agent", content="second again", tool_call_metadata=metas[1], **observe),
        _event(6, "agent", content="first", tool_call_metadata=metas[0], **observe),
        _event(7, "agent", content="first again", tool_call_metadata=metas[0], **observe),
        *_run(8, "c", "done"),
    ]
    trace, report = _trace(tmp_path, events)
    first, second = trace.contexts
    assert _roles(first.messages) == ["user", "assistant", "tool", "tool", "user"]
    # the harness shows a response when all its calls are answered: what was said meanwhile stands before it
    assert (second.start, [step.cut for step in second.steps]) == ("rewritten", [5])
    assert _roles(second.messages) == ["user", "user", "assistant", "tool", "tool", "assistant", "tool"]
    for messages in (first.messages[2:4], second.messages[3:5]):
        assert [m.tool_call_id for m in messages] == ["c1", "c2"]
        assert [m.content.split("\n")[0] for m in messages] == ["first", "second"]
    assert (first.messages[4].content, second.messages[1].content) == ("hurry", "\n\nhurry")
    assert report.flags["second result of one call"] == 2
    assert report.tool_calls == 3


def test_a_call_without_a_result_is_out_of_the_later_prompts(tmp_path: Path) -> None:
    events = [
        _user(0, "go"),
        *_run(1, "ls", "a"),
        _run(3, "sleep", "")[0],
        _user(4, "stop"),
        *_run(5, "pwd", "/w"),
        {**_run(3, "sleep", "late")[1], "id": 7},
        *_run(8, "id", "me"),
    ]
    trace, report = _trace(tmp_path, events)
    assert [(c.start, len(c.steps)) for c in trace.contexts] == [
        ("start", 2), ("rewritten", 1), ("rewritten", 1),
    ]  # fmt: skip
    seen = [[c.arguments for m in s.messages for c in m.tool_calls] for s in list(trace.states())[1:]]
    ls, sleep, pwd = (json.dumps({"command": name}) for name in ("ls", "sleep", "pwd"))
    # a response is shown where its last result came
    assert seen == [[ls], [ls], [ls, pwd, sleep]]
    assert report.flags == {"call without a result": 1, "result after the next step began": 1}
    assert report.steps_main == 4


def test_a_finish_of_the_past_is_plain_text(tmp_path: Path) -> None:
    meta = _call("rf", [("cf", "finish", {"message": "all done"})], 0, "said")
    finish = _event(3, "agent", action="finish", args={"thought": "thought"}, tool_call_metadata=meta)
    events = [_user(0, "go"), *_run(1, "ls", "a"), finish, _user(4, "more"), *_run(5, "pwd", "/w")]
    trace, report = _trace(tmp_path, events)
    first, second = trace.contexts
    assert first.messages[first.steps[1].cut].tool_calls[0].name == "finish"
    past = second.messages[second.steps[0].cut - 2]
    assert (past.role, past.content, past.tool_calls) == ("assistant", "thought\nsaid", ())
    assert (second.start, dict(report.flags)) == ("rewritten", {})


def test_failures_are_told_with_their_kind(tmp_path: Path) -> None:
    edit = _call("re", [("ce", "str_replace_editor", {"command": "str_replace", "path": "/a"})], 0)
    refused = _call("rr", [("cr", "execute_bash", {"command": "rm"})], 0)
    broken = _call("rb", [("cb", "browser", {"code": "goto()"})], 0)
    events = [
        _user(0, "go"),
        *_run(1, "false", "", 1),
        *_run(3, "sleep 99", "", -1),
        *_run(5, "true", "", 0),
        _event(7, "agent", action="edit", args={"path": "/a"}, tool_call_metadata=edit),
        _event(
            8, "agent", observation="edit", content="ERROR:\nnot there", tool_call_metadata=edit, extras={}
        ),
        _event(9, "agent", action="run", args={"command": "rm"}, tool_call_metadata=refused),
        _event(10, "user", observation="user_rejected", content="no", tool_call_metadata=refused, extras={}),
        _event(11, "agent", action="browse", args={"url": "u"}, tool_call_metadata=broken),
        _event(12, "agent", observation="error", content="no page", tool_call_metadata=broken, extras={}),
    ]
    trace, report = _trace(tmp_path, events)
    results = [state.results[0] for state in trace.states()]
    assert [(r.is_error, r.error_kind) for r in results] == [
        (True, "exit_code"),
        (True, "timeout"),
        (False, None),
        (True, "tool_error"),
        (True, "user_rejection"),
        (True, "tool_error"),
    ]
    assert "exit code -1" not in results[1].content
    assert results[4].content == "OBSERVATION:\nno\n[Last action has been rejected by the user]"
    assert results[5].content == "no page\n[Error occurred in processing last action]"
    # two exit codes other than 0 and one error observation; two failures more that only the text tells
    assert (report.tool_errors, report.flags["failure detected from the tool's output text"]) == (3, 2)


def test_a_response_that_did_not_parse_is_a_lost_step_and_its_error_is_shown(tmp_path: Path) -> None:
    events = [
        _user(0, "go"),
        *_run(1, "ls", "a"),
        _event(3, "agent", observation="error", content="bad parameter", extras={"error_id": ""}),
        *_run(4, "ls", "a"),
    ]
    trace, report = _trace(tmp_path, events)
    assert report.skipped == {"step lost: the response was malformed and is not recorded": 1}
    shown = trace.contexts[0].messages[3]
    assert (shown.role, shown.content, shown.is_error) == (
        "user", "bad parameter\n[Error occurred in processing last action]", True,
    )  # fmt: skip


def test_silent_events_are_no_messages_and_consecutive_user_texts_are_set_apart(tmp_path: Path) -> None:
    events = [
        _event(
            0, "environment", observation="agent_state_changed", content="", extras={"agent_state": "loading"}
        ),
        _user(1, "first"),
        _event(2, "environment", action="change_agent_state", args={"agent_state": "running"}),
        _user(3, "second"),
        _event(4, "environment", observation="null", content="", extras={}),
        _event(5, "user", action="run", args={"command": "ls"}),
        _event(6, "user", observation="run", content="a", cause=5, extras={"metadata": {"exit_code": 0}}),
        _event(7, "agent", action="message", args={"content": "hello", "wait_for_response": True}),
    ]
    trace, report = _trace(tmp_path, events)
    texts = [m.content for m in trace.contexts[0].messages]
    assert texts[:2] == ["first", "\n\nsecond"]
    assert texts[2] == "\n\nUser executed the command:\nls"
    assert texts[3].startswith("\n\n\nObserved result of command executed by user:\na")
    assert (texts[4], report.steps_main, report.tool_calls) == ("hello", 1, 0)
    assert report.records["O:agent_state_changed"] == 1


def _recall(number: int, kind: str, *names: str) -> dict[str, Any]:
    knowledge = [{"name": n, "trigger": n, "content": f"about {n}"} for n in names]
    extras = {"recall_type": kind, "date": "2026-01-01", "microagent_knowledge": knowledge}
    return _event(number, "environment", observation="recall", content="", extras=extras)


def test_a_condensation_starts_a_context_with_the_summary_in_its_place(tmp_path: Path) -> None:
    events = [
        _system(0),
        _user(1, "task"),
        _event(2, "user", action="recall", args={"query": "task"}),
        _recall(3, "workspace_context"),
        *_run(4, "one", "1"),
        _recall(6, "knowledge", "git"),
        *_run(7, "two", "2"),
        _event(9, "agent", action="condensation", args=_forget(4, 6, "so far: one", 4)),
        *_run(10, "three", "3"),
        _recall(12, "knowledge", "git"),
        _event(13, "agent", action="condensation", args=_forget(7, 8, "so far: one, two", 4)),
        *_run(14, "four", "4"),
    ]
    trace, report = _trace(tmp_path, events)
    first, second, third = trace.contexts
    assert report.compactions == 2
    assert [c.start for c in trace.contexts] == ["start", "compaction", "compaction"]
    assert [len(c.steps) for c in trace.contexts] == [2, 1, 1]
    assert _roles(second.messages[: second.steps[0].cut]) == [
        "system",
        "user",
        "user",
        "user",
        "assistant",
        "tool",
    ]
    assert second.messages[3].content.strip() == "so far: one"
    assert [c.arguments for m in second.messages for c in m.tool_calls] == [
        '{"command": "two"}',
        '{"command": "three"}',
    ]
    assert third.messages[3].content.strip() == "so far: one, two"
    assert [c.arguments for m in third.messages for c in m.tool_calls] == [
        '{"command": "three"}',
        '{"command": "four"}',
    ]
    # knowledge is shown once in a context, and again where the first time was forgotten
    assert [sum("about git" in m.content for m in c.messages) for c in trace.contexts] == [1, 1, 1]
    assert first.messages[: first.steps[1].cut][-1].content.strip().endswith("about git")


def _forget(first: int, last: int, summary: str, offset: int) -> dict[str, Any]:
    return {
        "forgotten_event_ids": None,
        "forgotten_events_start_id": first,
        "forgotten_events_end_id": last,
        "summary": summary,
        "summary_offset": offset,
    }


def _delegation(number: int, agent: str, *inner: dict[str, Any]) -> list[dict[str, Any]]:
    """A delegation, the delegate's events, and its result."""
    meta = _call(f"rd{number}", [(f"cd{number}", "delegate", {"agent": agent})], 0)
    outputs = {"outputs": {"content": f"found {number}"}}
    begin = _event(number, "agent", action="delegate", args={"agent": agent}, tool_call_metadata=meta)
    end = {"observation": "delegate", "content": "", "extras": outputs, "tool_call_metadata": meta}
    return [begin, *inner, _event(inner[-1]["id"] + 1, "agent", **end)]


def test_a_delegate_is_a_side_trace_of_the_call_that_delegated(tmp_path: Path) -> None:
    nested = _delegation(14, "CodeActAgent", _user(15, "deeper"), *_run(16, "innermost", "z"))
    events = [
        _user(0, "go"),
        *_delegation(1, "CodeActAgent", _user(2, "look"), *_run(3, "inner", "x")),
        *_delegation(11, "BrowsingAgent", _user(12, "browse"), *nested, *_run(20, "last", "w")),
        *_run(30, "outer", "y"),
    ]
    path = tmp_path / "events.json"
    path.write_text(json.dumps(events))
    (main, first, second, third), report = ingest_file(path, "openhands_events_v0")
    shown = [[m.content.split("\n")[0] for m in t.contexts[0].messages if m.content] for t in (main, first)]
    assert shown == [["go", "found 1", "found 11", "y"], ["look", "x"]]
    assert [t.kind for t in (main, first, second, third)] == ["main", "side", "side", "side"]
    assert (first.parent_trace_id, first.parent_call_id) == (main.trace_id, "cd1")
    assert (second.parent_trace_id, second.parent_call_id) == (main.trace_id, "cd11")
    assert (third.parent_trace_id, third.parent_call_id) == (second.trace_id, "cd14")
    kept = [t.contexts[0].fidelity.context for t in (main, first, second, third)]
    assert kept == ["complete", "complete", "lost", "complete"]  # a browser agent makes its own prompts
    assert (report.traces, report.steps_main, report.steps_side, report.tool_calls) == (4, 3, 4, 7)


def test_a_delegate_still_at_work_reaches_to_the_end(tmp_path: Path) -> None:
    begun = _delegation(1, "CodeActAgent", _user(2, "look"), *_run(3, "inner", "x"))[:-1]
    idle = _delegation(1, "CodeActAgent", _user(2, "look"))[:-1]
    path = tmp_path / "events.json"
    path.write_text(json.dumps([_user(0, "go"), *begun]))
    (main, side), _ = ingest_file(path, "openhands_events_v0")
    path.write_text(json.dumps([_user(0, "go"), *idle]))
    (alone,), report = ingest_file(path, "openhands_events_v0")
    assert alone.trace_id == main.trace_id
    assert (side.kind, side.step_count, report.flags["delegate without a step"]) == ("side", 1, 1)


def test_the_task_stays_though_a_condensation_forgets_it(tmp_path: Path) -> None:
    events = [
        _system(0),
        _user(1, "task"),
        *_run(2, "one", "1"),
        _event(4, "agent", action="condensation", args={"forgotten_event_ids": [1, 2, 3]}),
        *_run(5, "two", "2"),
    ]
    trace, _ = _trace(tmp_path, events)
    second = trace.contexts[1]
    assert [(m.role, m.content) for m in second.messages[:2]] == [("system", "be good"), ("user", "task")]
    assert [step.cut for step in second.steps] == [2]


def test_events_come_in_the_order_of_their_ids(tmp_path: Path) -> None:
    events = [_system(0), _user(1, "go"), *_run(2, "one", "1"), *_run(5, "two", "2"), _user(9, "on")]
    trace, report = _trace(tmp_path, events)
    shuffled, other = _trace(tmp_path, [events[place] for place in (4, 2, 6, 0, 1, 5, 3)])
    assert whole_text(shuffled) == whole_text(trace)
    assert (report.flags, other.flags) == ({}, {"events out of order": 1})


def test_a_session_keeps_its_identity_while_it_grows(tmp_path: Path) -> None:
    said = _event(1, "agent", action="message", args={"content": "hello"})
    events = [_user(0, "go"), said, _user(2, "on"), *_run(3, "ls", "a"), _user(5, "more")]
    silent = _event(9, "environment", observation="agent_state_changed", content="", extras={})
    ids = {_trace(tmp_path, events[:length])[0].trace_id for length in (2, 3, 5, 6)}
    ids.add(
        _trace(tmp_path, [silent | {"id": 0}, *({**e, "id": e["id"] + 1} for e in events[:2])])[0].trace_id
    )
    assert len(ids) == 1
    other = _trace(tmp_path, [_user(0, "go"), said | {"timestamp": "2026-01-01T00:00:59"}])[0].trace_id
    assert other not in ids


def test_an_event_that_is_there_twice_is_read_once(tmp_path: Path) -> None:
    said = _event(1, "agent", action="message", args={"content": "hello"})
    other = _event(1, "agent", action="message", args={"content": "of the same number"})
    trace, report = _trace(tmp_path, [_user(0, "go"), said, dict(said), other])
    assert [m.content for m in trace.contexts[0].messages] == ["go", "hello", "of the same number"]
    assert report.skipped == {"repeated event": 1}


def test_an_event_that_cannot_be_read_makes_what_follows_lost(tmp_path: Path) -> None:
    events = [_user(0, "go"), *_run(1, "one", "1"), *_run(3, "two", "2")]
    whole, _ = _trace(tmp_path, events)
    torn, report = _trace(tmp_path, [*events[:1], "torn", *events[1:]])
    ended, _ = _trace(tmp_path, [*events, "torn"])
    assert [t.contexts[0].fidelity.context for t in (whole, torn, ended)] == ["complete", "lost", "complete"]
    assert report.skipped == {"event is not an object": 1}
    assert whole.trace_id == torn.trace_id == ended.trace_id


def test_a_session_folder_with_what_lies_beside_its_events(tmp_path: Path) -> None:
    events = [_user(0, "go"), *_run(1, "one", "1"), *_run(3, "two", "2")]
    for event in events:  # as before the response named its model
        event.get("tool_call_metadata", {}).get("model_response", {}).pop("model", None)
    events[2]["llm_metrics"] = {"accumulated_cost": 0.01}
    events[4]["llm_metrics"] = {"accumulated_cost": 0.03}
    folder = tmp_path / "abc" / "events"
    folder.mkdir(parents=True)
    for event in events[:3]:
        (folder / f"{event['id']}.json").write_text(json.dumps(event))
    (folder / "3.json").write_text('{"id": 3, ')
    (folder / "5.json").mkdir()
    pages = tmp_path / "abc" / "event_cache"
    pages.mkdir()
    (pages / "0-25.json").write_text(json.dumps(events))
    session = {"selected_repository": "orchard/seedbank", "llm_model": "moonshot/kimi-k2"}
    (tmp_path / "abc" / "metadata.json").write_text(json.dumps(session))
    ingester = OpenHandsIngester()
    (trace,) = ingester.ingest(tmp_path)
    (report,) = ingester.reports
    assert (trace.repository, trace.origin, trace.step_count) == ("orchard/seedbank", "abc", 2)
    assert [step.family for step in trace.contexts[0].steps] == ["moonshot", "moonshot"]
    assert trace.contexts[0].fidelity.context == "complete"  # nothing came after what is missing
    assert trace.notes == {"reported_cost_micro_usd": 30_000}
    assert report.flags == {"event out of the event cache": 2}
    assert report.skipped == {"event file does not parse": 1}
    for path in folder.iterdir():
        path.rmdir() if path.is_dir() else path.unlink()
    folder.rmdir()
    (again,) = ingester.ingest(tmp_path)
    assert again == trace


_ACTIONS = st.lists(
    st.tuples(
        st.sampled_from(
            ["run", "parallel", "user", "message", "silent", "condense", "torn", "finish", "said", "lost"]
        ),
        st.integers(0, 3),
    ),
    max_size=14,
)


@settings(max_examples=150)
@given(_ACTIONS, st.randoms(use_true_random=False))
def test_laws_hold_on_generated_sessions(
    tmp_path_factory: Any, plan: list[tuple[str, int]], random: Random
) -> None:
    folder = tmp_path_factory.mktemp("laws")
    events, number = [_user(0, "start"), *_run(1, "first", "1")], 3
    for kind, extra in plan:
        made = _planned(kind, extra, number)
        events += made
        number += len(made)
    path = folder / "events.json"
    path.write_text(json.dumps(events))
    traces, report = ingest_file(path, "openhands_events_v0")
    again, _ = ingest_file(path, "openhands_events_v0")
    assert whole_text(traces) == whole_text(again)
    steps = ("run", "parallel", "message", "torn", "finish", "said")
    assert report.steps_main == 1 + sum(kind in steps for kind, _ in plan)
    for state in traces[0].states():
        _holds(state.messages, state.student_action.tool_calls, state.results)
    for context in traces[0].contexts:
        cuts = [step.cut for step in context.steps]
        assert cuts == sorted(set(cuts))
        assert [context.messages[cut].role for cut in cuts] == ["assistant"] * len(cuts)
    random.shuffle(events)
    path.write_text(json.dumps(events))
    assert whole_text(ingest_file(path, "openhands_events_v0")[0]) == whole_text(traces)


def _planned(kind: str, extra: int, number: int) -> list[dict[str, Any]]:
    if kind == "run":
        return _run(number, f"c{number}", "out", extra)
    if kind == "torn":
        return _run(number, f"c{number}", "out")[:1]
    if kind == "said":  # while the command ran
        run = _run(number, f"c{number}", "out")
        return [run[0], _user(number + 1, "hurry"), run[1] | {"id": number + 2}]
    if kind == "finish":
        meta = _call(f"r{number}", [(f"c{number}", "finish", {})], 0)
        args = {"thought": "done"}
        return [_event(number, "agent", action="finish", args=args, tool_call_metadata=meta)]
    if kind == "lost":
        return [_event(number, "agent", observation="error", content="bad call", extras={})]
    if kind == "user":
        return [_user(number, "more")]
    if kind == "message":
        return [_event(number, "agent", action="message", args={"content": "said"})]
    if kind == "silent":
        return [_event(number, "environment", observation="null", content="", extras={})]
    if kind == "condense":
        return [_event(number, "agent", action="condensation", args=_forget(1, number - 1 - extra, "sum", 1))]
    calls = [(f"p{number}-{i}", "execute_bash", {"command": str(i)}) for i in range(extra + 1)]
    metas = [_call(f"rp{number}", calls, i) for i in range(len(calls))]
    acts = [
        _event(number + i, "agent", action="run", args={}, tool_call_metadata=m) for i, m in enumerate(metas)
    ]
    seen = [
        _event(
            number + len(metas) + i,
            "agent",
            observation="run",
            content=str(i),
            tool_call_metadata=m,
            extras={},
        )
        for i, m in enumerate(reversed(metas))
    ]
    return acts + seen


def _holds(prefix: Any, calls: Any, results: tuple[Message, ...]) -> None:
    """No own result in the prefix; each call of the prefix has its result, once, in call order."""
    own = [call.id for call in calls]
    answered = [m.tool_call_id for m in prefix if m.role == "tool"]
    called = [call.id for m in prefix for call in m.tool_calls]
    assert not set(own) & set(answered)
    assert answered == called
    assert [r.tool_call_id for r in results] in (own, [])


def test_an_ingester_reads_a_folder_and_names_what_is_not_its_own(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "t.json").write_text(json.dumps([_user(0, "go"), *_run(1, "ls", "a")]))
    (tmp_path / "a" / "other.json").write_text('{"name": "package"}')
    events = tmp_path / "session" / "events"
    events.mkdir(parents=True)
    for event in [
        _user(0, "other"),
        *_run(1, "ls", "a"),
        *_run(3, "ls", "a"),
        *_run(9, "ls", "b"),
        *_run(11, "ls", "b"),
    ]:
        (events / f"{event['id']}.json").write_text(json.dumps(event))
    ingester = OpenHandsIngester()
    traces = list(ingester.ingest(tmp_path))
    assert [(t.origin, t.step_count) for t in traces] == [("t.json", 1), ("session", 4)]
    assert [bool(r.error) for r in ingester.reports] == [True, False, False]
