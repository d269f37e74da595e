"""Rollouts of Codex: every prompt is what was sent, whatever was compacted, taken back, forked or cut off."""

import json
import tempfile
from pathlib import Path
from typing import Any

import pytest
from codex_records import BASE, SESSION, Item, Rollout
from file_readers import file_reader
from hypothesis import given, settings
from hypothesis import strategies as st

from tracemill.harnesses.operations import find_action_operation, find_operation_and_target
from tracemill.ingesters.codex.ingest_session import iter_traces
from tracemill.ingesters.codex.items import codex_error
from tracemill.ingesters.detect_format import detect
from tracemill.ingesters.discover import discover
from tracemill.ingesters.read_source import ingest_source
from tracemill.records.ingest_report import IngestReport
from tracemill.records.message import Message
from tracemill.records.trace import Trace

ingest_file = file_reader("codex", iter_traces)

PATCH = """*** Begin Patch
*** Update File: src/garden/beds.py
@@
-ROWS = 3
+ROWS = 4
*** End Patch
"""


def _items(messages: Any) -> list[Item]:
    """Return messages as the items that they were made of."""
    items: list[Item] = []
    for message in messages:
        if message.role == "assistant":
            items += [("says", text) for text in message.content.split("\n") if text]
            items += [("calls", call.id, call.name, call.arguments) for call in message.tool_calls]
        elif message.role == "tool":
            items.append(("tool", message.tool_call_id or "", message.content))
        else:
            items.append((message.role, message.content))
    return items


def _read(rollout: Rollout, path: Path) -> tuple[Trace, IngestReport]:
    assert detect(rollout.save(path)) == "codex"
    (trace,), report = ingest_file(path)
    return trace, report


def _start() -> Rollout:
    rollout = Rollout()
    rollout.say("developer", "<permissions instructions>ask</permissions instructions>")
    rollout.say("user", "<environment_context><cwd>/home/dev/garden</cwd></environment_context>")
    return rollout


def _work(rollout: Rollout) -> None:
    rollout.turn("Plant a fourth row.")
    rollout.thinks("Looking first.")
    rollout.says("I look at the beds.")
    rollout.calls("exec_command", "c1", cmd="cat src/garden/beds.py", workdir="/home/dev/garden")
    rollout.calls("exec_command", "c2", cmd="rg ROWS", workdir="/home/dev/garden")
    rollout.tokens(1200, 80, 600)
    rollout.ran("c2", "src/garden/beds.py:1:ROWS = 3\n")
    rollout.ran("c1", "ROWS = 3\n")
    rollout.patches("c3", PATCH)
    rollout.result(
        "c3", "apply_patch verification failed: Failed to find expected lines", "custom_tool_call_output"
    )
    rollout.tokens(1500, 90, 1200)
    rollout.patches("c4", PATCH)
    rollout.result(
        "c4",
        json.dumps({"output": "Success.", "metadata": {"exit_code": 0, "duration_seconds": 0.0}}),
        "custom_tool_call_output",
    )
    rollout.tokens(1700, 90, 1500)
    rollout.calls("exec_command", "c5", cmd="pytest -q", workdir="/home/dev/garden")
    rollout.tokens(1900, 30, 1700)
    rollout.ran("c5", "1 failed\n", 1)
    rollout.says("One test fails, as before.")
    rollout.tokens(2000, 30, 1900)
    rollout.done()


