"""Sessions that opencode exports: what was shown at each step."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from file_readers import file_reader
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from opencode_records import (
    START,
    OpencodeFile,
    call_part,
    count_opencode_file,
    failed_part,
    step_finish,
    step_start,
    text_part,
)

import tracemill as tm
from tracemill.harnesses.operations import find_action_operation
from tracemill.ingesters.census import take_census
from tracemill.ingesters.detect_format import detect
from tracemill.ingesters.opencode.ingest_session import iter_traces
from tracemill.pairs.hindsight import hindsight_pairs
from tracemill.records.errors import SourceError
from tracemill.records.ingest_report import IngestReport
from tracemill.records.message import ErrorKind
from tracemill.records.trace import Trace, TraceState, Usage
from tracemill.teachers.core.presets import PRESETS

ingest_file = file_reader("opencode", iter_traces)
GOLDEN = Path(__file__).resolve().parents[1] / "golden" / "inputs" / "opencode"


def read(tmp_path: Path, file: OpencodeFile) -> tuple[Trace, IngestReport]:
    path = file.write(tmp_path / "session.json")
    assert detect(path) == "opencode"
    (trace,), report = ingest_file(path)
    counted = count_opencode_file(path)
    assert (report.states, report.tool_calls) == (counted["steps"], counted["calls"])
    return trace, report


def shown(state: TraceState) -> list[str]:
    return [f"{m.role}: {m.content}" for m in state.messages]


def step(file: OpencodeFile, number: int, system: Any = None, **facts: Any) -> str:
    call = call_part(f"c{number}", "read", f"seen {number}", filePath=f"/r/{number}.py", **facts)
    return file.answer("", call, **({"system": system} if system else {}))


def test_a_session_becomes_steps_with_prefixes_and_facts(tmp_path: Path) -> None:
    file = OpencodeFile()
    file.user(
        "Water the beds in @beds.py.",
        text_part('Called the Read tool with the following input: {"filePath":"/r/beds.py"}', synthetic=True),
        text_part("BEDS = 3", synthetic=True),
        {"type": "file", "mime": "text/plain", "filename": "beds.py", "url": "file:///r/beds.py"},
        text_part("not shown", ignored=True),
    )
    file.answer(
        "I look first.",
        {"type": "reasoning", "text": "Which one?", "time": {"start": 1}},
        call_part("c1", "read", "BEDS = 3", filePath="/r/beds.py"),
        call_part("c2", "list", "beds.py", path="/r"),
        {"type": "patch", "hash": "ab", "files": []},
    )
    file.answer("Three beds.")
    trace, report = read(tmp_path, file)
    assert (trace.source, trace.harness, trace.harness_version, trace.project, trace.kind) == (
        *("opencode", "opencode", "1.2.5"),
        *("garden", "main"),
    )
    assert trace.started_at == "2026-03-01T10:00:00.000Z"
    first, second = trace.states()
    assert shown(first) == [
        "user: Water the beds in @beds.py.\n"
        'Called the Read tool with the following input: {"filePath":"/r/beds.py"}\nBEDS = 3'
    ]
    assert shown(second)[1:] == ["assistant: I look first.", "tool: BEDS = 3", "tool: beds.py"]
    assert [call.arguments for call in first.student_action.tool_calls] == [
        '{"filePath":"/r/beds.py"}',
        '{"path":"/r"}',
    ]
    assert first.context.messages[1].reasoning == "Which one?"
    assert first.step.usage == Usage(150, 8, 90, 0.01)
    assert (first.step.model, first.step.family, first.step.cwd) == (
        *("claude-sonnet-4-5", "anthropic"),
        "/home/dev/garden",
    )
    assert (first.step.native_id, first.step.timestamp) == ("msg_2", "2026-03-01T10:00:02.000Z")
    fidelity = first.fidelity
    assert (fidelity.system, fidelity.tools, fidelity.context) == ("absent", "absent", "complete")
    assert report.records == {"user": 1, "assistant": 2}
    assert (report.steps_main, report.tool_calls, dict(report.skipped), dict(report.flags)) == (2, 2, {}, {})


def test_answers_of_an_early_version_stand_in_one_message(tmp_path: Path) -> None:
    file = OpencodeFile(version="0.6.4")
    file.user("Water the beds.")
    calls = [call_part(f"c{number}", "read", f"seen {number}", filePath=str(number)) for number in (1, 2)]
    parts = [part for call in calls for part in (step_start(), call, step_finish("tool-calls"))]
    file.assistant([*parts, step_start(), text_part("Done."), step_finish()], finish="stop")
    for part in file.messages[1]["parts"]:
        if part["type"] == "step-finish":
            part["tokens"] = {key: part["tokens"][key] for key in ("input", "output", "reasoning", "cache")}
    trace, _ = read(tmp_path, file)
    assert [len(state.messages) for state in trace.states()] == [1, 3, 5]
    assert [state.step.usage.completion_tokens for state in trace.states()] == [5, 5, 5]


def test_a_system_prompt_that_an_early_version_records_is_shown(tmp_path: Path) -> None:
    file = OpencodeFile(version="0.6.4")
    file.user("Water the beds.")
    step(file, 1, system=["You water.", "Today is a day."])
    step(file, 2, system=["You water.", "Today is a day."])
    step(file, 3, system=["You water.", "Today is another day."])
    trace, _ = read(tmp_path, file)
    assert [(c.start, len(c.steps), c.fidelity.system) for c in trace.contexts] == [
        ("start", 2, "recorded"),
        ("rewritten", 1, "recorded"),
    ]
    first, _, third = trace.states()
    assert shown(first) == ["system: You water.\nToday is a day.", "user: Water the beds."]
    assert shown(third)[0] == "system: You water.\nToday is another day."
    assert len(shown(third)) == 6


def test_a_compaction_begins_with_its_summary(tmp_path: Path) -> None:
    file = OpencodeFile()
    file.user("Water the beds.")
    step(file, 1)
    file.compact("no summary", error={"name": "APIError"})
    step(file, 2)
    file.compact("So far: wet.")
    file.user(text_part("Continue if you have next steps.", synthetic=True))
    step(file, 3)
    trace, report = read(tmp_path, file)
    assert [(c.start, len(c.steps), c.fidelity.context) for c in trace.contexts] == [
        ("start", 2, "complete"),
        ("compaction", 1, "complete"),
    ]
    *_, second, third = trace.states()
    assert shown(second)[-1] == "user: What did we do so far?"
    assert shown(third) == [
        "user: What did we do so far?",
        "assistant: So far: wet.",
        "user: Continue if you have next steps.",
    ]
    assert (report.compactions, dict(report.flags)) == (1, {"compaction that failed": 1})


def test_what_a_compaction_keeps_is_shown(tmp_path: Path) -> None:
    file = OpencodeFile()
    file.user("Water the beds.")
    file.answer("Wet.")
    tail = file.user("And the trees.")
    step(file, 2)
    file.compact("So far: wet.", tail)
    step(file, 3)
    file.compact("Wetter.", "msg_unknown")
    step(file, 4)
    trace, report = read(tmp_path, file)
    assert [(c.start, c.fidelity.context) for c in trace.contexts] == [
        ("start", "complete"),
        ("compaction", "approximate"),
        ("compaction", "lost"),
    ]
    *_, third, fourth = trace.states()
    assert shown(third) == [
        *("user: And the trees.", "assistant: ", "tool: seen 2"),
        *("user: What did we do so far?", "assistant: So far: wet."),
    ]
    assert shown(fourth) == ["user: What did we do so far?", "assistant: Wetter."]
    assert report.flags == {"kept message of a compaction that is not in the file": 1}


def test_a_result_is_shown_until_it_is_cleared(tmp_path: Path) -> None:
    file = OpencodeFile()
    file.user("Water the beds.")
    for number in (1, 2, 3):
        step(file, number, **({"compacted": START + 4500} if number == 1 else {}))
    file.answer("Done.")
    trace, _ = read(tmp_path, file)
    assert [(c.start, len(c.steps)) for c in trace.contexts] == [("start", 3), ("microcompaction", 1)]
    *_, third, last = trace.states()
    assert shown(third)[2] == "tool: seen 1"
    assert [line for line in shown(last) if line.startswith("tool")] == [
        *("tool: [Old tool result content cleared]", "tool: seen 2", "tool: seen 3"),
    ]


def test_answers_that_failed_are_no_steps_and_in_no_later_prompt(tmp_path: Path) -> None:
    file = OpencodeFile()
    file.user("Water the beds.")
    error = {"name": "APIError", "data": {"message": "overloaded"}}
    file.assistant([step_start(), text_part("I w")], error=error)
    file.assistant([], error=error)
    step(file, 1)
    aborted = {"name": "MessageAbortedError", "data": {"message": "aborted"}}
    stopped = failed_part("c2", "bash", "Tool execution aborted", command="sleep 99")
    file.assistant([step_start(), text_part("I sleep."), stopped], error=aborted)
    file.user("Go on.")
    step(file, 3)
    trace, report = read(tmp_path, file)
    first, second = trace.states()
    assert shown(first) == ["user: Water the beds."]
    assert shown(second)[3:] == ["assistant: I sleep.", "tool: Tool execution aborted", "user: Go on."]
    assert (report.steps_synthetic, dict(report.flags)) == (3, {"answer that broke off": 3})
    assert len(trace.contexts) == 1


def test_a_failed_message_takes_its_steps_out_of_later_prompts(tmp_path: Path) -> None:
    file = OpencodeFile()
    file.user("Water the beds.")
    call = call_part("c1", "read", "seen 1", filePath="/r/1.py")
    parts = [step_start(), call, step_finish("tool-calls"), step_start(), text_part("No")]
    file.assistant(parts, error={"name": "APIError", "data": {}})
    file.user("Again.")
    step(file, 2)
    trace, _ = read(tmp_path, file)
    assert [(c.start, len(c.steps)) for c in trace.contexts] == [("start", 1), ("rewind", 1)]
    assert shown(list(trace.states())[1]) == ["user: Water the beds.", "user: Again."]


def test_what_broke_off_before_a_retry_is_shown_behind_it(tmp_path: Path) -> None:
    file = OpencodeFile()
    file.user("Water the beds.")
    call = call_part("c1", "read", "seen 1", filePath="/r/1.py")
    parts = [step_start(), text_part("I w"), step_start(), text_part("I look."), call, step_finish()]
    file.assistant(parts, finish="tool-calls")
    step(file, 2)
    trace, report = read(tmp_path, file)
    first, second = trace.states()
    assert (shown(first), first.student_action.text) == (["user: Water the beds."], "I look.")
    assert shown(second)[1:] == ["assistant: I w", "assistant: I look.", "tool: seen 1"]
    assert [context.start for context in trace.contexts] == ["start", "rewritten"]
    assert report.flags == {"answer that broke off": 1}


def test_what_is_no_action_of_a_model_is_no_step(tmp_path: Path) -> None:
    file = OpencodeFile()
    file.user(text_part("The following tool was executed by the user", synthetic=True))
    file.assistant([call_part("c1", "bash", "beds.py", command="ls")])
    file.user({"type": "subtask", "prompt": "Look.", "description": "Look", "agent": "explore"})
    file.assistant([call_part("c1", "task", "Three beds.", prompt="Look.")], finish="tool-calls")
    file.user(text_part("Summarize the task tool output above.", synthetic=True))
    file.assistant([step_start(), text_part("Three be"), step_finish("length")], finish="length")
    file.assistant([step_start(), {"type": "reasoning", "text": "Hm."}, step_finish()], finish="stop")
    broken = call_part("c3", "invalid", "The arguments are invalid.", error="no JSON")
    file.assistant([step_start(), broken, step_finish("tool-calls")], finish="tool-calls")
    file.answer("Three beds.")
    trace, report = read(tmp_path, file)
    (state,) = trace.states()
    assert shown(state) == [
        *("user: The following tool was executed by the user", "assistant: ", "tool: beds.py"),
        *("user: The following tool was executed by the user", "assistant: ", "tool: Three beds."),
        *("user: Summarize the task tool output above.", "assistant: Three be"),
        *("assistant: ", "tool: The arguments are invalid."),
    ]
    assert [call.id for m in state.messages for call in m.tool_calls] == ["c1", "c1_2", "c3"]
    assert report.flags == {
        "call that the user made": 2,
        "answer that the token limit or a filter cut off": 1,
        "step without action": 1,
        "call that the harness could not read": 1,
    }


@pytest.mark.parametrize(
    ("part", "text", "kind"),
    [
        (failed_part("c", "read", "Error: File not found: /r/a"), None, ErrorKind.TOOL_ERROR),
        (
            failed_part("c", "bash", "Error: The user rejected permission to use this specific tool call."),
            None,
            ErrorKind.USER_REJECTION,
        ),
        (
            failed_part("c", "bash", "The user has specified a rule which prevents you from using this."),
            None,
            ErrorKind.HOOK,
        ),
        (
            failed_part("c", "bash", "Tool execution aborted", {"interrupted": True, "output": "so far"}),
            "so far",
            ErrorKind.USER_REJECTION,
        ),
        (call_part("c", "bash", "1 failed", exit=2), None, ErrorKind.EXIT_CODE),
        (call_part("c", "bash", "1 passed", exit=0), None, None),
        (
            call_part("c", "bash", "x\n<bash_metadata>\nbash tool terminated command after exceeding timeout"
                      " 120000 ms\n</bash_metadata>", exit=None),
            None,
            ErrorKind.TIMEOUT,
        ),
        (
            {"type": "tool", "callID": "c", "tool": "bash", "state": {"status": "running", "input": {}}},
            "[Tool execution was interrupted]",
            ErrorKind.USER_REJECTION,
        ),
    ],
)  # fmt: skip
def test_every_kind_of_error(
    tmp_path: Path, part: dict[str, Any], text: str | None, kind: ErrorKind | None
) -> None:
    file = OpencodeFile()
    file.user("Water the beds.")
    file.answer("", part)
    file.answer("So.")
    trace, report = read(tmp_path, file)
    first, _ = trace.states()
    words = text or part["state"].get("output") or part["state"].get("error")
    assert [(m.content, m.is_error, m.error_kind) for m in first.results] == [(words, kind is not None, kind)]
    assert report.tool_errors == (kind is not None)


def test_a_call_that_still_runs_has_no_result(tmp_path: Path) -> None:
    file = OpencodeFile()
    file.user("Water the beds.")
    running = {"type": "tool", "callID": "c", "tool": "bash", "state": {"status": "running", "input": {}}}
    file.answer("", running)
    trace, _ = read(tmp_path, file)
    assert [m.role for m in trace.contexts[0].messages] == ["user", "assistant"]


def test_images_become_placeholders(tmp_path: Path) -> None:
    image = {"type": "file", "mime": "image/png", "url": "data:image/png;base64,aGk=", "filename": "a.png"}
    file = OpencodeFile()
    file.user("Look.", image)
    file.answer("", call_part("c", "read", "Image read.", filePath="/r/a.png", attachments=[image]))
    trace, _ = read(tmp_path, file)
    (state,) = trace.states()
    assert shown(state)[0].startswith("user: Look.\n[image: image/png, 2 bytes, blake2b ")
    assert state.results[0].content.startswith("Image read.\n[image: image/png, 2 bytes, blake2b ")


def test_prompts_with_reminders_that_are_not_recorded_are_approximate(tmp_path: Path) -> None:
    file = OpencodeFile()
    file.user("Water the beds.")
    step(file, 1)
    file.user("The trees too.")
    step(file, 2)
    trace, report = read(tmp_path, file)
    assert [state.fidelity.context for state in trace.states()] == ["complete", "approximate"]
    assert report.flags == {"message of the user while the agent worked": 1}
    plan = OpencodeFile()
    plan.user("Plan the beds.", agent="plan")
    step(plan, 1)
    trace, report = read(tmp_path, plan)
    assert (trace.contexts[0].fidelity.context, dict(report.flags)) == ("approximate", {})


def test_a_subagent_is_a_side_trace_of_its_session(tmp_path: Path) -> None:
    main, side = OpencodeFile(), OpencodeFile(id="ses_side", parentID="ses_garden")
    for file in (main, side):
        file.user("Water the beds.")
        step(file, 1)
    above, _ = read(tmp_path, main)
    below, report = read(tmp_path, side)
    assert (below.kind, below.parent_trace_id, report.steps_side) == ("side", above.trace_id, 1)


def test_what_is_not_understood_is_named_and_what_follows_is_lost(tmp_path: Path) -> None:
    file = OpencodeFile(revert={"messageID": "msg_9"}, hue="green")
    file.user("Water the beds.")
    step(file, 1)
    file.user("Look.", {"type": "hologram", "light": 1})
    step(file, 2)
    file.answer("So.", {"type": "tool", "callID": "c", "tool": "read", "state": {"status": "dreaming"}})
    step(file, 3)
    file.add({"role": "oracle"}, [])
    file.user("On.", system="Be brief.")
    step(file, 4)
    path = file.write(tmp_path / "session.json")
    (trace,), report = ingest_file(path)
    assert [state.fidelity.context for state in trace.states()] == ["complete", "lost", "lost", "lost"]
    assert report.unknown == {"part hologram": 1, "part tool.status": 1, "message oracle": 1}
    assert report.flags == {
        "session with messages that the user took back": 1,
        "message of the user with a system prompt of its own": 1,
        "message of the user while the agent worked": 1,
    }
    census = take_census([tmp_path]).found["opencode", "no version"]
    assert set(census.unknown_kinds) == {"part hologram", "part tool.status", "message oracle"}
    assert census.unknown_keys == {"session: hue": 1}


def test_a_part_that_stands_twice_counts_once_and_another_of_its_id_is_kept(tmp_path: Path) -> None:
    file = OpencodeFile()
    file.user("Water the beds.")
    step(file, 1)
    file.answer("I water.", call_part("c2", "bash", "wet", command="water", exit=1))
    (single,), counted = ingest_file(file.write(tmp_path / "session.json"))
    for message in file.messages:
        message["parts"] = [part for part in message["parts"] for _ in range(2)]
    file.messages.append(file.messages[1])
    (trace,), report = ingest_file(file.write(tmp_path / "session.json"))
    assert trace.contexts == single.contexts
    assert (report.states, report.tool_calls, report.tool_errors) == (2, 2, 1)
    assert (counted.states, counted.tool_calls, counted.tool_errors) == (2, 2, 1)
    assert report.records == counted.records == {"user": 1, "assistant": 2}
    assert (report.skipped, report.flags) == ({"part that stands in the file before": 14}, {})

    file = OpencodeFile()
    file.user("Water the beds.")
    file.answer(
        "", call_part("c1", "read", "dry", filePath="/a"), call_part("c1", "read", "wet", filePath="/b")
    )
    file.messages[1]["parts"][2]["id"] = file.messages[1]["parts"][1]["id"]
    trace, report = read(tmp_path, file)
    messages = trace.contexts[0].messages
    assert [call.id for m in messages for call in m.tool_calls] == ["c1", "c1_2"]
    assert [(m.tool_call_id, m.content) for m in messages[2:]] == [("c1", "dry"), ("c1_2", "wet")]
    assert (report.skipped, report.flags) == ({}, {"part of an id that another part has": 1})


def test_broken_files(tmp_path: Path) -> None:
    file = OpencodeFile()
    file.user("Water the beds.")
    step(file, 1)
    whole = file.write(tmp_path / "session.json")
    whole.write_text(whole.read_text()[:-40])
    with pytest.raises(SourceError, match="does not parse: not json"):
        ingest_file(whole)
    empty = OpencodeFile()
    empty.user("Water the beds.")
    traces, report = ingest_file(empty.write(tmp_path / "session.json"))
    assert (traces, report.skipped) == ([], {"session without a step": 1})
    (tmp_path / "chat.json").write_text(json.dumps({"messages": [{"role": "user", "content": "x"}]}))
    assert detect(tmp_path / "chat.json") != "opencode"


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_an_export_behind_the_line_that_opencode_prints_is_read(tmp_path: Path, newline: str) -> None:
    file = OpencodeFile()
    file.user("Water the beds.")
    step(file, 1)
    path = file.write(tmp_path / "session.json")
    (alone,), _ = ingest_file(path)
    export = path.read_text()
    path.write_text(f"Exporting session: ses_1be58628dffe{newline}{export}", newline="")
    assert detect(path) == "opencode"
    assert ingest_file(path)[0] == [alone]
    path.write_text(f"Exporting sessions{newline}{export}", newline="")
    assert detect(path) is None


ACTIONS = st.one_of(
    st.tuples(st.just("user"), st.just(0)),
    st.tuples(st.just("step"), st.integers(0, 3)),
    st.tuples(st.just("failed"), st.just(0)),
    st.tuples(st.just("compact"), st.just(0)),
    st.tuples(st.just("clear"), st.just(0)),
)


@given(st.lists(ACTIONS, max_size=25))
@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_every_step_is_shown_what_was_said_before(tmp_path: Path, actions: list[tuple[str, int]]) -> None:
    file, said, expected = OpencodeFile(), list[str](), list[list[str]]()
    seen: list[tuple[int, dict[str, Any]]] = []
    for number, (kind, value) in enumerate([("user", 0), *actions, ("user", 0), ("step", 1)]):
        if kind == "user":
            file.user(f"say {number}")
            said.append(f"user: say {number}")
        elif kind == "failed":
            file.assistant([step_start(), text_part("no")], error={"name": "APIError"})
        elif kind == "compact":
            file.compact(f"sum {number}")
            said[:] = ["user: What did we do so far?", f"assistant: sum {number}"]
            seen.clear()
        elif kind == "clear":
            for place, part in seen:
                part["state"]["time"].setdefault("compacted", file.now - 500)
                said[place] = "tool: [Old tool result content cleared]"
        else:
            expected.append(list(said))
            calls = [call_part(f"c{number}_{at}", "read", f"got {number} {at}") for at in range(value)]
            said.append(f"assistant: do {number}")
            file.answer(f"do {number}", *calls)
            for part in file.messages[-1]["parts"]:
                if part["type"] == "tool":
                    seen.append((len(said), part))
                    said.append(f"tool: {part['state']['output']}")
    trace, report = read(tmp_path, file)
    assert [shown(state) for state in trace.states()] == expected
    assert (dict(report.skipped), dict(report.unknown)) == ({}, {})


def test_an_edit_that_failed_and_its_fix_are_a_pair(tmp_path: Path) -> None:
    file = OpencodeFile()
    file.user("Six beds.")
    path = "/home/dev/garden/beds.py"
    file.answer("", call_part("c1", "read", "1: BEDS = 3\n2: BED = 3", filePath=path))
    wrong = {"filePath": path, "oldString": "BEDS = 4", "newString": "BEDS = 6"}
    file.answer("", failed_part("c2", "edit", "Error: oldString not found in content", **wrong))
    file.answer("", call_part("c3", "edit", "Done.", **wrong | {"oldString": "BEDS = 3"}))
    file.answer("Six beds now.")
    trace, _ = read(tmp_path, file)
    (pair,), counts = hindsight_pairs(replace(trace, redaction="none"))
    assert [call.parsed() for call in pair.chosen[0].tool_calls] == [wrong | {"oldString": "BEDS = 3"}]
    assert [call.parsed() for call in pair.rejected[0].tool_calls] == [wrong]
    assert dict(counts) == {}


def test_a_session_is_asked_and_paired(tmp_path: Path) -> None:
    file = OpencodeFile()
    file.user("glow in src/glow.py raises KeyError. Fix it.")
    path = "/home/dev/garden/src/glow.py"
    steps: list[tuple[str, dict[str, Any], str]] = [
        ("read", {"filePath": path}, "1: def glow():\n2:     raise KeyError"),
        ("bash", {"command": "python reproduce.py", "exit": 1}, "KeyError"),
        ("edit", {"filePath": path, "oldString": "raise KeyError", "newString": "return 1"}, "Done."),
        ("grep", {"pattern": "glow"}, "src/glow.py:1"),
        ("list", {"path": "/home/dev/garden"}, "src/"),
        ("todowrite", {"todos": []}, "[]"),
        ("bash", {"command": "python -m pytest tests", "exit": 0}, "1 passed"),
    ]
    for number, (name, arguments, output) in enumerate(steps):
        file.answer("So.", call_part(f"c{number}", name, output, **arguments))
    file.answer("Fixed.")
    trace, _ = read(tmp_path, file)
    states = list(trace.states())
    operations = [find_action_operation(state.student_action, "opencode") for state in states]
    assert operations == ["read", "run", "edit", "search", "list", "plan", "run_test", "finish"]
    replies = tm.replay_trace_sync(
        states,
        teachers=PRESETS["simulated"].teachers,
        max_total_usd=1.0,
        settings=tm.ReplaySettings(stop="off"),
    )
    assert len(replies) == 4 * len(states)
    pairs = tm.extract_dpo_pairs(states, replies, agreement_threshold=2)
    assert pairs
    assert {pair.presentation.rpartition("system=")[2] for pair in pairs} == {"stand_in,tools=stand_in"}
