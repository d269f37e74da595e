"""Tasks of Cline and Roo Code: what was shown at each step, by the history and the files beside it."""

import json
from pathlib import Path
from typing import Any

import pytest
from cline_records import TaskFolder, count_history, text_block, tool_result, tool_use
from file_readers import file_reader
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import tracemill as tm
from tracemill.harnesses.operations import find_action_operation
from tracemill.ingesters.census import take_census
from tracemill.ingesters.cline.ingest_task import iter_traces
from tracemill.ingesters.companion_files import digest_companion_files
from tracemill.ingesters.detect_format import detect
from tracemill.ingesters.discover import discover
from tracemill.pairs.hindsight import hindsight_pairs
from tracemill.records.errors import SourceError
from tracemill.records.identity import make_trace_id
from tracemill.records.ingest_report import IngestReport
from tracemill.records.message import ErrorKind
from tracemill.records.trace import Trace, TraceState, Usage
from tracemill.teachers.core.presets import PRESETS

ingest_file = file_reader("cline", iter_traces)
GOLDEN = Path(__file__).resolve().parents[1] / "golden" / "inputs" / "cline"
TASK = "1772359200123"


def read(tmp_path: Path, task: TaskFolder, view: bool = True) -> tuple[Trace, IngestReport]:
    path = task.write(tmp_path / TASK, view)
    assert detect(path) == "cline"
    (trace,), report = ingest_file(path)
    return trace, report


def shown(state: TraceState) -> list[str]:
    return [f"{m.role}: {m.content}" for m in state.messages]


def contexts(trace: Trace) -> list[tuple[str, int, str]]:
    return [(c.start, len(c.steps), c.fidelity.context) for c in trace.contexts]


def test_a_task_becomes_steps_with_prefixes_and_facts(tmp_path: Path) -> None:
    task = TaskFolder()
    task.task("Water the beds.")
    thought = {"type": "thinking", "thinking": "Which one?", "signature": "x"}
    task.answer(thought, "I look first.", tool_use("c1", "read_file", path="beds.py"), id="r1")
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}}
    task.user(tool_result("c1", [text_block("BEDS = 3")]), "<feedback>\nGo on.\n</feedback>", image)
    task.answer(tool_use("c2", "attempt_completion", result="Three beds."))
    trace, report = read(tmp_path, task)
    assert trace.trace_id == make_trace_id("cline", TASK)
    assert (trace.source, trace.harness, trace.project, trace.kind) == ("cline", "cline", "garden", "main")
    assert trace.started_at == "2026-03-01T10:00:01+00:00"
    first, second = trace.states()
    assert [m.role for m in first.messages] == ["user"]
    assert first.messages[0].content.startswith("<task>\nWater the beds.\n</task>\n<environment_details>")
    assert shown(second)[1:3] == ["assistant: I look first.", "tool: BEDS = 3"]
    assert shown(second)[3].startswith("user: <feedback>\nGo on.\n</feedback>\n[image: image/png, 2 bytes")
    assert json.loads(first.student_action.tool_calls[0].arguments) == {"path": "beds.py"}
    assert first.context.messages[1].reasoning == "Which one?"
    assert (first.step.native_id, first.step.cwd) == ("r1", "/home/dev/garden")
    assert first.step.usage == Usage(135, 7, 30, 0.02)
    assert (first.step.model, first.step.family) == ("claude-sonnet-4-5", "anthropic")
    fidelity = first.fidelity
    assert (fidelity.system, fidelity.tools, fidelity.context) == ("absent", "absent", "complete")
    assert report.records == {"user": 2, "assistant": 2}
    assert (report.steps_main, report.tool_calls, dict(report.skipped)) == (2, 2, {})
    assert dict(report.flags) == {}
    assert [find_action_operation(s.student_action, trace.harness) for s in trace.states()] == [
        *("read", "finish")
    ]