def test_a_prompt_is_the_instructions_and_the_items_before_the_answer(tmp_path: Path) -> None:
    rollout = _start()
    _work(rollout)
    trace, report = _read(rollout, tmp_path / "rollout.jsonl")
    states = list(trace.states())
    assert [_items(state.messages) for state in states] == rollout.prompts
    assert [len(prompt) for prompt in rollout.prompts] == [4, 9, 11, 13, 15]
    assert states[0].messages[0] == Message("system", BASE)
    fidelity = trace.contexts[0].fidelity
    assert (fidelity.system, fidelity.tools, fidelity.context) == ("recorded", "absent", "complete")
    assert [find_operation_and_target(s.student_action, "codex") for s in states] == [
        ("read", "src/garden/beds.py"), ("edit", "src/garden/beds.py"), ("edit", "src/garden/beds.py"),
        ("run_test", "pytest"), ("finish", None),
    ]  # fmt: skip
    results = [m for m in trace.contexts[0].messages if m.role == "tool"]
    assert [(m.tool_call_id, m.is_error, m.error_kind) for m in results] == [
        ("c2", False, None), ("c1", False, None), ("c3", True, "tool_error"), ("c4", False, None),
        ("c5", True, "exit_code"),
    ]  # fmt: skip
    usage = [
        (s.step.usage.prompt_tokens, s.step.usage.completion_tokens, s.step.usage.cached_tokens)
        for s in states
    ]
    assert usage == [(1200, 80, 600), (1500, 90, 1200), (1700, 90, 1500), (1900, 30, 1700), (2000, 30, 1900)]
    assert {(s.step.model, s.step.family, s.step.cwd) for s in states} == {
        ("gpt-5.4", "openai", "/home/dev/garden")
    }
    assert (trace.project, trace.harness_version, trace.kind) == ("garden", "0.140.0", "main")
    assert (report.tool_calls, report.tool_errors, report.steps_main) == (5, 2, 5)
    assert states[0].context.messages[states[0].step.cut].reasoning == "Looking first."


def test_a_compaction_begins_a_context_with_the_history_that_replaces_the_old_one(tmp_path: Path) -> None:
    rollout = _start()
    _work(rollout)
    rollout.compact(
        [("system", "<permissions>"), ("user", "Plant a fourth row."), ("user", "Rows are planted.")]
    )
    rollout.says("Next I water.")
    rollout.tokens()
    rollout.compact([("user", "Plant a fourth row.")], message="")
    rollout.says("Watered.")
    trace, report = _read(rollout, tmp_path / "rollout.jsonl")
    assert [_items(state.messages) for state in trace.states()] == rollout.prompts
    assert [(c.start, c.fidelity.context, len(c.steps)) for c in trace.contexts] == [
        ("start", "complete", 5), ("compaction", "complete", 1), ("compaction", "lost", 1),
    ]  # fmt: skip
    assert report.compactions == 2


def test_a_compaction_without_a_recorded_history_keeps_the_users_texts_and_the_summary(
    tmp_path: Path,
) -> None:
    rollout = _start()
    _work(rollout)
    rollout.write("compacted", {"message": "Summary: rows are planted."})
    rollout.says("Next I water.")
    trace, _ = _read(rollout, tmp_path / "rollout.jsonl")
    assert [m.content for m in trace.contexts[1].messages[1:-1]] == [
        "<permissions instructions>ask</permissions instructions>",
        "<environment_context><cwd>/home/dev/garden</cwd></environment_context>",
        "Plant a fourth row.",
        "Summary: rows are planted.",
    ]
    assert (trace.contexts[1].fidelity.context, trace.contexts[1].approximate_from) == ("approximate", 0)


def test_turns_taken_back_are_in_no_later_prompt(tmp_path: Path) -> None:
    rollout = _start()
    _work(rollout)
    rollout.turn("And a fifth.")
    rollout.says("Planted a fifth.")
    rollout.tokens()
    rollout.done()
    rollout.roll_back()
    rollout.turn("Water them.")
    rollout.says("Watered.")
    trace, report = _read(rollout, tmp_path / "rollout.jsonl")
    assert [_items(state.messages) for state in trace.states()] == rollout.prompts
    assert [(c.start, len(c.steps)) for c in trace.contexts] == [("start", 6), ("rewind", 1)]
    assert report.branches_real == 1


