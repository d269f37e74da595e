"""Databases of Cursor and its exports: what is known of what was shown at each step."""

import json
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from changed_parts import changed
from cursor_records import CursorConversation, count_database, tool, write_database
from file_readers import file_reader
from hypothesis import HealthCheck, given, settings

from tracemill.harnesses.core.vocabulary import Operation
from tracemill.harnesses.operations import find_action_operation
from tracemill.ingesters.census import take_census
from tracemill.ingesters.cursor.ingest_conversations import iter_export_traces, iter_traces
from tracemill.ingesters.detect_format import DATABASE, detect
from tracemill.ingesters.discover import discover, why_unread
from tracemill.pairs.hindsight import hindsight_pairs
from tracemill.records.errors import SourceError
from tracemill.records.ingest_report import IngestReport
from tracemill.records.message import ErrorKind
from tracemill.records.trace import Trace, TraceState, Usage

ingest_file = file_reader("cursor", iter_traces)
ingest_export = file_reader("cursor_markdown", iter_export_traces)


def read(tmp_path: Path, *conversations: CursorConversation) -> tuple[list[Trace], IngestReport]:
    rows = [row for each in conversations for row in each.rows()]
    path = write_database(tmp_path / "state.vscdb", rows)
    assert detect(path) == "cursor"
    traces, report = ingest_file(path)
    counted = count_database(path)
    assert (report.states + report.steps_synthetic, report.tool_calls) == (counted["steps"], counted["calls"])
    return traces, report


def shown(state: TraceState) -> list[str]:
    return [f"{m.role}: {m.content}" for m in state.messages]


def test_a_conversation_becomes_steps_with_prefixes_and_facts(tmp_path: Path) -> None:
    file = CursorConversation()
    file.user("Water the beds.")
    file.say("", "Which one?", serverBubbleId="s1")
    file.say("I look first.")
    file.call("read_file", "0_tool_ab", {"contents": "BEDS = 3", "totalLines": 1}, target_file="beds.py")
    file.call("list_dir", "1_tool_ab", {"files": [{"name": "beds.py"}]}, relative_workspace_path=".")
    file.call("run_terminal_cmd", "tool_cd", {"output": "3 wet", "exitCodeV2": 0}, command="water")
    file.say("Three beds.", tokenCount={"inputTokens": 150, "outputTokens": 8})
    (trace,), report = read(tmp_path, file)
    assert (trace.source, trace.dialect, trace.harness, trace.project, trace.kind) == (
        *("cursor", "cursor", "cursor", "garden"),
        "main",
    )
    assert trace.started_at == "2026-03-01T10:00:00.000Z"
    first, second, third = trace.states()
    assert shown(first) == ["user: Water the beds."]
    assert [call.arguments for call in first.student_action.tool_calls] == [
        '{"target_file": "beds.py"}',
        '{"relative_workspace_path": "."}',
    ]
    assert first.context.messages[1].reasoning == "Which one?"
    assert [result.content for result in first.results] == ["BEDS = 3", '{"files":[{"name":"beds.py"}]}']
    assert shown(second)[1:3] == ["assistant: I look first.", "tool: BEDS = 3"]
    assert shown(third)[-1] == "tool: 3 wet"
    assert (first.step.model, first.step.family, first.step.cwd) == (
        *("claude-4.5-sonnet", "anthropic"),
        "/home/dev/garden",
    )
    assert (first.step.native_id, first.step.timestamp) == ("s1", "2026-03-01T10:00:02.000Z")
    fidelity = {(s.fidelity.system, s.fidelity.tools, s.fidelity.context) for s in trace.states()}
    assert fidelity == {("absent", "absent", "approximate")}
    assert report.records == {"user": 1, "assistant": 6}
    assert dict(report.flags) == {
        "call that may belong to the answer before it": 1,
        "usage of several answers together": 1,
    }
    assert third.step.usage == Usage()
    done = [find_action_operation(state.student_action, "cursor") for state in (first, second)]
    assert done == [Operation.READ, Operation.RUN]


def test_usage_of_a_single_answer_is_its_own(tmp_path: Path) -> None:
    file = CursorConversation()
    file.user("Water the beds.", modelInfo={"modelName": "gpt-5"})
    file.say("No.", tokenCount={"inputTokens": 150, "outputTokens": 8})
    file.user("Why?", modelInfo={"modelName": "default"})
    file.say("It rains.", tokenCount={"inputTokens": 170, "outputTokens": 9})
    (trace,), _ = read(tmp_path, file)
    first, second = trace.states()
    assert (first.step.usage, second.step.usage) == (Usage(150, 8), Usage(170, 9))
    assert (first.step.model, second.step.model) == ("gpt-5", "gpt-5")