def test_without_the_view_a_task_is_approximate(tmp_path: Path) -> None:
    task = TaskFolder()
    task.task("Water the beds.")
    metrics = {"tokens": {"prompt": 10, "completion": 4, "cached": 90}, "cost": 0.5}
    task.answer("Done?", metrics=metrics)
    trace, report = read(tmp_path, task, view=False)
    (state,) = trace.states()
    assert state.fidelity.context == "approximate"
    assert state.step.usage == Usage(100, 4, 90, 0.5)
    assert report.flags == {"history without the messages of the view": 1}


def test_a_hidden_range_begins_a_context_without_it(tmp_path: Path) -> None:
    task = TaskFolder()
    task.task("Water the beds.")
    for number in range(3):
        task.step(number)
    task.see("error_retry")  # the request was too long, and was cut then
    task.range = [2, 3]  # the second answer and the result before it
    task.step(3)
    task.step(4)
    trace, report = read(tmp_path, task)
    assert contexts(trace) == [("start", 3, "complete"), ("compaction", 2, "approximate")]
    fourth = trace.contexts[1]
    assert [m.content for m in fourth.messages[1:]] == [
        *("", "", "seen 2", "", "seen 3", "", "seen 4"),
    ]
    assert [call.id for m in fourth.messages for call in m.tool_calls] == ["c0", "c2", "c3", "c4"]
    assert (report.compactions, dict(report.skipped), trace.notes["live_context"]) == (1, {}, 1)


def test_texts_that_were_replaced_begin_a_context(tmp_path: Path) -> None:
    task = TaskFolder()
    task.task("Water the beds.")
    task.step(0)
    task.step(1)
    replaced = task.time - 1
    task.files["context_history.json"] = [
        [2, [2, [[0, [[replaced, "text", ["(removed)"], []]]]]]],
        [9, [0, [[0, [[replaced + 10**9, "text", ["(later)"], []]]]]]],
    ]
    task.answer("So.", tool_use("c2", "read_file", path="x"))
    task.user(tool_result("c2", "seen 2"))
    task.answer("Done.")
    trace, _ = read(tmp_path, task)
    *_, third, fourth = trace.states()
    assert [m.content for m in trace.contexts[0].messages][2:5:2] == ["seen 0", "seen 1"]
    assert shown(third)[2:] == ["tool: (removed)", "assistant: ", "tool: seen 1"]
    assert shown(fourth)[-2:] == ["assistant: So.", "tool: seen 2"]
    assert contexts(trace) == [("start", 2, "complete"), ("microcompaction", 2, "complete")]


def test_a_summary_of_roo_code_hides_what_it_replaces(tmp_path: Path) -> None:
    task = TaskFolder(roo=True)
    task.task("Water the beds.")
    task.step(0)
    task.step(1)
    for message in task.history:
        message["condenseParent"] = "s1"
    task.user("## Conversation Summary\nAll is dry.", isSummary=True, condenseId="s1")
    task.step(2)
    task.answer("Done.")
    trace, report = read(tmp_path, task)
    assert (trace.harness, {s.step.model for s in trace.states()}) == ("roo_code", {"qwen/qwen3-coder"})
    assert contexts(trace) == [("start", 2, "complete"), ("compaction", 2, "complete")]
    *_, third, fourth = trace.states()
    assert shown(third) == ["user: ## Conversation Summary\nAll is dry."]
    assert shown(fourth)[1:] == ["assistant: ", "tool: seen 2"]
    assert (report.compactions, report.steps_main, dict(report.flags)) == (1, 4, {})