def test_of_an_aborted_turn_calls_are_a_step_and_a_text_alone_is_none(tmp_path: Path) -> None:
    rollout = _start()
    rollout.turn("Plant a fourth row.")
    rollout.calls("exec_command", "c1", cmd="sleep 900")
    rollout.event("turn_aborted", reason="interrupted")
    rollout.turn("Go on.")
    rollout.says("I was saying")
    rollout.event("turn_aborted", reason="interrupted")
    rollout.turn("Again.")
    rollout.says("Here.")
    trace, report = _read(rollout, tmp_path / "rollout.jsonl")
    first, last = trace.states()
    assert first.student_action.tool_calls[0].id == "c1"
    assert _items(last.messages)[4:] == [
        ("calls", "c1", "exec_command", '{"cmd": "sleep 900"}'), ("tool", "c1", "aborted"),
        ("user", "Go on."), ("says", "I was saying"), ("user", "Again."),
    ]  # fmt: skip
    assert report.flags["answer cut off by an interrupt"] == 1


@pytest.mark.parametrize("has_turn_ids", [True, False])
def test_what_a_fork_copies_is_shown_and_its_answers_are_no_steps(tmp_path: Path, has_turn_ids: bool) -> None:
    own = "019b0000-0000-7000-8000-000000000001"
    spawn = {"subagent": {"thread_spawn": {"parent_thread_id": SESSION, "depth": 1}}}
    origin = _start()
    _work(origin)
    fork = Rollout(own, forked_from_id=SESSION, source=spawn)
    stamp = fork.records[0]["timestamp"]
    if has_turn_ids:  # a long history takes a while to write
        fork.records += origin.records
    else:
        fork.records += [{**record, "timestamp": stamp} for record in origin.records]
        fork.count += 5
    fork.sent = list(origin.sent)
    fork.turn("Check the rows.")
    fork.calls("exec_command", "c9", cmd="git diff")
    fork.tokens()
    fork.ran("c9", "+ROWS = 4\n")
    fork.says("They are planted.")
    if not has_turn_ids:
        for record in fork.records:
            record["payload"].pop("turn_id", None)
    trace, report = _read(fork, tmp_path / "rollout.jsonl")
    parent, _ = _read(origin, tmp_path / "origin.jsonl")
    assert [_items(state.messages) for state in trace.states()] == fork.prompts
    assert (trace.kind, trace.parent_trace_id) == ("side", parent.trace_id)
    assert (report.steps_side, report.flags["answer copied from the session it was forked from"]) == (2, 5)
    assert report.tool_errors == 0


def test_a_search_of_the_web_has_no_recorded_result(tmp_path: Path) -> None:
    rollout = _start()
    rollout.turn("When is frost?")
    rollout.item(
        "web_search_call", id="ws_1", status="completed", action={"type": "search", "query": "last frost"}
    )
    rollout.says("In May.")
    rollout.tokens()
    rollout.done()
    rollout.turn("Thanks.")
    rollout.says("You are welcome.")
    trace, report = _read(rollout, tmp_path / "rollout.jsonl")
    first, second = trace.states()
    assert find_operation_and_target(first.student_action, "codex") == ("web", "last frost")
    assert (first.fidelity.context, second.fidelity.context) == ("complete", "approximate")
    assert report.flags["search of the web, whose result is not recorded"] == 1


def test_recorded_tools_stand_beside_the_stand_ins_of_codex(tmp_path: Path) -> None:
    schema = {"type": "object", "properties": {"bed": {"type": "string"}}}
    tools = [
        {"name": "water", "description": "Waters a bed.", "inputSchema": schema, "deferLoading": False},
        {"type": "namespace", "name": "app", "tools": [{"name": "sow", "inputSchema": schema}]},
        {"name": "later", "description": "Found by a search.", "inputSchema": schema, "deferLoading": True},
    ]
    rollout = Rollout(dynamic_tools=tools)
    rollout.turn("Water.")
    rollout.item("function_call", namespace="app", name="sow", arguments='{"bed":"a"}', call_id="c1")
    trace, _ = _read(rollout, tmp_path / "rollout.jsonl")
    assert {tool.name: tool.origin for tool in trace.contexts[0].tools} == {
        "apply_patch": "stand_in", "exec_command": "stand_in", "update_plan": "stand_in",
        "water": "recorded", "app__sow": "recorded",
    }  # fmt: skip
    assert trace.contexts[0].fidelity.tools == "absent"


