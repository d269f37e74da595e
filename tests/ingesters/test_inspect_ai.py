"""Logs of inspect: every state is the recorded prompt of a model call, in every form of the files."""

import copy
import json
import os
import zipfile
from pathlib import Path
from typing import Any

import pytest
from changed_parts import changed
from file_readers import file_reader
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from inspect_records import (
    BASH,
    SPEC,
    SUBMIT,
    InspectSample,
    assistant,
    call,
    recorded_prompts,
    result,
    write_archive,
    write_chunked,
    write_entries,
    write_json,
)

import tracemill as tm
from tracemill.harnesses.operations import find_action_operation
from tracemill.ingesters.census import take_census
from tracemill.ingesters.detect_format import ARCHIVE, detect
from tracemill.ingesters.discover import discover
from tracemill.ingesters.inspect_ai.format import FORMAT
from tracemill.ingesters.inspect_ai.ingest_log import iter_traces
from tracemill.records.errors import SourceError
from tracemill.records.ingest_report import IngestReport
from tracemill.records.message import ErrorKind
from tracemill.records.trace import Trace, TraceState, Usage
from tracemill.teachers.core.presets import PRESETS

ingest_file = file_reader("inspect_ai", iter_traces)
LONG = (
    "The bed by the gate has carrots, the one by the wall has beans, and the third has nothing in it at all."
)
assert len(LONG) > 100


def read(tmp_path: Path, sample: InspectSample) -> tuple[list[Trace], IngestReport]:
    path = write_archive(tmp_path / "log.eval", sample.condensed())
    assert detect(path) == "inspect_ai"
    return ingest_file(path)


def shown(state: TraceState) -> list[tuple[str, str]]:
    return [(m.role, m.content) for m in state.messages]


def garden() -> InspectSample:
    sample = InspectSample(scores={"match": {"value": "C", "answer": "3"}})
    sample.say({"role": "system", "content": "You water beds."}, {"role": "user", "content": LONG})
    thoughts = [{"type": "reasoning", "reasoning": "Which one?"}, {"type": "text", "text": "I look."}]
    sample.model(assistant(thoughts, call("c1", "bash", cmd="ls"), call("c2", "bash", cmd=f"cat {LONG}")))
    sample.tool("c1", "beds.py")
    sample.tool("c2", [{"type": "text", "text": LONG}])
    sample.model(assistant("", call("c3", "bash", cmd="cat x")))
    sample.tool("c3", "", error={"type": "file_not_found", "message": "No file x."})
    sample.model(assistant("Three beds."))
    return sample


FORMS = (
    "json",
    "plain",
    "attachments",
    "legacy",
    "pool",
    "message_pool",
    "zstandard",
    "chunked",
    "unfinished",
)


def write(form: str, sample: InspectSample, folder: Path) -> Path:
    path = folder / f"log.{'json' if form == 'json' else 'eval'}"
    if form == "json":
        return write_json(path, sample)
    if form == "chunked":
        return write_chunked(path, sample.condensed())
    held = {
        "plain": sample.whole(),
        "attachments": sample.condensed(pool=""),
        "legacy": sample.condensed("tc", ""),
        "message_pool": sample.condensed(pool="message_pool"),
    }.get(form, sample.condensed())
    return write_archive(path, held, zstandard=form == "zstandard", finished=form != "unfinished")