def test_calls_of_one_model_call_are_one_answer(tmp_path: Path) -> None:
    file = CursorConversation()
    file.user("Water the beds.")
    for number, call in enumerate(("a", "a", "b"), 1):
        file.call("read_file", f"t{number}", "x", target_file=f"{number}.py", model_call=call)
    (trace,), report = read(tmp_path, file)
    assert [len(state.student_action.tool_calls) for state in trace.states()] == [2, 1]
    assert dict(report.flags) == {}


@pytest.mark.parametrize("place", ["kv", "map", "item", "panel"])
def test_every_place_of_messages_gives_the_same(tmp_path: Path, place: str) -> None:
    file = CursorConversation()
    file.user("Water the beds.")
    file.say("Which?", modelInfo={"modelName": "claude-4.5-sonnet"})
    file.user("All.")
    file.say("Wet.")
    rows: list[tuple[str, Any]] = []
    items: list[tuple[str, Any]] = []
    if place == "kv":
        rows = [("composerData:c1", file.inline())]
    elif place == "map":
        (key, facts), *_ = file.rows()
        rows = [(key, facts | {"conversationMap": {each["bubbleId"]: each for each in file.messages}})]
    elif place == "item":
        items = [("composer.composerData", {"allComposers": [file.inline(), {"composerId": "c2"}]})]
    else:
        bubbles = [
            {"type": "user" if each["type"] == 1 else "ai", "id": each["bubbleId"], "text": each["text"]}
            | ({"modelType": "claude-4.5-sonnet"} if each["type"] == 2 else {})
            for each in file.messages
        ]
        items = [
            ("workbench.panel.aichat.view.aichat.chatdata", {"tabs": [{"tabId": "c1", "bubbles": bubbles}]})
        ]
        (tmp_path / "workspace.json").write_text('{"folder": "file:///c%3A/dev/garden"}')
    path = write_database(tmp_path / "state.vscdb", rows, items)
    assert detect(path) == "cursor"
    (trace,), report = ingest_file(path)
    assert [shown(state)[-1] for state in trace.states()] == ["user: Water the beds.", "user: All."]
    assert [state.student_action.text for state in trace.states()] == ["Which?", "Wet."]
    assert [state.step.model for state in trace.states()] == ["claude-4.5-sonnet"] * 2
    assert (trace.project, dict(report.skipped), dict(report.unknown)) == ("garden", {}, {})
    assert trace.contexts[0].steps[0].cwd == ("c:/dev/garden" if place == "panel" else "/home/dev/garden")


def test_calls_that_an_early_version_keeps_apart(tmp_path: Path) -> None:
    file = CursorConversation(_v=1)
    file.user("Water the beds.")
    file.say("I look.")
    held = file.add(2, "", capabilityType=15)
    apart = json.dumps({held["bubbleId"]: tool("read_file", "t1", {"contents": "BEDS"}, target_file="a.py")})
    file.facts["capabilities"] = [{"type": 6}, {"type": 15, "data": {"bubbleDataMap": apart}}]
    path = write_database(tmp_path / "state.vscdb", [("composerData:c1", file.inline())])
    (trace,), _ = ingest_file(path)
    (state,) = trace.states()
    assert [call.name for call in state.student_action.tool_calls] == ["read_file"]
    assert [result.content for result in state.results] == ["BEDS"]


@pytest.mark.parametrize(
    ("result", "facts", "text", "kind"),
    [
        ({"output": "1 failed", "exitCodeV2": 2}, {}, "1 failed", ErrorKind.EXIT_CODE),
        ({"output": "1 passed", "exitCodeV2": 0}, {}, "1 passed", None),
        ({"rejected": True}, {"decision": "rejected"}, '{"rejected":true}', ErrorKind.USER_REJECTION),
        (None, {"status": "cancelled"}, "", ErrorKind.CANCELLED),
        (
            None,
            {"status": "error", "error": '{"modelVisibleErrorMessage": "no such file"}'},
            "no such file",
            ErrorKind.TOOL_ERROR,
        ),
        ("plain", {}, "plain", None),
        ('{"broken', {}, '{"broken', None),
    ],
)
def test_every_kind_of_result(
    tmp_path: Path, result: Any, facts: dict[str, Any], text: str, kind: ErrorKind | None
) -> None:
    file = CursorConversation()
    file.user("Water the beds.")
    file.call("run_terminal_cmd", "t1", result, command="water", **facts)
    file.say("So.")
    (trace,), report = read(tmp_path, file)
    first, _ = trace.states()
    assert [(m.content, m.is_error, m.error_kind) for m in first.results] == [(text, kind is not None, kind)]
    assert report.tool_errors == (kind is not None)