def test_an_image_is_a_placeholder_and_an_unknown_part_is_counted(tmp_path: Path) -> None:
    rollout = Rollout()
    rollout.turn()
    rollout.say("user", "See.", {"type": "input_image", "image_url": "data:image/png;base64,AAAA"})
    rollout.says("A bed.")
    rollout.tokens()
    rollout.say("user", "Hear.", {"type": "hologram", "data": "x"})
    rollout.say("user", "And.")
    rollout.says("A bird.")
    trace, report = _read(rollout, tmp_path / "rollout.jsonl")
    first, second = trace.states()
    assert first.messages[1].content.startswith("See.\n[image: image/png, 3 bytes, blake2b ")
    assert (first.fidelity.context, second.fidelity.context) == ("complete", "approximate")
    assert report.unknown == {"part hologram": 1}


def test_an_id_that_two_calls_have_is_made_unique_with_its_result(tmp_path: Path) -> None:
    rollout = _start()
    rollout.turn("Plant a fourth row.")
    rollout.calls("exec_command", "c1", cmd="date")
    rollout.calls("exec_command", "c1", cmd="ls")
    rollout.ran("c1", "noon\n")
    rollout.ran("c1", "beds.py\n", 2)
    rollout.tokens(1200)
    rollout.calls("exec_command", "c1", cmd="date")
    rollout.calls("exec_command", "c1", cmd="pwd")
    rollout.ran("c1", "one\n")
    rollout.says("It is one.")
    rollout.tokens(1400)
    trace, report = _read(rollout, tmp_path / "rollout.jsonl")
    messages = trace.contexts[0].messages
    assert [(call.id, call.arguments) for m in messages for call in m.tool_calls] == [
        ("c1", '{"cmd": "date"}'), ("c1_2", '{"cmd": "ls"}'),
        ("c1_3", '{"cmd": "date"}'), ("c1_4", '{"cmd": "pwd"}'),
    ]  # fmt: skip
    assert [(m.tool_call_id, m.content[-6:], m.is_error) for m in messages if m.role == "tool"] == [
        ("c1", "\nnoon\n", False), ("c1_2", "ds.py\n", True), ("c1_3", ":\none\n", False),
        ("c1_4", "borted", True),
    ]  # fmt: skip
    assert (report.states, report.tool_calls, report.tool_errors, report.skipped) == (3, 4, 1, {})
    assert trace.contexts[0].fidelity.context == "complete"


def test_a_call_and_a_result_that_are_written_twice_count_once(tmp_path: Path) -> None:
    rollout = _start()
    _work(rollout)
    single, counted = _read(rollout, tmp_path / "single.jsonl")
    kinds = ("function_call", "function_call_output", "custom_tool_call")
    rollout.records = [
        again
        for record in rollout.records
        for again in [record] * (1 + (record["payload"].get("type") in kinds))
    ]
    last = rollout.records[-1]
    rollout.records += [record for record in rollout.records if record["payload"].get("call_id") == "c5"]
    rollout.records.append(last)
    trace, report = _read(rollout, tmp_path / "rollout.jsonl")
    assert trace.contexts == single.contexts
    assert (report.states, report.tool_calls, report.tool_errors) == (5, 5, 2)
    assert (counted.states, counted.tool_calls, counted.tool_errors) == (5, 5, 2)
    assert report.skipped == {"call or result that is written twice": 12}


def test_what_follows_a_second_result_of_one_call_is_approximate(tmp_path: Path) -> None:
    rollout = _start()
    rollout.turn("Plant a fourth row.")
    rollout.calls("exec_command", "c1", cmd="date")
    rollout.ran("c1", "noon\n")
    rollout.ran("c1", "one\n")
    rollout.says("It is one.")
    trace, report = _read(rollout, tmp_path / "rollout.jsonl")
    assert [state.fidelity.context for state in trace.states()] == ["complete", "approximate"]
    assert report.skipped == {"second result of one call": 1}