@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_a_log_gives_the_same_trace(tmp_path: Path, form: str) -> None:
    sample = garden()
    path = write(form, sample, tmp_path)
    assert [source.dialect for source in discover([tmp_path])] == ["inspect_ai"]
    (trace,), report = ingest_file(path)
    assert (trace.source, trace.harness, trace.harness_version, trace.kind) == (
        *("inspect_ai", "generic", "0.3.240", "main"),
    )
    assert (trace.instance_id, trace.outcome, trace.started_at) == (
        *("beds/1", "resolved"),
        "2026-03-01T10:00:01+00:00",
    )
    (context,) = trace.contexts
    assert (context.fidelity.system, context.fidelity.tools, context.fidelity.context) == (
        *("recorded", "recorded"),
        "complete",
    )
    assert [tool.to_wire()["function"] for tool in context.tools] == [BASH]
    assert [shown(state) for state in trace.states()] == [
        prompt for _, prompt in recorded_prompts(sample.whole())
    ]
    first, second, third = trace.states()
    assert [json.loads(each.arguments) for each in first.student_action.tool_calls] == [
        {"cmd": "ls"},
        {"cmd": f"cat {LONG}"},
    ]
    assert (first.student_action.text, first.context.messages[2].reasoning) == ("I look.", "Which one?")
    assert first.step.usage == Usage(150, 8, 90)
    assert (first.step.model, first.step.family, first.step.native_id) == ("openai/gpt-5", "openai", "e1")
    assert [(m.content, m.is_error, m.error_kind) for m in second.results] == [
        ("No file x.", True, ErrorKind.TOOL_ERROR)
    ]
    assert third.student_action.text == "Three beds."
    assert (report.steps_main, report.tool_calls, report.tool_errors) == (3, 3, 1)
    assert (dict(report.skipped), dict(report.flags), dict(report.unknown)) == ({}, {}, {})
    assert report.records == {"sample_init": 1, "model": 3, "tool": 3}


def test_prompts_that_do_not_go_on_are_contexts_with_their_reason(tmp_path: Path) -> None:
    sample = InspectSample()
    sample.say({"role": "user", "content": "Water the beds."})
    for number in (1, 2):
        sample.model(assistant("", call(f"c{number}", "bash", cmd=str(number))))
        sample.tool(f"c{number}", f"seen {number}")
    sample.talk[2]["content"] = "(cleared)"
    sample.model(assistant("", call("c3", "bash", cmd="3")))
    sample.tool("c3", "seen 3")
    sample.add("compaction", type="summary", tokens_before=9, tokens_after=3)
    sample.talk = [sample.talk[0], {"role": "user", "content": "So far: wet."}]
    sample.model(assistant("", call("c4", "bash", cmd="4")))
    sample.tool("c4", "seen 4")
    sample.model(assistant("", call("c5", "submit", answer="wet")), tools=[BASH, SUBMIT])
    sample.tool("c5", "wet", "submit")
    del sample.talk[3:]
    sample.say({"role": "user", "content": "No."})
    sample.model(assistant("Done."), tools=[BASH, SUBMIT])
    (trace,), report = read(tmp_path, sample)
    assert [(c.start, len(c.steps), len(c.tools)) for c in trace.contexts] == [
        ("start", 2, 1),
        ("microcompaction", 1, 1),
        ("compaction", 1, 1),
        ("tools_changed", 1, 2),
        ("rewind", 1, 2),
    ]
    assert [shown(state) for state in trace.states()] == [
        prompt for _, prompt in recorded_prompts(sample.whole())
    ]
    assert [[m.content for m in state.results] for state in trace.states()] == [
        *(["seen 1"], ["seen 2"], ["seen 3"], ["seen 4"], ["wet"], []),
    ]
    assert (report.compactions, report.states, trace.harness) == (1, 6, "generic_ended")


def test_conversations_that_alternate_are_contexts_of_their_own(tmp_path: Path) -> None:
    sample = InspectSample()
    talks = [[{"role": "user", "content": f"Water bed {name}."}] for name in "ab"]
    for number in range(3):
        for name, talk in zip("ab", talks, strict=True):
            answer = assistant("", call(f"{name}{number}", "bash", cmd="x"))
            sample.model(answer, talk)
            talk += [answer, result(f"{name}{number}", f"wet {name}{number}")]
    (trace,), _ = read(tmp_path, sample)
    assert [(c.start, len(c.steps)) for c in trace.contexts] == [("start", 3), ("start", 3)]
    assert [shown(s)[-1][1] for s in trace.states()] == [
        *("Water bed a.", "wet a0", "wet a1"),
        *("Water bed b.", "wet b0", "wet b1"),
    ]