def test_what_is_still_going_on_is_no_step_and_has_no_result(tmp_path: Path) -> None:
    file, other = CursorConversation(status="aborted"), CursorConversation("c2", status="generating")
    file.user("Water the beds.")
    file.say("I w")
    other.user("Water the beds.")
    other.call("run_terminal_cmd", "t1", None, command="sleep 9", status="loading")
    traces, report = read(tmp_path, file, other)
    (trace,) = traces
    assert [m.role for m in trace.contexts[0].messages] == ["user", "assistant"]
    assert (report.steps_synthetic, dict(report.flags)) == (1, {"answer that broke off": 1})
    assert report.skipped == {"conversation without a step": 1}


def test_what_is_not_recorded_or_not_understood_is_named(tmp_path: Path) -> None:
    file = CursorConversation()
    file.user("Water the beds.", attachedFolders=["beds"])
    file.call("read_file", "t1", "x", target_file="a.py", raw="")
    gone = file.say("gone")
    file.user("")
    file.say("Two.", cachedConversationSummary="One.")
    file.add(7, "a third voice")
    file.say("Three.")
    rows = [row for row in file.rows() if row[0] != f"bubbleId:c1:{gone['bubbleId']}"]
    rows += [("bubbleId:c1:stray", {"type": 1, "text": "taken back"}), ("composerData:c9", None)]
    rows += [("composerData:c8", "no json"), ("composerData:c7", {"composerId": "c7"})]
    rows += [(f"bubbleId:c6:{number}", {"type": 2, "text": "left behind"}) for number in "12"]
    path = write_database(tmp_path / "state.vscdb", rows)
    (trace,), report = ingest_file(path)
    assert [state.fidelity.context for state in trace.states()] == ["approximate", "lost"]
    assert [state.student_action.text for state in trace.states()] == ["", "Three."]
    assert dict(report.flags) == {
        "answer that broke off": 1,
        "message of the user with attachments that are not recorded as shown": 1,
        "call with the arguments that Cursor made of it": 1,
        "message of the user without a text": 1,
        "message behind which Cursor summarised the conversation": 1,
        "message that its conversation does not list": 1,
    }
    assert dict(report.skipped) == {
        "message that is not in the database": 1,
        "message whose conversation is not in the database": 2,
        "deleted conversation": 1,
        "not json": 1,
        "conversation without a message": 1,
    }
    assert report.unknown == {"message type": 1}
    census = take_census([tmp_path]).found["cursor", "no version"]
    assert (census.kinds["call"], set(census.unknown_kinds)) == (1, {"message other", "part type"})


def test_a_subagent_is_a_side_trace_of_its_conversation(tmp_path: Path) -> None:
    main = CursorConversation(subagentComposerIds=["c2"])
    below = CursorConversation("c2")
    deeper = CursorConversation("c3", subagentInfo={"parentComposerId": "c2"})
    for each in (main, below, deeper):
        each.user("Water the beds.")
        each.say("Wet.")
    (one, two, three), report = read(tmp_path, main, below, deeper)
    assert (one.kind, two.kind, three.kind) == ("main", "side", "side")
    assert (two.parent_trace_id, three.parent_trace_id) == (one.trace_id, two.trace_id)
    assert (report.steps_main, report.steps_side) == (1, 2)


def test_a_database_in_use_is_read_whole_and_neither_locked_nor_changed(tmp_path: Path) -> None:
    first, second = CursorConversation(), CursorConversation("c2")
    for each in (first, second):
        each.user("Water the beds.")
        each.say("Wet.")
    folder = tmp_path / "User"
    folder.mkdir()
    path = write_database(folder / "state.vscdb", first.rows(), wal=True)
    with closing(sqlite3.connect(path, isolation_level=None)) as editor:
        editor.execute("pragma wal_autocheckpoint = 0")
        for key, value in second.rows():
            editor.execute("insert into cursorDiskKV values (?, ?)", (key, json.dumps(value)))
        editor.execute("begin exclusive")
        before = {each.name: each.read_bytes() for each in folder.iterdir()}
        assert before["state.vscdb-wal"]
        traces, report = ingest_file(path)
        assert (len(traces), report.states) == (2, 2)
        assert {each.name: each.read_bytes() for each in folder.iterdir()} == before
        editor.execute("commit")
    (settled,) = folder.iterdir()
    assert len(ingest_file(settled)[0]) == 2
    assert [each.name for each in folder.iterdir()] == ["state.vscdb"]