def test_a_result_longer_than_codex_shows_makes_later_prompts_approximate(tmp_path: Path) -> None:
    rollout = _start()
    rollout.turn("Read it.", truncation_policy={"mode": "bytes", "limit": 1000})
    for call_id, length in (("c1", 1100), ("c2", 1300)):
        rollout.calls("exec_command", call_id, cmd="cat long.txt")
        rollout.result(call_id, "x" * length)
    rollout.says("Read.")
    trace, _ = _read(rollout, tmp_path / "rollout.jsonl")
    assert [state.fidelity.context for state in trace.states()] == ["complete", "complete", "approximate"]


def test_a_file_from_before_september_2025(tmp_path: Path) -> None:
    asked = [{"type": "input_text", "text": "<cwd>/src/garden</cwd>"}]
    said = [{"type": "output_text", "text": "It is not there."}]
    ran = {"type": "exec", "command": ["bash", "-lc", "cat a.py"], "working_directory": "/src/garden"}
    failed = {"content": "no such file", "success": False}
    records = [
        {"id": SESSION, "timestamp": "2025-07-01T10:00:00Z", "instructions": None, "git": {}},
        {"record_type": "state"},
        {"type": "message", "role": "user", "content": asked},
        {"type": "reasoning", "id": "rs_1", "summary": []},
        {"type": "local_shell_call", "call_id": "c1", "status": "completed", "action": ran},
        {"type": "function_call_output", "call_id": "c1", "output": failed},
        {"type": "message", "role": "assistant", "content": said},
    ]
    path = tmp_path / "rollout-old.jsonl"
    path.write_text("\n".join(map(json.dumps, records)))
    assert detect(path) == "codex"
    (trace,), _ = ingest_file(path)
    assert [str(find_action_operation(s.student_action, "codex")) for s in trace.states()] == [
        "read",
        "finish",
    ]
    assert (trace.contexts[0].fidelity.system, trace.project, trace.started_at) == (
        "absent", "garden", "2025-07-01T10:00:00Z",
    )  # fmt: skip
    assert trace.contexts[0].messages[2].error_kind == "tool_error"


def test_what_follows_a_broken_line_is_lost_and_no_result_is_made_up(tmp_path: Path) -> None:
    rollout = _start()
    _work(rollout)
    whole = rollout.save(tmp_path / "rollout.jsonl").read_text().splitlines()
    place = next(at for at, line in enumerate(whole) if '"call_id": "c3", "output"' in line)
    (tmp_path / "cut.jsonl").write_text("\n".join([*whole[:place], whole[place][:60], *whole[place + 1 :]]))
    (trace,), report = ingest_file(tmp_path / "cut.jsonl")
    assert [state.fidelity.context for state in trace.states()] == ["complete", *4 * ["lost"]]
    results = [m.tool_call_id for m in trace.contexts[0].messages if m.role == "tool"]
    assert (results, report.skipped) == (["c2", "c1", "c4", "c5"], {"not json": 1})
    place = next(at for at, line in enumerate(whole) if "Plant a fourth row." in line)
    (tmp_path / "user.jsonl").write_text("\n".join([*whole[:place], whole[place][:60], *whole[place + 1 :]]))
    (trace,), _ = ingest_file(tmp_path / "user.jsonl")
    assert {state.fidelity.context for state in trace.states()} == {"lost"}
    (tmp_path / "payload.jsonl").write_text(
        "\n".join([*whole[:place], '{"type": "response_item", "payload": []}', *whole[place + 1 :]])
    )
    (trace,), report = ingest_file(tmp_path / "payload.jsonl")
    assert {state.fidelity.context for state in trace.states()} == {"lost"}
    assert report.skipped == {"record without a payload": 1}