def test_agents_that_a_tool_started_are_side_traces_and_scorers_are_none(tmp_path: Path) -> None:
    sample = InspectSample(scores={"judge": {"value": 0}})
    sample.say({"role": "user", "content": "Water the beds."})
    for span, parent, kind in (("s1", None, "solver"), ("a1", "s1", "agent")):
        sample.add("span_begin", id=span, parent_id=parent, type=kind, name=kind, span_id=span)
    sample.model(assistant("", call("c1", "helper", task="look")), span_id="a1")
    sample.add("span_begin", id="t1", parent_id="a1", type="tool", name="helper", span_id="t1")
    sample.add("span_begin", id="a2", parent_id="t1", type="agent", name="helper", span_id="a2")
    look = [{"role": "user", "content": "look"}]
    sample.model(assistant("I see three."), look, span_id="a2")
    sample.add("span_end", id="a2", span_id="a2")
    sample.tool("c1", "three", "helper", span_id="t1", agent="helper", agent_span_id="a2")
    sample.model(assistant("Three."), span_id="a1")
    sample.add("span_begin", id="s2", parent_id=None, type="scorer", name="judge", span_id="s2")
    sample.model(assistant("GRADE: I"), [{"role": "user", "content": "Grade."}], span_id="s2", role="grader")
    (main, side), report = read(tmp_path, sample)
    assert (main.kind, main.step_count, main.outcome) == ("main", 2, "not_resolved")
    assert (side.kind, side.parent_trace_id, side.parent_call_id, side.outcome) == (
        *("side", main.trace_id, "c1"),
        "unknown",
    )
    assert [shown(state) for state in side.states()] == [[("user", "look")]]
    assert (report.steps_main, report.steps_side, dict(report.flags)) == (2, 1, {"model call of a scorer": 1})


def test_an_early_log_has_agents_in_the_event_of_their_tool_and_scorers_in_steps(tmp_path: Path) -> None:
    sample = InspectSample()
    sample.say({"role": "user", "content": "Water the beds."})
    sample.model(assistant("", call("c1", "helper", task="look")))
    inner = InspectSample()
    inner.model(assistant("I see three."), [{"role": "user", "content": "look"}])
    sample.tool("c1", "three", "helper", events=inner.events)
    sample.model(assistant("Three."))
    sample.add("step", action="begin", type="scorer", name="judge")
    sample.model(assistant("GRADE: C"), [{"role": "user", "content": "Grade."}])
    sample.add("step", action="end", type="scorer", name="judge")
    (main, side), report = read(tmp_path, sample)
    assert (main.step_count, side.step_count, side.parent_call_id) == (2, 1, "c1")
    assert report.flags == {"model call of a scorer": 1}


def test_what_is_no_whole_action_is_no_step(tmp_path: Path) -> None:
    sample = InspectSample(limit={"type": "message", "limit": 9}, error={"message": "x"})
    sample.say({"role": "user", "content": "Water the beds."})
    prompt = copy.deepcopy(sample.talk)
    sample.model(assistant("no"), prompt, error="overloaded")
    sample.model(assistant("Three be"), prompt, stop="max_tokens")
    sample.model(assistant([{"type": "reasoning", "reasoning": "Hm."}]), prompt)
    broken = call("c0", "bash") | {"parse_error": "no JSON"}
    sample.model(assistant("", broken), prompt)
    event = sample.model(assistant("Three beds."))
    event["output"]["choices"].append({"message": assistant("Four."), "stop_reason": "stop"})
    sample.add("model", model="m", input=prompt, tools=[], output={"choices": []})
    (trace,), report = read(tmp_path, sample)
    assert [state.student_action.text for state in trace.states()] == ["Three beds."]
    assert report.flags == {
        "model call that failed": 2,
        "answer that the token limit or a filter cut off": 1,
        "step without action": 1,
        "call whose arguments did not parse": 1,
        "answer with further choices, which are not read": 1,
        "sample that ended at a limit": 1,
        "sample that ended with an error": 1,
    }
    assert report.steps_synthetic == 2