def test_other_databases_and_broken_ones_are_not_read(tmp_path: Path) -> None:
    plain = write_database(tmp_path / "other.vscdb", [], [("theme", "dark")])
    broken = tmp_path / "broken.vscdb"
    broken.write_bytes(plain.read_bytes()[:100] + b"\0" * 4000)
    assert (detect(plain), detect(broken)) == (DATABASE, DATABASE)
    (tmp_path / "notes.md").write_text("# Notes\n\nNothing.\n")
    found = discover([tmp_path])
    assert [(source.path.name, why_unread(source)) for source in found] == [
        ("broken.vscdb", "a database without conversations of a known agent"),
        ("other.vscdb", "a database without conversations of a known agent"),
    ]
    with pytest.raises(SourceError, match="broken SQLite"):
        ingest_file(broken)


EXPORT = """\
# Beds
_Exported on 3/1/2026 at 10:00:00 GMT+1 from Cursor (1.2.1)_

---

**User**

Water the beds.

---

**Cursor**

I look.

---

Three beds.

---

**User**

And the trees?
"""


def test_answers_of_an_export_are_no_steps_and_are_counted(tmp_path: Path) -> None:
    path = tmp_path / "beds.md"
    path.write_text(EXPORT + "\n\n" + EXPORT.replace("# Beds", "# Trees").replace("Three", "Four"))
    (source,) = discover([tmp_path])
    assert source.dialect == "cursor_markdown"
    traces, report = ingest_export(path)
    assert traces == []
    assert report.records == {"user": 4, "assistant": 2}
    assert report.skipped == {"answer of an export, which leaves out calls and results": 2}


def test_a_call_that_failed_and_its_fix_are_a_pair(tmp_path: Path) -> None:
    file = CursorConversation()
    file.user("Count the beds.")
    file.call("list_dir", "t1", {"files": [{"name": "beds.py"}]}, relative_workspace_path="/r")
    error = '{"modelVisibleErrorMessage": "File does not exist: /r/bed.py"}'
    file.say("I read.")
    file.call("read_file", "t2", None, status="error", error=error, target_file="/r/bed.py")
    file.say("Its name is another.")
    file.call("read_file", "t3", {"contents": "BEDS = 3"}, target_file="/r/beds.py")
    file.say("Three.")
    (trace,), _ = read(tmp_path, file)
    (pair,), _ = hindsight_pairs(replace(trace, redaction="none"))
    assert [call.parsed() for call in pair.rejected[0].tool_calls] == [{"target_file": "/r/bed.py"}]
    assert [call.parsed() for call in pair.chosen[0].tool_calls] == [{"target_file": "/r/beds.py"}]


def _records() -> list[Any]:
    file = CursorConversation()
    file.user("Water the beds.", context={"selections": [{"text": "x"}]})
    file.say("I look.", "Hm.", timingInfo={"clientRpcSendTime": 1_772_359_200_000})
    file.call("read_file", "0_tool_ab", {"contents": "BEDS"}, target_file="a.py", decision="accepted")
    file.call("read_file", "1_tool_ab", None, target_file="b.py", status="error", error='{"x": 1}')
    file.say("Done.")
    return [value for _, value in file.rows()]


@given(changed(_records()))
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_changed_records_never_raise_and_keep_the_laws(tmp_path: Path, records: list[Any]) -> None:
    path = tmp_path / "state.vscdb"
    path.unlink(missing_ok=True)
    keys = ["composerData:c1", *(f"bubbleId:c1:c1-m{place}" for place in range(1, len(records)))]
    write_database(path, list(zip(keys, records, strict=True)))
    traces, report = ingest_file(path)
    for state in (state for trace in traces for state in trace.states()):
        called = {call.id for m in state.messages for call in m.tool_calls}
        results = [m.tool_call_id for m in state.messages if m.role == "tool"]
        assert set(results) <= called
        assert len(results) == len(set(results))
        assert not called & {call.id for call in state.student_action.tool_calls}
    lost = sum(report.skipped.values()) + sum(report.unknown.values()) + sum(report.flags.values())
    assert report.states or lost