def test_a_truncation_of_roo_code_counts_from_the_time_of_the_view(tmp_path: Path) -> None:
    task = TaskFolder(roo=True)
    task.task("Water the beds.")
    for number in range(3):
        task.step(number)
    for place in (1, 2):
        task.history[place]["truncationParent"] = "t1"
    marker = {"role": "user", "content": "[2 messages hidden]", "isTruncationMarker": True}
    task.history.insert(3, marker | {"truncationId": "t1", "ts": task.history[3]["ts"] - 1})
    task.see("sliding_window_truncation", contextTruncation={"truncationId": "t1", "messagesRemoved": 2})
    task.step(3)
    trace, report = read(tmp_path, task)
    assert contexts(trace) == [("start", 3, "complete"), ("compaction", 1, "complete")]
    third, fourth = list(trace.states())[2:]
    assert shown(third)[1:] == ["assistant: ", "tool: seen 0", "assistant: ", "tool: seen 1"]
    assert shown(fourth)[1:] == [
        *("user: [2 messages hidden]", "assistant: ", "tool: seen 1"),
        *("assistant: ", "tool: seen 2"),
    ]
    assert dict(report.flags) == {}
    task.view = [each for each in task.view if each["say"] != "sliding_window_truncation"]
    trace, report = read(tmp_path, task)
    assert [state.fidelity.context for state in trace.states()] == ["complete", *["approximate"] * 3]
    assert report.flags == {"summary or truncation of an unknown time": 1}


def test_answers_kept_behind_a_later_summary_are_lost(tmp_path: Path) -> None:
    task = TaskFolder(roo=True)
    task.task("Water the beds.")
    summary = task.answer("All is dry.", isSummary=True)
    task.history[summary]["ts"] = 5
    task.user("<feedback>\nGo on.\n</feedback>")
    task.step(1)
    task.see("condense_context", contextCondense={"summary": "All is dry."})
    task.answer("Done.")
    trace, report = read(tmp_path, task)
    assert contexts(trace) == [("start", 1, "lost"), ("compaction", 1, "complete")]
    assert shown(list(trace.states())[1])[1:] == [
        *("assistant: All is dry.", "user: <feedback>\nGo on.\n</feedback>"),
        *("assistant: ", "tool: seen 1"),
    ]
    assert report.flags["answer older than the summary that replaced its prompt"] == 1


def test_results_written_as_texts_belong_to_their_calls(tmp_path: Path) -> None:
    task = TaskFolder()
    task.task("Water the beds.")
    calls = (tool_use("c1", "read_file", path="a"), tool_use("c2", "execute_command", command="make"))
    task.answer(*calls)
    task.user(
        "[execute_command for 'make'] Result:\nCommand failed with exit code 2.\nOutput:\nno rule",
        "Tool [read_file] was not executed because a tool has already been used in this message.",
        "Look again.",
    )
    task.answer("Done.")
    trace, report = read(tmp_path, task)
    first, second = trace.states()
    assert [(m.tool_call_id, m.error_kind) for m in first.results] == [
        *(("c1", ErrorKind.CANCELLED), ("c2", ErrorKind.EXIT_CODE)),
    ]
    assert shown(second)[-1] == "user: Look again."
    assert [s.fidelity.context for s in trace.states()] == ["complete", "approximate"]
    assert report.flags == {"result of a call written as text of the user": 2}
    assert report.tool_errors == 2


def test_a_call_in_tags_is_answered_by_the_user(tmp_path: Path) -> None:
    task = TaskFolder()
    task.task("Water the beds.")
    task.answer(
        "I edit.\n\n<replace_in_file>\n<path>src/a.py</path>\n<diff>\n------- SEARCH\n"
        "<path>x</path>\n=======\ny\n+++++++ REPLACE\n</diff>\n</replace_in_file>"
    )
    failure = "[replace_in_file for 'src/a.py'] Result:\nThe tool execution failed with the following error:"
    task.user(f"{failure}\n<error>\nx\n</error>", "<environment_details>\n</environment_details>")
    task.answer("<execute_command>\n<command>pytest tests</command>\n</execute_command>")
    task.user("[execute_command for 'pytest tests'] Result:\nCommand executed.\nOutput:\n1 passed")
    task.answer("All is done.")
    trace, report = read(tmp_path, task)
    states = list(trace.states())
    assert [find_action_operation(s.student_action, "cline") for s in states] == ["edit", "run_test", "other"]
    answer = states[1].messages[2]
    assert (answer.role, answer.is_error, answer.error_kind) == ("user", True, ErrorKind.TOOL_ERROR)
    assert states[2].messages[4].is_error is None
    assert (report.tool_errors, report.tool_calls) == (1, 0)
    assert contexts(trace) == [("start", 3, "complete")]