def test_a_line_that_holds_two_records_is_read_as_both(tmp_path: Path) -> None:
    rollout = _start()
    _work(rollout)
    single, counted = _read(rollout, tmp_path / "single.jsonl")
    lines = (tmp_path / "single.jsonl").read_text().splitlines()
    joined = "".join(lines[7:10])
    path = tmp_path / "rollout.jsonl"
    path.write_text("\n".join([*lines[:7], joined, *lines[10:]]))
    (trace,), report = ingest_file(path)
    assert trace.contexts == single.contexts
    assert (report.skipped, report.flags) == ({}, {"line of several objects": 1})
    assert report.records == counted.records
    path.write_text("\n".join([*lines[:7], joined[:-20], *lines[10:]]))
    (trace,), report = ingest_file(path)
    assert (report.skipped["not json"], report.flags) == (1, {})
    assert trace.contexts[0].fidelity.context == "lost"


def test_several_sessions_of_one_file_are_told_apart(tmp_path: Path) -> None:
    first, second = _start(), Rollout(SESSION[:-1] + "9")
    _work(first)
    second.turn("Water the beds.")
    second.says("Watered.")
    second.done()
    texts = [each.save(tmp_path / "one.jsonl").read_text() for each in (first, second)]
    (tmp_path / "both.jsonl").write_text("".join(texts))
    traces, report = ingest_file(tmp_path / "both.jsonl")
    assert [_items(state.messages) for trace in traces for state in trace.states()] == [
        *first.prompts,
        *second.prompts,
    ]
    assert ([trace.step_count for trace in traces], report.skipped) == ([5, 1], {})
    (tmp_path / "twice.jsonl").write_text(2 * texts[0])
    (trace,), report = ingest_file(tmp_path / "twice.jsonl")
    assert (trace.step_count, report.skipped) == (5, {"the same session twice": 1})
    again = json.loads(texts[0].splitlines()[0]) | {"timestamp": "2026-01-05T11:00:00.000Z"}
    (tmp_path / "facts.jsonl").write_text(texts[0] + json.dumps(again) + "\n")  # facts of the same session
    (trace,), report = ingest_file(tmp_path / "facts.jsonl")
    assert (trace.step_count, report.skipped) == (5, {})


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("exec command rejected by user", "user_rejection"),
        ("rejected by user", "user_rejection"),
        ("This action was rejected due to unacceptable risk.", "hook"),
        ("approval policy is Never; reject command", "hook"),
        ("sandbox error: denied", "tool_error"),
        ("command timed out after 1000 milliseconds", "timeout"),
        ("Nothing was rejected by user", None),
    ],
)
def test_a_result_that_says_why_its_call_did_not_run_has_failed(text: str, kind: str | None) -> None:
    assert codex_error(text) == (True if kind else None, kind)


def test_broken_files_give_one_line_and_lose_nothing_else(tmp_path: Path) -> None:
    rollout = _start()
    _work(rollout)
    whole = rollout.save(tmp_path / "rollout.jsonl").read_text().splitlines()
    (tmp_path / "cut.jsonl").write_text("\n".join(whole)[:-40])
    (trace,), report = ingest_file(tmp_path / "cut.jsonl")
    assert (trace.step_count, report.skipped) == (5, {"not json": 1})
    (tmp_path / "middle.jsonl").write_text("\n".join([*whole[:7], "{ not json", *whole[7:]]))
    (trace,), report = ingest_file(tmp_path / "middle.jsonl")
    assert (trace.step_count, report.skipped) == (5, {"not json": 1})
    (tmp_path / "slice.jsonl").write_text("\n".join(whole[5:]))
    (trace,), report = ingest_file(tmp_path / "slice.jsonl")
    assert (trace.step_count, report.flags["session whose beginning is missing"]) == (5, 1)
    (tmp_path / "meta.jsonl").write_text(whole[0])
    traces, report = ingest_file(tmp_path / "meta.jsonl")
    assert (traces, report.skipped) == ([], {"session without a step": 1})


def test_sessions_are_found_below_a_home_folder(tmp_path: Path) -> None:
    rollout = _start()
    _work(rollout)
    path = rollout.save(tmp_path / ".codex" / "sessions" / "2026" / "01" / "05" / "rollout-a.jsonl")
    archived = rollout.save(tmp_path / ".codex" / "archived_sessions" / "rollout-b.jsonl")
    (tmp_path / ".codex" / "history.jsonl").write_text('{"session_id": "x", "ts": 1, "text": "hi"}\n')
    assert {(s.path, s.dialect) for s in discover([tmp_path])} == {(path, "codex"), (archived, "codex")}
    (traces, report) = ingest_source(discover([path])[0])
    assert (len(traces), report.error) == (1, None)


