"""Sessions of Pi: what was really sent at each step, on every way through the tree."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from file_readers import file_reader
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pi_records import CLAUDE, GPT, PiFile, called, count_pi_file, text

import tracemill as tm
from tracemill.harnesses.operations import find_action_operation
from tracemill.ingesters.census import take_census
from tracemill.ingesters.detect_format import detect
from tracemill.ingesters.discover import discover
from tracemill.ingesters.pi.ingest_session import iter_traces
from tracemill.pairs.hindsight import hindsight_pairs
from tracemill.records.ingest_report import IngestReport
from tracemill.records.message import ErrorKind
from tracemill.records.trace import Trace, TraceState, Usage
from tracemill.teachers.core.presets import PRESETS

ingest_file = file_reader("pi", iter_traces)
REAL = os.environ.get("TRACEMILL_REAL_TRACES")
GOLDEN = Path(__file__).resolve().parents[1] / "golden" / "inputs" / "pi"


def read(tmp_path: Path, file: PiFile) -> tuple[Trace, IngestReport]:
    path = file.write(tmp_path / "2026-03-01_0190-garden.jsonl")
    assert detect(path) == "pi"
    (trace,), report = ingest_file(path)
    return trace, report


def shown(state: TraceState) -> list[str]:
    return [f"{m.role}: {m.content}" for m in state.messages]


def asked(file: PiFile, words: str = "Water the beds.") -> PiFile:
    file.user(words)
    return file


def step(file: PiFile, number: int, words: str = "", **fields: Any) -> None:
    """An answer with one call, and its result."""
    blocks = [*text(words)] if words else []
    file.answer(*blocks, called(f"c{number}", "bash", command=f"look {number}"), **fields)
    file.result(f"c{number}", f"seen {number}")


def test_a_session_becomes_steps_with_prefixes_and_facts(tmp_path: Path) -> None:
    file = asked(PiFile())
    file.answer(
        {"type": "thinking", "thinking": "Which bed?", "thinkingSignature": "s"},
        *text("I look first."),
        called("c1", "read", path="beds.py"),
        called("c2", "bash", command="ls"),
        responseId="msg_1",
    )
    file.result("c1", "BEDS = 3", tool="read")
    file.result("c2", "beds.py")
    file.answer(*text("Three beds."), reason="stop")
    trace, report = read(tmp_path, file)
    assert (trace.source, trace.harness, trace.project, trace.started_at) == (
        *("pi", "pi", "garden"),
        "2026-03-01T10:00:00.000Z",
    )
    first, second = trace.states()
    assert shown(first) == ["user: Water the beds."]
    assert [call.name for call in first.student_action.tool_calls] == ["read", "bash"]
    assert json.loads(first.student_action.tool_calls[0].arguments) == {"path": "beds.py"}
    assert first.context.messages[1].reasoning == "Which bed?"
    assert shown(second)[1:] == ["assistant: I look first.", "tool: BEDS = 3", "tool: beds.py"]
    assert first.step.usage == Usage(110, 5, 80, 0.25)
    assert (first.step.model, first.step.family, first.step.native_id, first.step.cwd) == (
        *("claude-sonnet-4-5", "anthropic", "msg_1"),
        "/home/dev/garden",
    )
    assert (first.fidelity.system, first.fidelity.tools, first.fidelity.context) == (
        *("absent", "absent"),
        "complete",
    )
    assert find_action_operation(second.student_action, "pi") == "finish"
    assert (report.traces, report.steps_main, report.tool_calls) == (1, 2, 2)
    assert report.records == {
        "session": 1,
        "message user": 1,
        "message assistant": 2,
        "message toolResult": 2,
    }


def test_each_branch_is_its_own_context_also_when_one_is_taken_up_again(tmp_path: Path) -> None:
    file = asked(PiFile())
    step(file, 1)
    fork = file.last
    step(file, 2)
    left = file.last
    file.user("Try the other bed.", parent=fork)
    step(file, 3)
    file.add("branch_summary", parent=fork, fromId="e9", summary="The other bed is dry.")
    step(file, 4)
    file.user("Back to the first.", parent=left)
    step(file, 5)
    trace, report = read(tmp_path, file)
    assert [(c.start, len(c.steps), c.fidelity.context) for c in trace.contexts] == [
        ("start", 2, "complete"),
        ("rewind", 1, "complete"),
        ("rewind", 1, "approximate"),
        ("rewind", 1, "complete"),
    ]
    states = list(trace.states())
    base = ["user: Water the beds.", "assistant: ", "tool: seen 1"]
    assert shown(states[2]) == [*base, "user: Try the other bed."]
    assert shown(states[3]) == [*base, "user: [summary of what came before]\n\nThe other bed is dry."]
    assert shown(states[4]) == [*base, "assistant: ", "tool: seen 2", "user: Back to the first."]
    assert report.branches_real == 3
    assert trace.notes == {"contexts_rewind": 3, "contexts_start": 1, "live_context": 3}


def test_a_compaction_shows_its_summary_then_what_it_kept(tmp_path: Path) -> None:
    file = asked(PiFile())
    step(file, 1)
    kept = file.user("And the trees.")
    step(file, 2)
    file.add("compaction", summary="Beds are wet.", firstKeptEntryId=kept, tokensBefore=900)
    file.user("Go on.")
    step(file, 3)
    file.add("compaction", summary="All is wet.", firstKeptEntryId="no such entry", tokensBefore=900)
    step(file, 4)
    trace, report = read(tmp_path, file)
    assert [(c.start, c.fidelity.context, c.lost_from) for c in trace.contexts] == [
        ("start", "complete", 0),
        ("compaction", "approximate", 0),
        ("compaction", "lost", 0),
    ]
    states = list(trace.states())
    assert shown(states[2]) == [
        "user: [summary of what came before]\n\nBeds are wet.",
        "user: And the trees.",
        "assistant: ",
        "tool: seen 2",
        "user: Go on.",
    ]
    assert report.compactions == 2


def test_a_compaction_that_holds_the_messages_it_kept_shows_those(tmp_path: Path) -> None:
    file = asked(PiFile())
    step(file, 1)
    tail = [
        {"role": "user", "content": "And the trees."},
        {"role": "assistant", "content": [called("c7", "bash", command="look")], "stopReason": "toolUse"},
        {
            "role": "toolResult",
            "toolCallId": "c7",
            "toolName": "bash",
            "content": text("wet"),
            "isError": True,
        },
    ]
    behind = file.add("compaction", summary="Beds are wet.", tokensBefore=900, retainedTail=tail)
    file.user("Go on.")
    step(file, 2)
    file.user("Otherwise.", parent=behind)
    step(file, 3)
    file.add(
        "compaction", summary="Dry.", tokensBefore=9, retainedTail=[{"role": "oracle", "content": "Rain."}]
    )
    step(file, 4)
    trace, report = read(tmp_path, file)
    kept = [
        "user: [summary of what came before]\n\nBeds are wet.",
        "user: And the trees.",
        "assistant: ",
        "tool: wet",
    ]
    assert [shown(state) for state in trace.states()][1:3] == [
        [*kept, "user: Go on."],
        [*kept, "user: Otherwise."],
    ]
    assert [context.fidelity.context for context in trace.contexts] == [
        *("complete", "approximate", "approximate", "lost"),
    ]
    assert (report.states, report.tool_errors, report.unknown) == (4, 0, {"message oracle": 1})


def test_a_rewind_to_behind_a_compaction_is_shown_its_summary(tmp_path: Path) -> None:
    file = asked(PiFile())
    step(file, 1)
    kept = file.user("And the trees.")
    behind = file.add("compaction", summary="Beds are wet.", firstKeptEntryId=kept, tokensBefore=9)
    step(file, 2)
    file.user("Otherwise.", parent=behind)
    step(file, 3)
    trace, _ = read(tmp_path, file)
    *_, last = trace.states()
    assert last.context.start == "rewind"
    assert shown(last) == [
        "user: [summary of what came before]\n\nBeds are wet.",
        "user: And the trees.",
        "user: Otherwise.",
    ]


def test_a_file_that_begins_behind_what_a_compaction_kept_is_lost_from_there_on(tmp_path: Path) -> None:
    file = asked(PiFile())
    step(file, 1)
    kept = file.user("And the trees.")
    step(file, 2)
    file.add("compaction", summary="Beds are wet.", firstKeptEntryId=kept, tokensBefore=9)
    step(file, 3)
    del file.records[1]
    assert [c.fidelity.context for c in read(tmp_path, file)[0].contexts] == ["lost", "approximate"]
    whole = list(file.records)
    del file.records[1:5]
    assert [c.fidelity.context for c in read(tmp_path, file)[0].contexts] == ["lost"]
    file.records = [each for each in whole if each is not whole[4]]
    *_, behind = read(tmp_path, file)[0].contexts
    assert behind.fidelity.context == "lost"


def test_what_a_compaction_kept_of_another_branch_is_shown_to_nobody(tmp_path: Path) -> None:
    file = asked(PiFile())
    step(file, 1)
    fork = file.last
    left = file.user("And the trees.")
    step(file, 2)
    file.user("The roof.", parent=fork)
    file.add("compaction", summary="Beds are wet.", firstKeptEntryId=left, tokensBefore=9)
    file.user("Go on.")
    step(file, 3)
    trace, _ = read(tmp_path, file)
    *_, last = trace.states()
    assert shown(last) == ["user: [summary of what came before]\n\nBeds are wet.", "user: Go on."]
    assert last.fidelity.context == "approximate"


def test_another_model_is_shown_earlier_thinking_as_text(tmp_path: Path) -> None:
    file = asked(PiFile())
    thought = {"type": "thinking", "thinking": "Dry.", "thinkingSignature": "s"}
    file.answer(thought, *text("I water."), called("c1", "bash", command="water"))
    file.result("c1", "wet")
    file.add("model_change", provider="openai", modelId=GPT["model"])
    step(file, 2, **GPT)
    step(file, 3, **GPT)
    file.add("model_change", provider="anthropic", modelId=CLAUDE["model"])
    step(file, 4)
    trace, _ = read(tmp_path, file)
    assert [(c.start, len(c.steps)) for c in trace.contexts] == [
        ("start", 1),
        ("rewritten", 2),
        ("rewritten", 1),
    ]
    states = list(trace.states())
    assert [shown(state)[1] for state in states[1:]] == [
        "assistant: Dry.\nI water.",
        "assistant: Dry.\nI water.",
        "assistant: I water.",
    ]
    assert [state.step.family for state in states] == ["anthropic", "openai", "openai", "anthropic"]
    assert {context.fidelity.context for context in trace.contexts} == {"complete"}


def test_another_model_without_thinking_before_it_goes_on_in_the_same_context(tmp_path: Path) -> None:
    file = asked(PiFile())
    step(file, 1)
    step(file, 2, **GPT)
    trace, _ = read(tmp_path, file)
    assert [len(context.steps) for context in trace.contexts] == [2]


@pytest.mark.parametrize(
    ("day", "prefix", "context"),
    [
        ("2026-03-01", ["user: Water the beds.", "user: Not that one."], "complete"),
        ("2025-12-01", ["user: Water the beds.", "assistant: I wat", "user: Not that one."], "approximate"),
    ],
)
def test_an_answer_that_broke_off_is_no_step_and_shown_by_early_versions_alone(
    tmp_path: Path, day: str, prefix: list[str], context: str
) -> None:
    file = asked(PiFile(day))
    file.answer(*text("I wat"), reason="aborted", errorMessage="Request was aborted")
    file.user("Not that one.")
    step(file, 1)
    trace, report = read(tmp_path, file)
    (state,) = trace.states()
    assert (shown(state), state.fidelity.context) == (prefix, context)
    assert (report.steps_synthetic, report.flags["answer that broke off"]) == (1, 1)


def test_what_is_shown_of_other_entries(tmp_path: Path) -> None:
    file = asked(PiFile())
    file.add("session_info", name="beds")
    file.add("label", targetId="e1", label="here")
    file.add("custom", customType="todo", data={"open": 1})
    file.add("custom_message", customType="note", content="Rain at noon.", display=True)
    file.message("custom", customType="note", content=text("Frost at night."), display=False)
    file.message("bashExecution", command="date", output="noon", exitCode=3, cancelled=False, truncated=False)
    file.message("bashExecution", command="secret", output="x", exitCode=0, excludeFromContext=True)
    image = {"type": "image", "mimeType": "image/png", "data": "aGVsbG8="}
    file.message("user", content=[*text("Look:"), image])
    step(file, 1)
    trace, report = read(tmp_path, file)
    (state,) = trace.states()
    assert shown(state)[:-1] == [
        "user: Water the beds.",
        "user: Rain at noon.",
        "user: Frost at night.",
        "user: Ran `date`\n```\nnoon\n```\n\nCommand exited with code 3",
    ]
    assert shown(state)[-1].startswith("user: Look:\n[image: image/png, 5 bytes")
    assert state.fidelity.context == "complete"
    assert (dict(report.skipped), dict(report.unknown)) == ({}, {})


def test_an_entry_between_a_call_and_its_result_changes_nothing(tmp_path: Path) -> None:
    file = asked(PiFile())
    file.answer(called("c1", "ask_user", questions=["which?"]))
    file.add("custom", customType="ask:payload", data={})
    file.result("c1", "the left one", tool="ask_user")
    file.answer(*text("Done."), reason="stop")
    trace, _ = read(tmp_path, file)
    assert [m.role for m in trace.contexts[0].messages] == ["user", "assistant", "tool", "assistant"]
    assert trace.contexts[0].fidelity.context == "complete"


def test_a_context_goes_on_behind_entries_beside_it_that_no_prompt_shows(tmp_path: Path) -> None:
    file = PiFile()
    file.add("session_init", systemPrompt="Help.", task="Water.", tools=["bash"])
    file.add("mode_change", mode="none")
    asked(file)
    asks = file.answer(called("c1", "bash", command="look"))
    file.add("custom", customType="started", data={})
    file.message("toolResult", asks, toolCallId="c1", toolName="bash", content=text("dry"), isError=False)
    file.add("title", title="Beds")
    seen = file.add("active_tools_change", activeToolNames=["bash"])
    file.add("leaf", targetId=seen)
    file.answer(*text("All dry."), reason="stop", parent=seen)
    file.add("leaf", targetId=seen)
    file.user("Really?", parent=seen)
    file.answer(*text("Yes."), reason="stop")
    trace, report = read(tmp_path, file)
    (first, second, third) = trace.states()
    assert [message.content for message in first.results] == ["dry"]
    assert (second.context.index, third.context.start) == (0, "rewind")
    assert shown(third) == ["user: Water the beds.", "assistant: ", "tool: dry", "user: Really?"]
    assert [context.fidelity.context for context in trace.contexts] == ["complete", "complete"]
    assert (report.branches_real, report.unknown) == (1, {})
    assert take_census([tmp_path]).found["pi", "no version"].unknown_kinds == {}


@pytest.mark.parametrize(
    ("words", "kind"),
    [
        ("boom\n\nCommand exited with code 2", ErrorKind.EXIT_CODE),
        ("\n\nCommand timed out after 5 seconds", ErrorKind.TIMEOUT),
        ("half\n\nCommand aborted", ErrorKind.USER_REJECTION),
        ("User denied dangerous command", ErrorKind.USER_REJECTION),
        ("Skipped due to queued user message.", ErrorKind.CANCELLED),
        ("ENOENT: no such file or directory, access 'x'", ErrorKind.TOOL_ERROR),
        ("Tool commit not found", ErrorKind.TOOL_ERROR),
    ],
)
def test_every_kind_of_error(tmp_path: Path, words: str, kind: ErrorKind) -> None:
    file = asked(PiFile())
    file.answer(called("c1", "bash", command="x"), called("c2", "bash", command="y"))
    file.result("c1", words, failed=True)
    file.result("c2", "Command exited with code 2 is what it would say")
    trace, report = read(tmp_path, file)
    (state,) = trace.states()
    assert [(m.is_error, m.error_kind) for m in state.results] == [(True, kind), (False, None)]
    assert report.tool_errors == 1


def test_a_call_without_a_result_makes_what_follows_approximate(tmp_path: Path) -> None:
    file = asked(PiFile())
    step(file, 1)
    file.answer(called("c2", "bash", command="x"))
    file.user("Stop that.")
    step(file, 3)
    file.result("c1", "again")
    file.result("c9", "of nothing")
    trace, report = read(tmp_path, file)
    assert [state.fidelity.context for state in trace.states()] == ["complete", "complete", "approximate"]
    assert report.skipped == {"second result of one call": 1, "result without its call": 1}


def test_an_answer_that_the_token_limit_cut_off_is_shown_and_no_step(tmp_path: Path) -> None:
    file = asked(PiFile())
    file.answer(*text("I could wat"), reason="length")
    file.answer({"type": "thinking", "thinking": "hm", "thinkingSignature": "s"}, reason="stop")
    file.user("Go on.")
    step(file, 1)
    trace, report = read(tmp_path, file)
    (state,) = trace.states()
    assert shown(state) == ["user: Water the beds.", "assistant: I could wat", "user: Go on."]
    assert report.flags == {"answer that the token limit or a filter cut off": 1, "step without action": 1}


def test_version_1_is_a_line_of_entries(tmp_path: Path) -> None:
    file = asked(PiFile("2025-12-01"))
    step(file, 1)
    file.user("And the trees.")
    step(file, 2)
    file.add("compaction", summary="Beds are wet.", firstKeptEntryIndex=4, tokensBefore=900)
    step(file, 3)
    for record in file.records:
        for key in ("version", "parentId", *(("id",) if record["type"] != "session" else ())):
            record.pop(key, None)
    trace, report = read(tmp_path, file)
    assert [(c.start, len(c.steps)) for c in trace.contexts] == [("start", 2), ("compaction", 1)]
    *_, last = trace.states()
    assert shown(last) == [
        "user: [summary of what came before]\n\nBeds are wet.",
        "user: And the trees.",
        "assistant: ",
        "tool: seen 2",
    ]
    assert (report.compactions, report.branches_real) == (1, 0)
    path = tmp_path / "torn.jsonl"
    lines = [json.dumps(record) for record in file.records]
    path.write_text("\n".join([*lines[:4], lines[4][:9], *lines[5:7]]) + "\n")
    (trace,), report = ingest_file(path)
    assert [state.fidelity.context for state in trace.states()] == ["complete", "lost"]
    assert report.skipped == {"not json": 1}


def test_a_fork_counts_the_steps_of_the_session_it_was_taken_from(tmp_path: Path) -> None:
    file = PiFile(
        parentSession="/home/dev/.pi/agent/sessions/one.jsonl", timestamp="2026-03-01T10:00:03.500Z"
    )
    asked(file)
    step(file, 1)
    step(file, 2)
    _, report = read(tmp_path, file)
    assert report.flags == {"step taken over from the session this one was forked from": 1}


def test_what_is_not_understood_is_named_and_what_follows_is_lost(tmp_path: Path) -> None:
    file = asked(PiFile())
    step(file, 1)
    file.add("dream", content="of rain")
    step(file, 2)
    file.answer({"type": "hologram", "data": "x"}, called("c3", "bash", command="x"))
    file.message("oracle", content="It rains.")
    step(file, 4)
    trace, report = read(tmp_path, file)
    assert [state.fidelity.context for state in trace.states()] == ["complete", "lost", "lost"]
    assert report.unknown == {"record dream": 1, "block hologram": 1, "message oracle": 1}
    census = take_census([tmp_path])
    found = census.found["pi", "no version"]
    assert set(found.unknown_kinds) == {"record dream", "block hologram", "message oracle"}


def test_broken_files_lose_what_hangs_on_the_broken_line_alone(tmp_path: Path) -> None:
    file = asked(PiFile())
    step(file, 1)
    step(file, 2)
    path = file.write(tmp_path / "session.jsonl")
    lines = path.read_text().splitlines()
    for cut, fidelities in ((3, ["lost"]), (5, ["complete"]), (1, ["lost", "lost"])):
        path.write_text("\n".join([*lines[:cut], lines[cut][:20], *lines[cut + 1 :]]) + "\n")
        (trace,), report = ingest_file(path)
        got = [state.fidelity.context for state in trace.states()]
        assert (got[-len(fidelities) :], report.skipped["not json"]) == (fidelities, 1)
    path.write_text("\n".join(lines[:4]) + "\n" + lines[4][:30])
    (trace,), report = ingest_file(path)
    assert (trace.step_count, report.skipped) == (1, {"not json": 1})
    path.write_text("\n".join(lines[1:]) + "\n")
    assert detect(path) == "pi"
    (trace,), report = ingest_file(path)
    assert (trace.step_count, report.flags) == (2, {"session without a header": 1})
    path.write_text(lines[0] + "\n")
    traces, report = ingest_file(path)
    assert (traces, report.skipped) == ([], {"session without a step": 1})


def test_parents_in_a_circle_end(tmp_path: Path) -> None:
    file = asked(PiFile())
    first = file.records[-1]
    step(file, 1)
    file.user("Again.", parent="e0000002")
    step(file, 2)
    first["parentId"] = "e0000002"
    trace, _ = read(tmp_path, file)
    assert [context.fidelity.context for context in trace.contexts] == ["lost", "lost"]


class Recorder:
    """Writes a session and keeps, for every entry, what the model is shown behind it."""

    def __init__(self) -> None:
        self.file = PiFile()
        self.behind: dict[str | None, list[tuple[str, Any]]] = {None: []}
        self.expected: list[list[Any]] = []
        self.number = 0

    def _note(self, before: str | None, *said: Any) -> None:
        assert self.file.last is not None
        self.behind[self.file.last] = [*self.behind[before], *((self.file.last, each) for each in said)]

    def user(self, where: int | None) -> None:
        places = list(self.behind)
        before = self.file.last if where is None else places[where % len(places)]
        self.number += 1
        self.file.last = before
        self.file.user(f"say {self.number}")
        self._note(before, f"user: say {self.number}")

    def step(self, model: dict[str, str], thinks: bool, calls: int) -> None:
        if not self.behind[self.file.last]:
            self.user(None)
        self.number += 1
        shown = [each(model) if callable(each) else each for _, each in self.behind[self.file.last]]
        self.expected.append(shown)
        number, before = self.number, self.file.last
        thought = [{"type": "thinking", "thinking": f"think {number}", "thinkingSignature": "s"}] * thinks
        ids = [f"c{number}_{place}" for place in range(calls)]
        blocks = [*thought, *text(f"do {number}"), *(called(each, "bash", command=each) for each in ids)]
        self.file.answer(*blocks, **model)

        def answer(reader: dict[str, str]) -> str:
            rewritten = f"think {number}\n" if thinks and reader != model else ""
            return f"assistant: {rewritten}do {number}"

        self._note(before, answer)
        for each in ids:
            before = self.file.last
            self.file.result(each, f"got {each}")
            self._note(before, f"tool: got {each}")

    def compact(self, keep: int) -> None:
        before = self.file.last
        entries = [name for name, each in self.behind[before] if str(each).startswith("user: say")]
        if not entries:
            return
        kept = entries[keep % len(entries)]
        self.number += 1
        self.file.add("compaction", summary=f"sum {self.number}", firstKeptEntryId=kept, tokensBefore=1)
        assert self.file.last is not None
        place = [name for name, _ in self.behind[before]].index(kept)
        summary = f"user: [summary of what came before]\n\nsum {self.number}"
        self.behind[self.file.last] = [(self.file.last, summary), *self.behind[before][place:]]


ACTIONS = st.one_of(
    st.tuples(st.just("user"), st.none() | st.integers(0, 40)),
    st.tuples(st.just("step"), st.sampled_from([CLAUDE, GPT]), st.booleans(), st.integers(0, 3)),
    st.tuples(st.just("compact"), st.integers(0, 5)),
)


@given(st.lists(ACTIONS, min_size=1, max_size=25))
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_every_step_is_shown_what_was_sent(tmp_path: Path, actions: list[tuple[Any, ...]]) -> None:
    recorder = Recorder()
    for name, *given_values in actions:
        getattr(recorder, name)(*given_values)
    recorder.step(CLAUDE, False, 1)
    trace, report = read(tmp_path, recorder.file)
    assert [shown(state) for state in trace.states()] == recorder.expected
    assert (dict(report.skipped), dict(report.unknown)) == ({}, {})
    for context in trace.contexts:
        calls = [call.id for message in context.messages for call in message.tool_calls]
        answered = [m.tool_call_id for m in context.messages if m.role == "tool"]
        assert len(answered) == len(set(answered))
        assert set(answered) <= set(calls)


def test_a_session_is_found_asked_and_paired(tmp_path: Path) -> None:
    home = tmp_path / ".pi" / "agent" / "sessions" / "--home-dev-garden--"
    home.mkdir(parents=True)
    file = asked(PiFile(), "glow in src/glow.py raises KeyError. Fix it.")
    for number, (name, arguments, output, failed) in enumerate(
        [
            ("read", {"path": "src/glow.py"}, "def glow():\n    raise KeyError", False),
            ("bash", {"command": "python reproduce.py"}, "KeyError\n\nCommand exited with code 1", True),
            ("edit", {"path": "src/glow.py", "oldText": "raise", "newText": "return"}, "Replaced.", False),
            ("grep", {"pattern": "glow"}, "src/glow.py:1", False),
            ("bash", {"command": "python -m pytest tests"}, "1 passed", False),
        ]
    ):
        file.answer(*text("So."), called(f"c{number}", name, **arguments))
        file.result(f"c{number}", output, failed, name)
    file.answer(*text("Fixed."), reason="stop")
    file.write(home / "one.jsonl")
    (source,) = discover([tmp_path])
    assert source.dialect == "pi"
    (trace,), _ = ingest_file(source.path)
    states = list(trace.states())
    operations = [find_action_operation(state.student_action, "pi") for state in states]
    assert operations == ["read", "run", "edit", "search", "run_test", "finish"]
    replies = tm.replay_trace_sync(
        states,
        teachers=PRESETS["simulated"].teachers,
        max_total_usd=1.0,
        settings=tm.ReplaySettings(stop="off"),
    )
    assert len(replies) == 4 * len(states)
    assert all(reply.action is not None for reply in replies)
    pairs = tm.extract_dpo_pairs(states, replies, agreement_threshold=2)
    assert pairs
    assert {pair.presentation.rpartition("system=")[2] for pair in pairs} == {"stand_in,tools=stand_in"}


def test_an_edit_that_failed_is_paired_with_the_one_that_mended_it(tmp_path: Path) -> None:
    file = asked(PiFile(), "Water three beds.")
    file.answer(called("c1", "read", path="beds.py"))
    file.result("c1", "def water(beds):\n    return beds * 2\n", tool="read")
    wrong = {"oldText": "  return beds*2", "newText": "  return beds * 3"}
    file.answer(called("c2", "edit", path="beds.py", **wrong))
    file.result("c2", "Could not find the exact text in beds.py.", True, "edit")
    right = {"oldText": "    return beds * 2", "newText": "    return beds * 3"}
    file.answer(called("c3", "edit", path="beds.py", **right))
    file.result("c3", "Successfully replaced text in beds.py.", tool="edit")
    file.answer(*text("Three beds."), reason="stop")
    trace, _ = read(tmp_path, file)
    (pair,), _ = hindsight_pairs(trace)
    assert json.loads(pair.rejected[0].tool_calls[0].arguments)["oldText"] == "  return beds*2"
    assert json.loads(pair.chosen[0].tool_calls[0].arguments)["oldText"] == "    return beds * 2"


@pytest.mark.skipif(REAL is None, reason="TRACEMILL_REAL_TRACES names no folder of sessions")
def test_real_sessions_have_the_counts_of_the_ground_truth() -> None:
    folder = Path(str(REAL))
    truth = [
        each for each in json.loads((folder / "ground_truth.json").read_text()) if each["format"] == "pi"
    ]
    assert len(truth) == 2
    for known in truth:
        path = next(folder.glob(f"pi/{Path(known['file']).name}"))
        (trace,), report = ingest_file(path)
        counted = count_pi_file(path)
        assert report.records.total() == known["records"]
        assert counted["answers"] == known["steps_main"]
        assert report.steps_main + report.steps_synthetic + counted["idle"] == known["steps_main"]
        assert report.steps_synthetic == counted["broken"]
        assert report.tool_calls + counted["calls of broken"] == known["tool_calls"]
        assert report.tool_errors == known["tool_errors"]
        assert report.compactions == known.get("compactions", 0)
        models = {state.step.model for state in trace.states()}
        assert models <= set(known["models"])
        for state in trace.states():
            called_before = {call.id for m in state.messages for call in m.tool_calls}
            assert {m.tool_call_id for m in state.messages if m.role == "tool"} <= called_before