@pytest.mark.parametrize(
    ("text", "fields", "failed", "kind"),
    [
        ("The user denied this operation.", {}, True, ErrorKind.USER_REJECTION),
        ('{"status":"denied","feedback":"no"}', {}, True, ErrorKind.USER_REJECTION),
        ('{"status":"error","message":"The tool execution failed"}', {}, True, ErrorKind.TOOL_ERROR),
        ("Command execution was not successful.\nExit code: 1\nOutput:\nx", {}, True, ErrorKind.EXIT_CODE),
        ("Command executed in terminal.\nExit code: 0\nOutput:\nx", {}, False, None),
        ("Command timed out after 30 seconds.", {}, True, ErrorKind.TIMEOUT),
        ("No such place.", {"is_error": True}, True, ErrorKind.TOOL_ERROR),
        ("BEDS = 3\nExit code: now", {}, None, None),
        ("BEDS = 3", {"is_error": False}, False, None),
    ],
)
def test_every_kind_of_error(
    tmp_path: Path, text: str, fields: dict[str, Any], failed: bool | None, kind: ErrorKind | None
) -> None:
    task = TaskFolder()
    task.task("Water the beds.")
    task.answer(tool_use("c1", "execute_command", command="x"))
    task.user(tool_result("c1", text, **fields))
    trace, report = read(tmp_path, task)
    (state,) = trace.states()
    assert [(m.is_error, m.error_kind) for m in state.results] == [(failed, kind)]
    assert report.tool_errors == (failed is True)


def test_answers_that_are_no_whole_actions_are_no_steps(tmp_path: Path) -> None:
    task = TaskFolder()
    task.task("Water the beds.")
    task.answer({"type": "thinking", "thinking": "hm"})
    task.answer("Half\n\n[Response interrupted by user]")
    task.user("[TASK RESUMPTION] It was interrupted.")
    task.answer("Failure: I did not provide a response.")
    task.user("Go on.")
    task.answer("<read_file>\n<path>a</path>\n</read_file>\n\n[Response interrupted by a tool use result.]")
    trace, report = read(tmp_path, task)
    (state,) = trace.states()
    assert [m.role for m in state.messages] == ["user", "assistant", "user", "assistant", "user"]
    assert report.flags == {
        "step without action": 1,
        "answer that broke off": 2,
        "answer that the harness cut off behind its call": 1,
    }
    assert report.steps_synthetic == 2


def test_a_task_of_a_task_is_a_side_trace_and_files_beside_are_not_read_alone(tmp_path: Path) -> None:
    home = tmp_path / ".config" / "Code" / "User" / "globalStorage" / "rooveterinaryinc.roo-cline" / "tasks"
    for name, parent in ((TASK, None), ("1772359200124", TASK)):
        task = TaskFolder(roo=True)
        task.task("Water the beds.")
        task.step(0)
        task.files["history_item.json"] = {"id": name, "parentTaskId": parent, "workspace": "/home/dev/shed"}
        task.files["task_metadata.json"] = {"files_in_context": []}
        task.write(home / name)
    sources = discover([tmp_path])
    assert [(source.path.name, source.dialect) for source in sources] == [
        ("api_conversation_history.json", "cline")
    ] * 2
    traces = [trace for source in sources for trace in ingest_file(source.path)[0]]
    main, side = sorted(traces, key=lambda trace: trace.kind)
    assert (main.kind, side.kind, side.parent_trace_id, side.project) == (
        *("main", "side", main.trace_id, "shed"),
    )
    before = digest_companion_files(sources[0].path, "cline")
    (home / TASK / "ui_messages.json").write_text("[]")
    assert digest_companion_files(sources[0].path, "cline") != before


