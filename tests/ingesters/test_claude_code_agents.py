"""Claude Code: subagents inside a session's file and in files of their own, linked to their calls."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from claude_code_records import SESSION, answer, attachment, ingest, line, says, texts, user, write

from tracemill.ingesters.claude_code.ingest_session import ingest_file
from tracemill.ingesters.companion_files import digest_companion_files
from tracemill.ingesters.ingester_classes import ClaudeCodeIngester
from tracemill.records.identity import make_trace_id
from tracemill.records.trace import Trace

SIDE = {"isSidechain": True}
MAIN_ID = make_trace_id("claude_code", SESSION, "", "1")


def test_subagents_inside_the_file_are_side_traces_of_the_call_with_their_prompt(tmp_path: Path) -> None:
    traces, report = ingest(
        tmp_path,
        user("1", None, "go"),
        says("2", "1", "m1", ("t1", "Task", {"prompt": "look here"})),
        says("3", "2", "m1", ("t2", "Task", {"prompt": "look there"})),
        user("4", None, "look there", **SIDE),
        user("5", None, "look here", **SIDE),
        says("6", "4", "s1", "there", **SIDE),
        says("7", "5", "s2", ("x", "Bash"), **SIDE),
        answer("8", "7", "x", "out", **SIDE),
        says("9", "8", "s3", "here", **SIDE),
        answer("10", "2", "t1", "here"),
        answer("11", "3", "t2", "there"),
        says("12", "11", "m2", "done"),
    )
    main, there, here = traces
    assert [trace.kind for trace in traces] == ["main", "side", "side"]
    assert (there.parent_trace_id, there.parent_call_id) == (main.trace_id, "t2")
    assert (here.parent_trace_id, here.parent_call_id) == (main.trace_id, "t1")
    assert texts(here.contexts[0].messages) == [
        "user:look here",
        "assistant:",
        "tool:out",
        "assistant:here",
    ]
    assert texts(main.contexts[0].messages)[2:] == ["tool:here", "tool:there", "assistant:done"]
    assert (report.steps_main, report.steps_side, report.tool_calls) == (2, 3, 2)
    assert report.flags["tool calls of subagents"] == 1


def test_two_agents_of_one_prompt_are_linked_in_the_order_of_their_calls(tmp_path: Path) -> None:
    traces, _ = ingest(
        tmp_path,
        user("1", None, "go"),
        says("2", "1", "m1", ("t1", "Task", {"prompt": "look"}), ("t2", "Task", {"prompt": " look "})),
        user("3", None, "look", **SIDE),
        user("4", None, "look", **SIDE),
        says("5", "3", "s1", "one", **SIDE),
        says("6", "4", "s2", "two", **SIDE),
        answer("7", "2", "t1", "one"),
        answer("8", "2", "t2", "two"),
    )
    assert [trace.parent_call_id for trace in traces] == [None, "t1", "t2"]


@pytest.mark.parametrize(
    ("result", "fields"),
    [
        ("found", {"toolUseResult": {"agentId": "abc1234", "status": "completed"}}),
        ("Async agent launched.\nagentId: abc1234 (internal)", {}),
    ],
    ids=["twin", "text"],
)
def test_an_agent_inside_the_file_is_known_by_its_id(
    tmp_path: Path, result: str, fields: dict[str, Any]
) -> None:
    traces, _ = ingest(
        tmp_path,
        user("1", None, "go"),
        says("2", "1", "m1", ("t1", "Agent", {"prompt": "look"}), ("t2", "Bash")),
        answer("3", "2", "t2", "agentId: abc1234 in a file"),
        answer("4", "2", "t1", result, **fields),
        user("5", None, "another text", agentId="abc1234", **SIDE),
        says("6", "5", "s1", "found", agentId="abc1234", **SIDE),
    )
    assert (traces[1].parent_trace_id, traces[1].parent_call_id) == (MAIN_ID, "t1")
    assert traces[1].trace_id == make_trace_id("claude_code", SESSION, "abc1234", "5")


def test_progress_that_repeats_the_messages_of_an_agent_is_counted_for_nothing(tmp_path: Path) -> None:
    inner = {"type": "assistant", "message": {"id": "s1", "role": "assistant", "content": "inside"}}
    data = {"type": "agent_progress", "agentId": "abc1234", "message": inner, "prompt": "look"}
    traces, report = ingest(
        tmp_path,
        user("1", None, "go"),
        says("2", "1", "m1", ("t1", "Task", {"prompt": "look"})),
        line("progress", "p1", "2", data=data, parentToolUseID="t1", toolUseID="agent_msg"),
        line("progress", "p2", "p1", data=data, parentToolUseID="t1", toolUseID="agent_msg"),
        answer("3", "2", "t1", "found"),
        says("4", "3", "m2", "done"),
    )
    assert (report.steps_main, report.steps_side, report.states, len(traces)) == (2, 0, 2, 1)
    assert report.records["progress"] == 2


def write_agent(folder: Path, name: str = "abc1234", session: str = SESSION) -> Path:
    fields = SIDE | {"agentId": name, "sessionId": session}
    return write(
        folder / f"agent-{name}.jsonl",
        user("a1", None, "look", **fields),
        says("a2", "a1", "s1", "found", **fields),
    )


def only(path: Path) -> Trace:
    (trace,) = ingest_file(path)[0]
    return trace


@pytest.mark.parametrize("link", ["result", "text", "progress", "prompt", "none"])
@pytest.mark.parametrize("layout", ["folder", "beside"])
def test_an_agent_of_its_own_file_is_linked_to_the_session_beside_it(
    tmp_path: Path, link: str, layout: str
) -> None:
    prompt = "look" if link == "prompt" else "elsewhere"
    records = [user("1", None, "go"), says("2", "1", "m1", ("t1", "Task", {"prompt": prompt}))]
    if link == "progress":
        data = {"type": "agent_progress", "agentId": "abc1234"}
        records.append(line("progress", "2p", "2", data=data, parentToolUseID="t1"))
    twin = {"toolUseResult": {"agentId": "abc1234"}} if link == "result" else {}
    text = [{"type": "text", "text": "agentId: abc1234"}] if link == "text" else "found"
    records.append(answer("3", "2", "t1", text, **twin))
    write(tmp_path / f"{SESSION}.jsonl", *records)
    folder = tmp_path / SESSION / "subagents" if layout == "folder" else tmp_path
    traces, report = ingest_file(write_agent(folder))
    (trace,) = traces
    assert trace.trace_id == make_trace_id("claude_code", SESSION, "abc1234", "a1")
    assert trace.parent_trace_id == MAIN_ID
    assert trace.parent_call_id == (None if link == "none" else "t1")
    assert (trace.kind, report.steps_main, report.steps_side) == ("side", 0, 1)


def test_an_agent_of_a_workflow_is_linked_to_the_call_that_launched_its_run(tmp_path: Path) -> None:
    records = [user("1", None, "go")]
    for number, run in enumerate(("wf_0", "wf_1", "wf_11")):
        call, twin = f"t{number}", {"status": "async_launched", "runId": run}
        records.append(says(f"a{number}", records[-1]["uuid"], f"m{number}", (call, "Workflow")))
        records.append(answer(f"r{number}", f"a{number}", call, f"Run ID: {run}", toolUseResult=twin))
    main = write(tmp_path / f"{SESSION}.jsonl", *records)
    path = write_agent(tmp_path / SESSION / "subagents" / "workflows" / "wf_1")
    (trace,), _ = ingest_file(path)
    assert (trace.kind, trace.parent_trace_id, trace.parent_call_id) == ("side", MAIN_ID, "t1")
    before = digest_companion_files(path, "claude_code")
    write(main, *records, user("9", "r2", "more"))
    assert digest_companion_files(path, "claude_code") != before
    main.unlink()
    (alone,), _ = ingest_file(path)
    assert (alone.trace_id, alone.parent_trace_id, alone.parent_call_id) == (trace.trace_id, None, None)


def test_a_prompt_that_two_calls_gave_tells_nothing(tmp_path: Path) -> None:
    calls = [("t1", "Task", {"prompt": "look"}), ("t2", "Task", {"prompt": "look"})]
    write(tmp_path / f"{SESSION}.jsonl", user("1", None, "go"), says("2", "1", "m1", *calls))
    trace = only(write_agent(tmp_path / SESSION / "subagents"))
    assert (trace.parent_trace_id, trace.parent_call_id) == (MAIN_ID, None)


def test_agent_ids_that_two_sessions_share_are_kept_apart(tmp_path: Path) -> None:
    for session in ("one", "two"):
        records = [user("1", None, "go"), says("2", "1", "m1", ("t1", "Task", {"prompt": "look"}))]
        records.append(answer("3", "2", "t1", "found", toolUseResult={"agentId": "abc1234"}))
        write(tmp_path / f"{session}.jsonl", *[record | {"sessionId": session} for record in records])
        write_agent(tmp_path / session / "subagents", session=session)
    traces = list(ClaudeCodeIngester().ingest(tmp_path))
    sides = {trace.parent_trace_id: trace.trace_id for trace in traces if trace.kind == "side"}
    assert len(set(sides.values())) == 2
    assert sides.keys() == {trace.trace_id for trace in traces if trace.kind == "main"}


def test_the_session_beside_it_may_be_compressed_or_missing(tmp_path: Path) -> None:
    agent = write_agent(tmp_path / SESSION / "subagents")
    assert (only(agent).parent_trace_id, only(agent).parent_call_id) == (None, None)
    records = [user("1", None, "go"), says("2", "1", "m1", ("t1", "Task", {"prompt": "look"}))]
    packed = gzip.compress("".join(json.dumps(record) + "\n" for record in records).encode())
    (tmp_path / f"{SESSION}.jsonl.gz").write_bytes(packed)
    assert (only(agent).parent_trace_id, only(agent).parent_call_id) == (MAIN_ID, "t1")
    (tmp_path / f"{SESSION}.jsonl.gz").write_bytes(packed[:40])
    assert only(agent).parent_call_id is None


def test_an_agent_of_an_agent_is_linked_to_the_agent_that_called_it(tmp_path: Path) -> None:
    folder = tmp_path / SESSION / "subagents"
    write(tmp_path / f"{SESSION}.jsonl", user("1", None, "go"), says("2", "1", "m1", "hm"))
    middle = SIDE | {"agentId": "middle1"}
    write(
        folder / "agent-middle1.jsonl",
        user("b1", None, "ask someone", **middle),
        says("b2", "b1", "s2", ("t9", "Agent", {"prompt": "look"}), **middle),
        answer("b3", "b2", "t9", "found", toolUseResult={"agentId": "abc1234"}, **middle),
    )
    agent = write_agent(folder)
    assert only(agent).parent_call_id is None
    (folder / "agent-abc1234.meta.json").write_text('{"agentType": "Explore", "spawnDepth": 2}')
    trace = only(agent)
    assert trace.parent_trace_id == make_trace_id("claude_code", SESSION, "middle1", "b1")
    assert trace.parent_call_id == "t9"


def test_the_call_that_summarises_a_session_is_a_side_trace_with_lost_context(tmp_path: Path) -> None:
    side = SIDE | {"agentId": "acompact-1"}
    write(tmp_path / f"{SESSION}.jsonl", user("1", None, "go"), says("2", "1", "m1", "hm"))
    path = write(
        tmp_path / SESSION / "subagents" / "agent-acompact-1.jsonl",
        user("a0", "of-the-main-file", "the last thing said", **side),
        user("a1", "a0", "summarise", **side),
        says("a2", "a1", "s1", "it went so", **side),
    )
    trace = only(path)
    assert (trace.kind, trace.notes["summariser"]) == ("side", 1)
    assert (trace.parent_trace_id, trace.parent_call_id) == (MAIN_ID, None)
    (state,) = trace.states()
    assert texts(state.messages) == ["user:the last thing said", "user:summarise"]
    assert state.fidelity.context == "lost"


def test_what_an_agent_in_the_background_found_comes_as_a_note(tmp_path: Path) -> None:
    note = "<task-notification>\n<task-id>abc1234</task-id>\nfound it\n</task-notification>"
    traces, _ = ingest(
        tmp_path,
        user("1", None, "go"),
        says("2", "1", "m1", ("t1", "Task", {"prompt": "look", "run_in_background": True})),
        answer("3", "2", "t1", "launched", toolUseResult={"isAsync": True, "agentId": "abc1234"}),
        says("4", "3", "m2", ("x", "Bash")),
        answer("5", "4", "x", "out"),
        attachment("6", "5", type="queued_command", prompt=note, commandMode="task-notification"),
        says("7", "6", "m3", "so it is"),
        user("8", "7", note.replace("found", "and"), origin={"kind": "task-notification"}),
        says("9", "8", "m4", "both"),
        user("a1", None, "look", agentId="abc1234", **SIDE),
        says("a2", "a1", "s1", "found it", agentId="abc1234", **SIDE),
    )
    main, side = traces
    assert len(main.contexts) == 1
    assert texts(list(main.states())[2].messages)[-2:] == ["tool:out", f"user:{note}"]
    assert texts(list(main.states())[3].messages)[-1].startswith("user:<task-notification>")
    assert side.parent_call_id == "t1"


def test_a_subagent_that_only_progress_records_tell_of_is_counted(tmp_path: Path) -> None:
    def told(uuid: str, agent: str, kind: str) -> dict[str, Any]:
        data = {
            "type": "agent_progress",
            "agentId": agent,
            "prompt": "look",
            "message": {"type": kind, "uuid": uuid},
        }
        return line("progress", f"p{uuid}", "2", data=data, parentToolUseID="a")

    records = [
        user("1", None, "go"),
        says("2", "1", "m1", ("a", "Task", {"prompt": "look"})),
        *(told(f"{agent}{n}", agent, "assistant") for agent in ("x1", "x2", "x3", "../x4") for n in range(3)),
        answer("3", "2", "a", "found"),
        says("4", "3", "m2", "done"),
        line("user", "s1", None, isSidechain=True, agentId="x3", message={"content": "look"}),
        line("assistant", "s2", "s1", isSidechain=True, agentId="x3", message={"id": "s", "content": "seen"}),
    ]
    own = tmp_path / "session" / "subagents" / "agent-x2.jsonl"
    own.parent.mkdir(parents=True)
    own.write_text("{}\n")
    traces, report = ingest(tmp_path, *records)
    assert report.skipped == {"subagent that only progress records tell of": 2}
    assert [trace.kind for trace in traces] == ["main", "side"]