def test_errors_of_a_sample_are_counted_and_what_came_before_them_is_read(tmp_path: Path) -> None:
    told = {"message": "The well is dry.", "traceback": "Traceback ...", "traceback_ansi": "Traceback ..."}
    sample = InspectSample(error=told, scores={"match": {"value": "C"}})
    sample.say({"role": "user", "content": "Water the beds."})
    sample.model(assistant("I look.", call("c1", "bash", cmd="ls")))
    sample.tool("c1", "beds.py")
    sample.add("error", error=told)
    sample.model(assistant("I water.", call("c2", "bash", cmd="water")))
    sample.add("error", error=told)
    whole = InspectSample(2)
    whole.say({"role": "user", "content": "Water the trees."})
    whole.model(assistant("Done."))
    path = write_archive(tmp_path / "log.eval", sample.condensed(), whole.condensed())
    traces, report = ingest_file(path)
    assert [[shown(state) for state in trace.states()] for trace in traces] == [
        [prompt for _, prompt in recorded_prompts(each.whole())] for each in (sample, whole)
    ]
    assert [state.student_action.text for trace in traces for state in trace.states()] == [
        *("I look.", "I water.", "Done."),
    ]
    assert [trace.contexts[0].fidelity.context for trace in traces] == ["complete", "complete"]
    assert traces[0].contexts[0].messages[-1].role == "assistant"  # the call of the error has no result
    assert [trace.outcome for trace in traces] == ["resolved", "unknown"]  # by their recorded scores
    assert report.flags == {
        "error in a sample, of its agent or tools": 2,
        "sample that ended with an error": 1,
    }
    assert (report.traces, report.states, report.tool_calls, report.tool_errors) == (2, 3, 2, 0)
    assert (report.skipped, report.unknown, report.steps_synthetic) == ({}, {}, 0)
    assert report.records == {"sample_init": 2, "model": 3, "tool": 1, "error": 2}
    census = take_census([path]).found["inspect_ai", "no version"]
    assert (census.kinds["event error"], census.unknown_kinds, census.unknown_keys) == (2, {}, {})


@pytest.mark.parametrize(
    ("content", "error", "words", "kind"),
    [
        ("", {"type": "timeout", "message": "Command timed out."}, "Command timed out.", ErrorKind.TIMEOUT),
        ("", {"type": "approval", "message": "Not approved."}, "Not approved.", ErrorKind.HOOK),
        ("", {"type": "cancelled", "message": "Cancelled."}, "Cancelled.", ErrorKind.CANCELLED),
        ("", {"type": "parsing", "message": "No such argument."}, "No such argument.", ErrorKind.TOOL_ERROR),
        ("wet", None, "wet", None),
        (3, None, "3", None),
    ],
)
def test_every_kind_of_error(
    tmp_path: Path, content: Any, error: Any, words: str, kind: ErrorKind | None
) -> None:
    sample = InspectSample()
    sample.say({"role": "user", "content": "Water the beds."})
    sample.model(assistant("", call("c1", "bash", cmd="x")))
    sample.tool("c1", content, **({"error": error} if error else {}))
    (trace,), _ = read(tmp_path, sample)
    (state,) = trace.states()
    assert [(m.content, m.is_error, m.error_kind) for m in state.results] == [
        (words, True if kind else None, kind)
    ]


@pytest.mark.parametrize(
    ("values", "outcome"),
    [
        (["C"], "resolved"),
        (["I"], "not_resolved"),
        (["N"], "not_resolved"),
        ([1.0, True], "resolved"),
        ([0], "not_resolved"),
        (["P"], "unknown"),
        ([0.5], "unknown"),
        (["C", "I"], "unknown"),
        ([{"a": 1}], "unknown"),
        ([], "unknown"),
    ],
)
def test_the_outcome_is_what_all_scores_say(tmp_path: Path, values: list[Any], outcome: str) -> None:
    sample = garden()
    sample.fields["scores"] = {f"s{place}": {"value": value} for place, value in enumerate(values)}
    (trace,), _ = read(tmp_path, sample)
    assert trace.outcome == outcome