def test_what_is_not_understood_is_named_and_what_follows_is_lost(tmp_path: Path) -> None:
    task = TaskFolder()
    task.task("Water the beds.")
    task.step(0)
    task.user({"type": "hologram"}, "Look.")
    task.step(1)
    task.see("oracle")
    task.history.append({"role": "oracle", "content": "It rains."})
    task.answer("Done.")
    trace, report = read(tmp_path, task)
    assert [state.fidelity.context for state in trace.states()] == ["complete", "lost", "lost"]
    assert report.unknown == {"block hologram": 1, "message oracle": 1, "view oracle": 1}
    assert set(take_census([tmp_path / TASK]).found["cline", "no version"].unknown_kinds) == {
        *("block hologram", "message oracle")
    }


def test_answers_that_only_the_view_holds_are_flagged(tmp_path: Path) -> None:
    task = TaskFolder(roo=True)
    task.task("Water the beds.")
    task.step(0)
    task.step(1)
    task.answer("Done.")
    task.see("api_req_deleted")
    del task.history[1:3]
    trace, report = read(tmp_path, task)
    assert [state.fidelity.context for state in trace.states()] == ["approximate"] * 2
    assert report.flags == {
        "answers of the view that the history no longer holds": 1,
        "requests that the user took back": 1,
    }


def test_broken_files(tmp_path: Path) -> None:
    task = TaskFolder()
    task.task("Water the beds.")
    task.step(0)
    task.files["task_metadata.json"] = []
    path = task.write(tmp_path / TASK)
    (path.parent / "ui_messages.json").write_text('[{"ts": 1')
    (trace,), report = ingest_file(path)
    assert (trace.step_count, report.flags["file beside the history that cannot be read"]) == (1, 2)
    path.write_text(path.read_text()[:-40])
    with pytest.raises(SourceError) as raised:
        ingest_file(path)
    assert str(raised.value).endswith(
        "does not parse: not json; expected one JSON value; check that it is whole"
    )
    empty = TaskFolder()
    empty.task("Water the beds.")
    traces, report = ingest_file(empty.write(tmp_path / "1772359200999"))
    assert (traces, report.skipped) == ([], {"task without a step": 1})


