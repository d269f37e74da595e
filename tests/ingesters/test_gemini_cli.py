"""Sessions of Gemini CLI, as one object and as lines: what was shown at each step."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from file_readers import file_reader
from gemini_records import GeminiFile, count_gemini_file, gemini_call
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import tracemill as tm
from tracemill.harnesses.operations import find_action_operation
from tracemill.ingesters.census import take_census
from tracemill.ingesters.detect_format import detect
from tracemill.ingesters.discover import discover
from tracemill.ingesters.gemini_cli.ingest_session import iter_traces
from tracemill.records.errors import SourceError
from tracemill.records.ingest_report import IngestReport
from tracemill.records.message import ErrorKind
from tracemill.records.trace import Trace, TraceState, Usage
from tracemill.teachers.core.presets import PRESETS

ingest_file = file_reader("gemini_cli", iter_traces)
REAL = os.environ.get("TRACEMILL_REAL_TRACES")
GOLDEN = Path(__file__).resolve().parents[1] / "golden" / "inputs" / "gemini_cli"
FILES = ("session-2026-03-01T10-00-7e11.json", "session-2026-03-01T10-00-7e11.jsonl")


def read(tmp_path: Path, file: GeminiFile, name: str = FILES[1]) -> tuple[Trace, IngestReport]:
    path = file.write(tmp_path / name)
    assert detect(path) == "gemini_cli"
    (trace,), report = ingest_file(path)
    return trace, report


def shown(state: TraceState) -> list[str]:
    return [f"{m.role}: {m.content}" for m in state.messages]


def step(file: GeminiFile, number: int, words: str = "", **fields: Any) -> str:
    call = gemini_call(f"c{number}", "read_file", f"seen {number}", file_path=f"{number}.py")
    return file.answer(words, call, **fields)


@pytest.mark.parametrize("name", FILES)
def test_a_session_becomes_steps_with_prefixes_and_facts(tmp_path: Path, name: str) -> None:
    file = GeminiFile()
    file.add("info", "An update is there.")
    file.user("Water the beds.")
    calls = (
        gemini_call("c1", "read_file", "BEDS = 3", file_path="beds.py"),
        gemini_call("c2", "list_directory", "beds.py", dir_path="."),
    )
    thoughts = [{"subject": "Beds", "description": "Which one?", "timestamp": "x"}]
    file.answer("I look first.", *calls, **{"displayContent": "I look"})
    file.lines[-1] |= {"thoughts": thoughts}
    file.answer("Three beds.")
    trace, report = read(tmp_path, file, name)
    assert (trace.source, trace.harness, trace.started_at) == (
        *("gemini_cli", "gemini_cli"),
        "2026-03-01T10:00:00.000Z",
    )
    first, second = trace.states()
    assert shown(first) == ["user: Water the beds."]
    assert shown(second)[1:] == ["assistant: I look first.", "tool: BEDS = 3", "tool: beds.py"]
    assert json.loads(first.student_action.tool_calls[0].arguments) == {"file_path": "beds.py"}
    assert first.context.messages[1].reasoning == "Beds\nWhich one?"
    assert first.step.usage == Usage(100, 8, 80)
    assert (first.step.model, first.step.family) == ("gemini-2.5-pro", "google")
    assert (first.fidelity.system, first.fidelity.tools, first.fidelity.context) == (
        *("absent", "absent"),
        "approximate",
    )
    assert report.records == {"info": 1, "user": 1, "gemini": 2}
    assert (report.steps_main, report.tool_calls, dict(report.skipped)) == (2, 2, {})


def test_a_session_that_records_its_environment_is_complete(tmp_path: Path) -> None:
    file = GeminiFile()
    file.user("<session_context>\nToday is a day.\n</session_context>")
    file.user("Water the beds.")
    step(file, 1)
    trace, _ = read(tmp_path, file)
    assert trace.contexts[0].fidelity.context == "complete"


def test_a_rewind_is_its_own_context(tmp_path: Path) -> None:
    file = GeminiFile()
    file.user("Water the beds.")
    step(file, 1)
    back = file.user("And the trees.")
    step(file, 2)
    file.change(rewind_to=back)
    file.user("The roof.")
    step(file, 3)
    file.change(rewind_to="no such message")
    file.user("Anew.")
    step(file, 4)
    trace, report = read(tmp_path, file)
    assert [(c.start, len(c.steps)) for c in trace.contexts] == [("start", 2), ("rewind", 1), ("rewind", 1)]
    *_, third, fourth = trace.states()
    assert shown(third) == ["user: Water the beds.", "assistant: ", "tool: seen 1", "user: The roof."]
    assert shown(fourth) == ["user: Anew."]
    assert report.branches_real == 2
    assert report.flags == {"rewind to a message that is not in the file": 1}


def test_messages_that_were_replaced_begin_a_context(tmp_path: Path) -> None:
    file = GeminiFile()
    file.user("Water the beds.")
    step(file, 1)
    step(file, 2)
    file.change(set={"messages": file.messages(), "lastUpdated": "x"})
    step(file, 3)
    masked = json.loads(json.dumps(file.messages()))
    masked[1]["toolCalls"][0]["result"][0]["functionResponse"]["response"]["output"] = "(masked)"
    file.change(set={"messages": masked})
    step(file, 4)
    summary = {"id": "s1", "timestamp": "x", "type": "user", "content": "So far: wet."}
    file.change(set={"messages": [summary, masked[-1]]})
    step(file, 5)
    trace, report = read(tmp_path, file)
    assert [(c.start, len(c.steps)) for c in trace.contexts] == [
        ("start", 3),
        ("rewritten", 1),
        ("compaction", 1),
    ]
    *_, fourth, fifth = trace.states()
    assert shown(fourth)[2] == "tool: (masked)"
    assert shown(fifth) == ["user: So far: wet.", "assistant: ", "tool: seen 3"]
    assert (report.compactions, report.steps_main) == (1, 5)


def test_a_result_in_a_message_of_the_user_counts_once(tmp_path: Path) -> None:
    file = GeminiFile()
    file.user("Water the beds.")
    call = {"functionCall": {"id": "c1", "name": "read_file", "args": {"file_path": "a"}}}
    file.answer([{"text": "So."}, call])
    reply = {"functionResponse": {"id": "c1", "name": "read_file", "response": {"output": "wet"}}}
    file.add("user", [reply])
    step(file, 2)
    file.add("user", [{"functionResponse": {"id": "c2", "name": "read_file", "response": {"output": "x"}}}])
    file.answer("Done.")
    trace, report = read(tmp_path, file)
    assert [m.role for m in trace.contexts[0].messages] == [
        *("user", "assistant", "tool"),
        *("assistant", "tool", "assistant"),
    ]
    assert (report.tool_calls, dict(report.skipped)) == (2, {})


def test_an_answer_in_two_records_is_one_step(tmp_path: Path) -> None:
    file = GeminiFile()
    file.user("Water the beds.")
    file.answer("I look.")
    file.add("info", "An update is there.")
    call = gemini_call("c1", "read_file", "wet", file_path="a")
    file.add("gemini", "", toolCalls=[call], tokens={"input": 0, "output": 0}, thoughts=[])
    file.answer("Done.")
    trace, report = read(tmp_path, file)
    first, second = trace.states()
    assert (first.student_action.text, len(first.student_action.tool_calls)) == ("I look.", 1)
    assert shown(second) == ["user: Water the beds.", "assistant: I look.", "tool: wet"]
    assert report.flags == {"answer in two records": 1}


@pytest.mark.parametrize(
    ("name", "status", "output", "kind"),
    [
        ("read_file", "error", "File not found.", ErrorKind.TOOL_ERROR),
        ("read_file", "cancelled", "[Operation Cancelled]", ErrorKind.USER_REJECTION),
        ("run_shell_command", "success", "Output: x\nExit Code: 2\nSignal: 0", ErrorKind.EXIT_CODE),
        ("run_shell_command", "success", "Output: x\nExit Code: 0\nSignal: 0", None),
        ("read_file", "success", "Exit Code: 2", None),
    ],
)
def test_every_kind_of_error(
    tmp_path: Path, name: str, status: str, output: str, kind: ErrorKind | None
) -> None:
    file = GeminiFile()
    file.user("Water the beds.")
    file.answer("", gemini_call("c1", name, output, status, command="x"))
    trace, report = read(tmp_path, file)
    (state,) = trace.states()
    assert [(m.content, m.is_error, m.error_kind) for m in state.results] == [
        (output, kind is not None, kind)
    ]
    assert report.tool_errors == (kind is not None)


def test_a_prompt_that_shrank_without_a_record_is_lost(tmp_path: Path) -> None:
    file = GeminiFile()
    file.user("Water the beds.")
    for number, tokens in enumerate((1000, 1100, 500, 600)):
        step(file, number, tokens=tokens)
    trace, report = read(tmp_path, file)
    assert [state.fidelity.context for state in trace.states()] == [*["approximate"] * 2, *["lost"] * 2]
    assert report.flags == {"prompt that shrank without a record of why": 1}


def test_a_subagent_is_a_side_trace_of_its_folder(tmp_path: Path) -> None:
    chats = tmp_path / ".gemini" / "tmp" / "ab12" / "chats"
    (chats / "7e11-garden").mkdir(parents=True)
    file = GeminiFile()
    file.user("Water the beds.")
    step(file, 1)
    file.write(chats / FILES[1])
    side = GeminiFile(sessionId="side", kind="subagent", directories=["/home/dev/garden"])
    side.user("Look for beds.")
    step(side, 1)
    side.write(chats / "7e11-garden" / "side.jsonl")
    prompts = [{"sessionId": "7e11", "messageId": 0, "type": "user", "message": "Water.", "timestamp": "x"}]
    (tmp_path / ".gemini" / "tmp" / "ab12" / "logs.json").write_text(json.dumps(prompts))
    sources = discover([tmp_path])
    assert sorted(str(source.dialect) for source in sources) == ["None", "gemini_cli", "gemini_cli"]
    traces = [trace for s in sources if s.dialect for trace in ingest_file(s.path)[0]]
    (main,) = [trace for trace in traces if trace.kind == "main"]
    (child,) = [trace for trace in traces if trace.kind == "side"]
    assert child.parent_trace_id == main.trace_id


def test_what_is_not_understood_is_named_and_what_follows_is_lost(tmp_path: Path) -> None:
    file = GeminiFile()
    file.user("Water the beds.")
    step(file, 1)
    file.add(
        "user", [{"hologram": 1}, {"text": "Look."}, {"inlineData": {"mimeType": "a/b", "data": "aGk="}}]
    )
    step(file, 2)
    file.add("oracle", "It rains.")
    step(file, 3)
    trace, report = read(tmp_path, file)
    assert [state.fidelity.context for state in trace.states()] == ["approximate", "lost", "lost"]
    assert report.unknown == {"part hologram": 1, "message oracle": 1}
    assert set(take_census([tmp_path]).found["gemini_cli", "no version"].unknown_kinds) == {
        *("part hologram", "message oracle")
    }


def test_what_follows_a_broken_line_is_lost(tmp_path: Path) -> None:
    file = GeminiFile()
    file.user("Water the beds.")
    step(file, 1)
    file.user("And the trees.")
    step(file, 2)
    lines = file.write(tmp_path / FILES[1]).read_text().splitlines()
    path = tmp_path / "cut.jsonl"
    path.write_text("\n".join([*lines[:4], lines[4][:40], *lines[5:]]))
    (trace,), report = ingest_file(path)
    assert (trace.contexts[0].fidelity.context, trace.contexts[0].lost_from) == ("lost", 0)
    assert report.skipped == {"not json": 1}
    path.write_text(
        "\n".join([*lines, lines[1].replace("m1", "m7"), lines[4][:40], lines[6].replace("m4", "m8")])
    )
    (trace,), _ = ingest_file(path)
    assert [state.fidelity.context for state in trace.states()] == ["approximate", "approximate", "lost"]


def test_several_sessions_of_one_file_and_repeated_ids(tmp_path: Path) -> None:
    first, second = GeminiFile(), GeminiFile(sessionId="8f22-garden")
    for file in (first, second):
        file.user("Water the beds.")
        step(file, 1)
    texts = [file.write(tmp_path / FILES[1]).read_text() for file in (first, second)]
    path = tmp_path / "both.jsonl"
    path.write_text("\n".join(texts))
    traces, _ = ingest_file(path)
    assert [[shown(s) for s in trace.states()] for trace in traces] == 2 * [[["user: Water the beds."]]]
    whole = json.loads(first.write(tmp_path / FILES[0]).read_text())
    whole["messages"] += [whole["messages"][0]]
    (tmp_path / "twice.json").write_text(json.dumps(whole))
    (trace,), report = ingest_file(tmp_path / "twice.json")
    assert report.skipped == {"message of an id that a later one of its list has": 1}
    assert trace.contexts[0].fidelity.context == "lost"


@pytest.mark.parametrize("name", FILES)
def test_a_call_that_stands_twice_counts_once_and_another_of_its_id_is_kept(
    tmp_path: Path, name: str
) -> None:
    file = GeminiFile()
    file.user("Water the beds.")
    first = gemini_call("c1", "read_file", "dry", file_path="/a")
    other = gemini_call("c1", "read_file", "no such file", "error", file_path="/b")
    file.answer("", first, other, first, other)
    file.user("Go on.")
    file.answer("", first, gemini_call("c2", "glob", "two", pattern="*"))
    inline = {"functionCall": {"name": "glob", "args": {"pattern": "*"}}}
    file.lines[-1]["content"] = [inline, {"functionCall": {"name": "glob", "args": {"pattern": "a"}}}]
    path = file.write(tmp_path / name)
    (trace,), report = ingest_file(path)
    messages = trace.contexts[0].messages
    assert [(call.id, call.arguments) for m in messages for call in m.tool_calls] == [
        *[("c1", '{"file_path":"/a"}'), ("c1_2", '{"file_path":"/b"}')],
        *[("c1_3", '{"file_path":"/a"}'), ("c2", '{"pattern":"*"}'), ("m4-2", '{"pattern":"a"}')],
    ]
    assert [(m.tool_call_id, m.content, m.is_error) for m in messages if m.role == "tool"] == [
        ("c1", "dry", False),
        ("c1_2", "no such file", True),
        ("c1_3", "dry", False),
        ("c2", "two", False),
    ]
    assert (report.states, report.tool_calls, report.tool_errors) == (2, 5, 1)
    assert report.skipped == {"call that stands in its answer before": 2}


def test_broken_files(tmp_path: Path) -> None:
    file = GeminiFile()
    file.user("Water the beds.")
    step(file, 1)
    path = file.write(tmp_path / FILES[1])
    path.write_text(path.read_text() + '{"id": "m9", "type": "us')
    (trace,), report = ingest_file(path)
    assert (trace.step_count, report.skipped) == (1, {"not json": 1})
    whole = file.write(tmp_path / FILES[0])
    whole.write_text(whole.read_text()[:-40])
    with pytest.raises(SourceError) as raised:
        ingest_file(whole)
    assert str(raised.value).endswith(
        "does not parse: not json; expected one JSON value; check that it is whole"
    )
    empty = GeminiFile()
    empty.add("warning", "A hook failed.")
    traces, report = ingest_file(empty.write(tmp_path / FILES[1]))
    assert (traces, report.skipped) == ([], {"session without a step": 1})


ACTIONS = st.one_of(
    st.tuples(st.just("user"), st.just(0)),
    st.tuples(st.just("step"), st.integers(0, 3)),
    st.tuples(st.just("notice"), st.just(0)),
    st.tuples(st.just("rewind"), st.integers(0, 40)),
)


@given(st.lists(ACTIONS, max_size=25))
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_every_step_is_shown_what_was_said_before(tmp_path: Path, actions: list[tuple[str, int]]) -> None:
    file, said, expected = GeminiFile(), list[tuple[str, list[str]]](), list[list[str]]()
    for number, (kind, value) in enumerate([("user", 0), *actions, ("user", 0), ("step", 1)]):
        if kind == "user":
            said.append((file.user(f"say {number}"), [f"user: say {number}"]))
        elif kind == "notice":
            file.add("warning", "A hook failed.")
        elif kind == "rewind" and len(said) > 1:
            place = 1 + value % (len(said) - 1)
            file.change(rewind_to=said[place][0])
            del said[place:]
        elif kind == "step":
            expected.append([line for _, lines in said for line in lines])
            ids = [f"c{number}_{place}" for place in range(value)]
            calls = [gemini_call(each, "read_file", f"got {each}", file_path=each) for each in ids]
            name = file.answer(f"do {number}", *calls)
            said.append((name, [f"assistant: do {number}", *(f"tool: got {each}" for each in ids)]))
    trace, report = read(tmp_path, file)
    assert [shown(state) for state in trace.states()] == expected
    assert (dict(report.skipped), dict(report.unknown)) == ({}, {})


def test_a_session_is_asked_and_paired(tmp_path: Path) -> None:
    file = GeminiFile()
    file.user("glow in src/glow.py raises KeyError. Fix it.")
    steps = [
        ("read_file", {"file_path": "src/glow.py"}, "def glow():\n    raise KeyError"),
        ("run_shell_command", {"command": "python reproduce.py"}, "Output: KeyError\nExit Code: 1"),
        ("replace", {"file_path": "src/glow.py", "old_string": "raise", "new_string": "return"}, "Replaced."),
        ("search_file_content", {"pattern": "glow"}, "src/glow.py:1"),
        ("run_shell_command", {"command": "python -m pytest tests"}, "1 passed\nExit Code: 0"),
    ]
    for number, (name, arguments, output) in enumerate(steps):
        file.answer("So.", gemini_call(f"c{number}", name, output, **arguments))
    file.answer("Fixed.")
    trace, _ = read(tmp_path, file)
    states = list(trace.states())
    operations = [find_action_operation(state.student_action, "gemini_cli") for state in states]
    assert operations == ["read", "run", "edit", "search", "run_test", "finish"]
    replies = tm.replay_trace_sync(
        states,
        teachers=PRESETS["simulated"].teachers,
        max_total_usd=1.0,
        settings=tm.ReplaySettings(stop="off"),
    )
    assert len(replies) == 4 * len(states)
    pairs = tm.extract_dpo_pairs(states, replies, agreement_threshold=2)
    assert pairs
    assert {pair.presentation.rpartition("system=")[2] for pair in pairs} == {
        "stand_in,tools=stand_in,context=approximate"
    }


@pytest.mark.skipif(REAL is None, reason="TRACEMILL_REAL_TRACES names no folder of sessions")
def test_real_sessions_have_the_counts_of_the_ground_truth() -> None:
    folder = Path(str(REAL))
    known_files = json.loads((folder / "ground_truth.json").read_text())
    truth = [each for each in known_files if each["format"] == "gemini_cli"]
    assert len(truth) == 6
    for known in truth:
        path = folder / "gemini_cli" / Path(known["file"]).name
        traces, report = ingest_file(path)
        counted = count_gemini_file(path)
        assert dict(report.records) == known["types"]
        assert report.records.total() == known["records"]
        assert report.flags["answer in two records"] == counted["second"]
        assert report.steps_main + counted["second"] == known.get("steps_main", 0) == counted["gemini"]
        assert report.tool_calls == known.get("tool_calls", 0) == counted["calls"]
        assert {s.step.model for t in traces for s in t.states()} == set(known.get("models") or ())