def test_media_become_placeholders(tmp_path: Path) -> None:
    sample = InspectSample()
    image = {"type": "image", "image": "data:image/png;base64,aGk="}
    clip = {"type": "audio", "audio": "aGk=", "format": "mp3"}
    sample.say({"role": "user", "content": [{"type": "text", "text": "Look."}, image, clip]})
    sample.model(assistant("So."))
    (trace,), _ = read(tmp_path, sample)
    ((_, text),) = shown(next(trace.states()))
    assert text.startswith("Look.\n[image: image/png, 2 bytes, blake2b ")
    assert "\n[audio: audio/mp3, 2 bytes, blake2b " in text


def test_what_is_not_understood_is_named_and_prompts_with_it_are_lost(tmp_path: Path) -> None:
    sample = InspectSample(hue="green")
    sample.say({"role": "user", "content": "Water the beds."})
    sample.model(assistant("I do."))
    sample.add("eclipse", long=True)
    sample.model(assistant([{"type": "tool_use", "tool_type": "web_search", "id": "w", "name": "web"}]))
    sample.say({"role": "oracle", "content": "It rains."})
    sample.model(assistant("Then not."))
    (trace,), report = read(tmp_path, sample)
    assert [state.fidelity.context for state in trace.states()] == ["complete", "lost"]
    assert report.unknown == {"event eclipse": 1, "content tool_use": 2, "role oracle": 1}
    census = take_census([tmp_path]).found["inspect_ai", "no version"]
    assert set(census.unknown_kinds) == {"event eclipse", "content tool_use", "message oracle"}
    assert census.unknown_keys == {"sample: hue": 1}


def test_what_a_log_refers_to_and_does_not_hold_is_lost(tmp_path: Path) -> None:
    sample = garden().condensed()
    sample["attachments"] = {}
    (trace,), report = ingest_file(write_archive(tmp_path / "log.eval", sample))
    assert [state.fidelity.context for state in trace.states()] == ["lost", "lost"]
    assert report.flags == {"text that the log refers to and does not hold": 8}
    sample = garden().condensed()
    sample["events"][-1]["input_refs"] = [[0, 99]]
    (trace,), report = ingest_file(write_archive(tmp_path / "log.eval", sample))
    assert [state.fidelity.context for state in trace.states()] == ["complete", "complete", "lost"]
    assert report.flags == {"text that the log refers to and does not hold": 1}


def test_broken_files(tmp_path: Path) -> None:
    whole = garden().condensed()
    path = write_archive(tmp_path / "log.eval", whole, whole | {"id": 2, "uuid": "s2"})
    cut = tmp_path / "cut.eval"
    cut.write_bytes(path.read_bytes()[:-200])
    assert detect(cut) == ARCHIVE
    other = write_entries(tmp_path / "other.zip", {"a.json": {}})
    assert detect(other) == ARCHIVE
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("samples/3_epoch_1.json", '{"id": 3, "epo')
        archive.writestr("samples/4_epoch_1.json", "[]")
        archive.writestr("samples/5_epoch_1.json", '{"id": 5, "epoch": 1, "events": []}')
    traces, report = ingest_file(path)
    assert len(traces) == 2
    assert report.skipped == {"sample that cannot be read": 2, "sample without a step": 1}
    with pytest.raises(SourceError, match="is a broken zip archive"):
        ingest_file(cut)


LETTERS = st.lists(st.sampled_from("mmmtrucs"), max_size=14)