@pytest.mark.parametrize(
    ("value", "dialect"),
    [
        ([{"role": "user", "content": "<task>\nx\n</task>", "ts": 5}], "cline"),
        ([{"role": "user", "content": "<task>\nx\n</task>"}], None),
        ([{"role": "user", "content": [text_block("<environment_details>\n")]}], "cline"),
        ([{"role": "system", "content": "x"}, {"role": "user", "content": "<environment_details>"}], None),
        ([{"ts": 5, "type": "say", "say": "text", "text": "<task>"}], None),
        ([{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hi"}], None),
    ],
)
def test_a_history_is_told_by_its_content(tmp_path: Path, value: Any, dialect: str | None) -> None:
    path = tmp_path / "anything.json"
    path.write_text(json.dumps(value))
    assert detect(path) == dialect
    path.write_text(json.dumps(value, indent=2))
    assert detect(path) == dialect


ACTIONS = st.lists(st.sampled_from(["user", "step", "text", "hide"]), max_size=20)


@given(ACTIONS)
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_every_step_is_shown_what_was_sent(tmp_path: Path, actions: list[str]) -> None:
    """Lines of each message are kept as a list; a hidden range leaves the first two and what is behind it."""
    task, expected, lines = TaskFolder(), list[list[str]](), list[list[str]]()
    task.task("Go.")
    lines.append([f"user: {task.history[0]['content'][0]['text']}\n{task.history[0]['content'][1]['text']}"])
    for number, kind in enumerate(["step", *actions, "text"]):
        if kind == "hide":
            last = len(lines) - (2 if number % 2 else 4)
            if last >= 3 and (task.range is None or last > task.range[1]):
                task.range = [2, last]
            continue
        hidden = range(2, task.range[1] + 1) if task.range else range(0)
        prompt = [line for place, said in enumerate(lines) if place not in hidden for line in said]
        if task.range:  # a result whose call is hidden is not sent
            first = task.range[1] + 1
            before = [line for said in lines[:2] for line in said]
            after = [line for said in lines[first + 1 :] for line in said]
            rest = [line for line in lines[first] if not line.startswith("tool: ")]
            prompt = [*before, *rest, *after]
        expected.append(prompt)
        calls = [tool_use(f"c{number}", "read_file", path="a")] if kind == "step" else []
        task.answer(f"do {number}", *calls)
        lines.append([f"assistant: do {number}"])
        results = [tool_result(f"c{number}", f"got {number}")] if kind == "step" else []
        task.user(*results, f"say {number}")
        lines.append([*(f"tool: got {number}" for _ in results), f"user: say {number}"])
    trace, report = read(tmp_path, task)
    assert [shown(state) for state in trace.states()] == expected
    assert (dict(report.skipped), dict(report.unknown)) == ({}, {})


def test_a_task_is_counted_as_without_the_reader() -> None:
    paths = sorted(GOLDEN.rglob("api_conversation_history.json"))
    assert len(paths) >= 8
    steps = 0
    for path in paths:
        traces, report = ingest_file(path)
        counted = count_history(path)
        assert report.records == {key: counted[key] for key in ("user", "assistant") if counted[key]}, path
        summaries = sum(bool(record.get("isSummary")) for record in json.loads(path.read_text()))
        made = sum(trace.step_count for trace in traces)
        roles = [r["role"] for r in json.loads(path.read_text()) if r.get("isSummary")]
        assert made == counted["whole"] - roles.count("assistant"), (path, summaries)
        steps += made
    assert steps >= 30


def test_a_task_is_asked_and_paired(tmp_path: Path) -> None:
    task = TaskFolder()
    task.task("glow in src/glow.py raises KeyError. Fix it.")
    block = "<<<<<<< SEARCH\n    raise {}\n=======\n    return 1\n>>>>>>> REPLACE"
    steps = [
        ("read_file", {"path": "src/glow.py"}, "def glow():\n    raise KeyError"),
        (
            *("replace_in_file", {"path": "src/glow.py", "diff": block.format("Keyerror")}),
            "The tool execution failed with the following error:\n<error>\nThe SEARCH block:\n    raise "
            "Keyerror\n...does not match anything in the file.\n</error>",
        ),
        ("replace_in_file", {"path": "src/glow.py", "diff": block.format("KeyError")}, "Saved."),
        ("execute_command", {"command": "python -m pytest tests"}, "Command executed.\nOutput:\n1 passed"),
    ]
    for number, (name, arguments, output) in enumerate(steps):
        task.answer("So.", tool_use(f"c{number}", name, **arguments))
        task.user(tool_result(f"c{number}", output))
    task.answer(tool_use("c9", "attempt_completion", result="Fixed."))
    trace, _ = read(tmp_path, task)
    states = list(trace.states())
    operations = [find_action_operation(state.student_action, "cline") for state in states]
    assert operations == ["read", "edit", "edit", "run_test", "finish"]
    (fixed,), _ = hindsight_pairs(trace)
    sides = [side[0].tool_calls[0] for side in (fixed.chosen, fixed.rejected)]
    assert [json.loads(call.arguments)["diff"] for call in sides] == [
        *(block.format("KeyError"), block.format("Keyerror"))
    ]
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