MOVES = st.lists(
    st.sampled_from(
        ("turn", "steer", "says", "calls", "both", "patches", "tokens", "compact", "back", "note")
    ),
    min_size=1,
    max_size=25,
)


@settings(deadline=None, max_examples=150)
@given(MOVES)
def test_every_state_is_what_was_sent(moves: list[str]) -> None:
    rollout = _start()
    rollout.turn("turn 0")
    for number, move in enumerate(moves):
        if move == "turn":
            rollout.turn(f"turn {number}")
        elif move == "steer":
            rollout.marks.append(len(rollout.sent) + len(rollout.answer))
            rollout.say("user", f"steer {number}")
            rollout.event("user_message", message="")
        elif move == "says":
            rollout.says(f"says {number}")
            rollout.tokens()
        elif move in ("calls", "both"):
            ids = [f"c{number}", f"d{number}"] if move == "both" else [f"c{number}"]
            for call_id in ids:
                rollout.calls("exec_command", call_id, cmd=f"cat {call_id}.py")
            for call_id in reversed(ids):
                rollout.ran(call_id, "x", number % 2)
        elif move == "patches":
            rollout.patches(f"p{number}", PATCH)
            rollout.result(f"p{number}", "Success.", "custom_tool_call_output")
        elif move == "tokens":
            rollout.tokens(number + 1)
        elif move == "compact":
            rollout.compact([("user", "turn 0"), ("user", f"summary {number}")])
            rollout.turn(f"turn {number}")
        elif move == "back" and len(rollout.marks) > 1:
            rollout.roll_back()
        elif move == "note":
            rollout.thinks("hm")
            rollout.event("agent_message", message="for the interface")
    with tempfile.TemporaryDirectory() as folder:
        path = rollout.save(Path(folder) / "rollout.jsonl")
        traces, report = ingest_file(path)
    states = [state for trace in traces for state in trace.states()]
    assert [_items(state.messages) for state in states] == rollout.prompts
    assert {s.fidelity.context for s in states} <= {"complete"}
    assert report.skipped == ({} if rollout.prompts else {"session without a step": 1})


REFUSED = 'exec_command failed: CreateProcess { message: "Rejected(\\"rejected by user\\")" }'
BLOCKED = 'exec_command failed for `rm`: Rejected("`rm` rejected: blocked by policy")'
LATE = "Exit code: 124\nWall time: 9 seconds\nOutput:\ncommand timed out after 9000 milliseconds"
SCRIPT = "Script completed\nWall time 0.1 seconds\nOutput:\n\n"


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("Exit code: 0\nWall time: 0 seconds\nOutput:\nok", (False, None)),
        (LATE, (True, "timeout")),
        (REFUSED, (True, "user_rejection")),
        (BLOCKED, (True, "hook")),
        ("aborted by user after 21.0s", (True, "user_rejection")),
        ("Script failed\nWall time 0.1 seconds\nOutput:\n\nScript error:", (True, "tool_error")),
        (SCRIPT + '{"exit_code": 2, "output": ""}', (True, "exit_code")),
        (SCRIPT + "Process exited with code 1", (None, None)),
        ("Plan updated", (None, None)),
        ("Chunk ID: a\nProcess running with session ID 4\nOutput:\nProcess exited with code 1", (None, None)),
    ],
)
def test_why_a_result_failed(tmp_path: Path, text: str, error: tuple[bool | None, str | None]) -> None:
    rollout = _start()
    rollout.turn("Go.")
    rollout.calls("exec_command", "c1", cmd="x")
    rollout.result("c1", text)
    trace, _ = _read(rollout, tmp_path / "rollout.jsonl")
    result = trace.contexts[0].messages[-1]
    assert (result.is_error, result.error_kind) == error