@given(LETTERS, st.sampled_from(("json", "pool", "chunked", "attachments")))
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_every_state_is_the_recorded_prompt(tmp_path: Path, letters: list[str], form: str) -> None:
    sample = InspectSample()
    sample.say({"role": "system", "content": LONG}, {"role": "user", "content": f"Water. {LONG}"})
    for number, letter in enumerate([*letters, "m"]):
        if letter == "m":
            sample.model(assistant(f"do {number}", call(f"c{number}", "bash", cmd=f"{number} {LONG}")))
            sample.tool(f"c{number}", f"got {number} {LONG}")
        elif letter == "t":
            sample.model(assistant(f"say {number}"))
        elif letter == "u":
            sample.say({"role": "user", "content": f"And {number}."})
        elif letter == "r":
            del sample.talk[2 + number % max(1, len(sample.talk) - 2) :]
        elif letter == "c":
            for message in sample.talk:
                if message["role"] == "tool":
                    message["content"] = "(cleared)"
        else:
            sample.add("compaction", type="summary")
            sample.talk = [*sample.talk[:2], {"role": "user", "content": f"So far {number}."}]
    (trace,), report = ingest_file(write(form, sample, tmp_path))
    prompts = {event["uuid"]: prompt for event, prompt in recorded_prompts(sample.whole())}
    assert {str(s.step.native_id): shown(s) for s in trace.states()} == prompts
    assert report.states == len(prompts)
    assert (dict(report.skipped), dict(report.unknown)) == ({}, {})


@given(st.sampled_from([[garden().condensed()], [garden().whole()]]).flatmap(changed))
@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_part_of_another_type_stops_nothing(tmp_path: Path, records: list[Any]) -> None:
    sample = records[0]
    entries = {"_journal/start.json": {"eval": SPEC}, "samples/1_epoch_1.json": sample}
    _, report = ingest_file(write_entries(tmp_path / "log.eval", entries))
    assert not [why for why in report.skipped if "cannot be read:" in why]
    list(FORMAT.kinds(sample if isinstance(sample, dict) else {}))
    FORMAT.detect({"version": 2, "status": "success", "eval": sample})


def test_a_sample_is_asked_and_paired(tmp_path: Path) -> None:
    sample = InspectSample()
    sample.say({"role": "user", "content": "glow in src/glow.py raises KeyError. Fix it."})
    commands = [
        "cat src/glow.py",
        "python reproduce.py",
        "sed -i s/raise/return/ src/glow.py",
        "pytest tests",
    ]
    for number, command in enumerate(commands):
        sample.model(assistant("So.", call(f"c{number}", "bash", cmd=command)), tools=[BASH, SUBMIT])
        sample.tool(f"c{number}", f"seen {number}")
    sample.model(assistant("", call("c9", "submit", answer="done")), tools=[BASH, SUBMIT])
    (trace,), _ = read(tmp_path, sample)
    states = list(trace.states())
    operations = [find_action_operation(state.student_action, trace.harness) for state in states]
    assert operations == ["read", "run", "edit", "run_test", "finish"]
    replies = tm.replay_trace_sync(
        states,
        teachers=PRESETS["simulated"].teachers,
        max_total_usd=1.0,
        settings=tm.ReplaySettings(stop="off"),
    )
    pairs = tm.extract_dpo_pairs(states, replies, agreement_threshold=2)
    assert pairs
    assert {pair.presentation.rpartition("system=")[2] for pair in pairs} == {"stand_in,tools=recorded"}


LOGS = os.environ.get("TRACEMILL_INSPECT_LOGS")


@pytest.mark.skipif(LOGS is None, reason="TRACEMILL_INSPECT_LOGS names no folder of logs")
def test_states_of_public_logs_are_their_recorded_prompts() -> None:
    """TRACEMILL_INSPECT_LOGS is a folder of logs, such as those in the tests of inspect."""
    read_states = compared = 0
    for source in discover([str(LOGS)]):
        if source.dialect != "inspect_ai":
            continue
        states = {str(s.step.timestamp): shown(s) for t in ingest_file(source.path)[0] for s in t.states()}
        read_states += len(states)
        for sample in samples_of(source.path):
            for event, prompt in recorded_prompts(sample):
                if event["timestamp"] in states:
                    assert states[event["timestamp"]] == prompt
                    compared += 1
    assert read_states == compared > 0


def samples_of(path: Path) -> list[dict[str, Any]]:
    if path.suffix == ".json":
        return json.loads(path.read_text())["samples"] or []
    with zipfile.ZipFile(path) as archive:
        names = [name for name in archive.namelist() if name.startswith("samples/")]
        return [json.loads(archive.read(name)) for name in names]
