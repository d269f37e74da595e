"""Spans of calls of models: every step is shown the recorded messages of its span."""

import json
from pathlib import Path
from typing import Any

import pytest
from changed_parts import changed
from file_readers import file_reader
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from otel_records import (
    Export,
    attributes_of,
    call_part,
    count_calls,
    plain_messages,
    recorded_calls,
    result_part,
    said,
    text_part,
)

import tracemill as tm
from tracemill.harnesses.operations import find_action_operation
from tracemill.ingesters.census import take_census
from tracemill.ingesters.detect_format import detect
from tracemill.ingesters.otel.format import FORMAT
from tracemill.ingesters.otel.ingest_spans import iter_traces
from tracemill.ingesters.otel.messages import PromptReader
from tracemill.records.errors import SourceError
from tracemill.records.identity import make_trace_id
from tracemill.records.ingest_report import IngestReport
from tracemill.records.message import ErrorKind
from tracemill.records.trace import Trace, TraceState, Usage
from tracemill.teachers.core.presets import PRESETS

ingest_file = file_reader("otel", iter_traces)
GOLDEN = Path(__file__).resolve().parents[1] / "golden" / "inputs" / "otel"
FILES = ("spans.json", "spans.jsonl")
TOOL = {
    "type": "function",
    "name": "read_file",
    "description": "Gives a file.",
    "parameters": {"type": "object", "properties": {"path": {"type": "string"}}},
}
Talk = list[dict[str, Any]]


def read(tmp_path: Path, export: Export, name: str = FILES[0]) -> tuple[list[Trace], IngestReport]:
    path = export.write(tmp_path / name)
    assert detect(path) == "otel"
    return ingest_file(path)


def shown(state: TraceState) -> list[tuple[str, str, list[tuple[str, str, Any]]]]:
    return [
        (
            f"tool {m.tool_call_id}" if m.role == "tool" else m.role,
            m.content,
            [(call.id, call.name, json.loads(call.arguments)) for call in m.tool_calls],
        )
        for m in state.messages
    ]


def contexts(trace: Trace) -> list[tuple[str, int]]:
    return [(context.start, len(context.steps)) for context in trace.contexts]


def step(export: Export, talk: Talk, number: int, **fields: Any) -> str:
    """Add a step with a call to an export and to what was said."""
    answer = said("assistant", f"do {number}", call_part(f"c{number}", "read_file", path=f"{number}.py"))
    span = export.chat(talk, answer | {"finish_reason": "tool_call"}, **fields)
    talk += [answer, said("tool", result_part(f"c{number}", f"seen {number}"))]
    return span


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("structured", [False, True])
def test_spans_become_steps_with_prefixes_and_facts(tmp_path: Path, name: str, structured: bool) -> None:
    export = Export(structured=structured, service__version="1.2") if structured else Export()
    talk = [said("user", "Water the beds.")]
    step(export, talk, 1, tools=[TOOL], gen_ai__response__id="r1")
    thought = {"type": "reasoning", "content": "Which one?"}
    export.chat(talk, said("assistant", thought, "Done."), tools=[TOOL], gen_ai__response__model="qwen3-max")
    path = export.write(tmp_path / name)
    (trace,), report = ingest_file(path)
    assert trace.trace_id == make_trace_id("otel", "a1", "")
    assert (trace.source, trace.harness, trace.kind) == ("otel", "garden_agent", "main")
    assert trace.started_at == "2026-03-01T10:00:01+00:00"
    first, second = trace.states()
    assert [shown(state) for state in (first, second)] == [
        plain_messages(own) for own in recorded_calls(path)
    ]
    assert first.messages[0].content == "You water beds."
    assert second.context.messages[-1].reasoning == "Which one?"
    assert first.step.usage == Usage(100, 7, 80)
    assert (first.step.model, first.step.family, first.step.native_id) == ("qwen3-coder", "qwen", "r1")
    assert (second.step.model, second.step.native_id) == ("qwen3-max", "0000000000000002")
    fidelity = first.fidelity
    assert (fidelity.system, fidelity.tools, fidelity.context) == ("recorded", "recorded", "complete")
    assert [tool.name for tool in first.context.tools] == ["read_file"]
    assert report.records == {"chat": 2}
    assert (report.steps_main, report.tool_calls, dict(report.skipped), dict(report.flags)) == (2, 1, {}, {})
    assert contexts(trace) == [("start", 2)]


def test_a_prompt_that_does_not_continue_begins_a_context(tmp_path: Path) -> None:
    export = Export()
    talk = [said("user", "Water the beds.")]
    for number in range(3):
        step(export, talk, number)
    masked = json.loads(json.dumps(talk))
    masked[2]["parts"][0]["response"] = "(masked)"
    step(export, masked, 3)  # earlier messages in another form
    step(export, masked, 4, tools=[TOOL])  # other tools
    back = [*masked[:3], said("user", "No, the roof.")]
    step(export, back, 5, tools=[TOOL])
    short = [said("user", "So far: wet."), *back[-2:]]
    step(export, short, 6, tools=[TOOL])
    step(export, [said("user", "Anew.")], 7, tools=[TOOL])
    (trace,), report = read(tmp_path, export)
    assert contexts(trace) == [
        *(("start", 3), ("microcompaction", 1), ("tools_changed", 1)),
        *(("rewind", 1), ("compaction", 1), ("clear", 1)),
    ]
    assert [shown(s) for s in trace.states()] == [
        plain_messages(own) for own in recorded_calls(tmp_path / FILES[0])
    ]
    assert report.steps_main == 8


@pytest.mark.parametrize(
    ("names", "starts", "calls"),
    [
        (("c1", "c1"), [("start", 3)], [["c1"], ["c1", "c2"], ["c1", "c2"]]),
        (("item1", "c1"), [("start", 3)], [["c1"], ["c1", "c2"], ["c1", "c2"]]),
        (
            ("item1", "item1"),
            [("start", 1), ("rewritten", 2)],
            [["c1"], ["item1", "c2"], ["item1", "c2"]],
        ),
    ],
)
def test_a_call_that_a_prompt_shows_under_the_id_of_its_item_keeps_its_own(
    tmp_path: Path, names: tuple[str, str], starts: list[tuple[str, int]], calls: list[list[str]]
) -> None:
    """The prompt names call and result; only where the result names the call's own id is it the same call."""
    export = Export()
    talk = [said("user", "Water the beds.")]
    first = call_part("c1", "read_file", path="1.py")
    export.chat(talk, said("assistant", first), tools=[TOOL])
    talk += [said("assistant", first | {"id": names[0]}), said("tool", result_part(names[1], "dry"))]
    step(export, talk, 2, tools=[TOOL])
    export.chat(talk, said("assistant", "Done."), tools=[TOOL])
    (trace,), report = read(tmp_path, export)
    assert contexts(trace) == starts
    states = list(trace.states())
    ids = [[call.id for m in (*s.messages, s.student_action) for call in m.tool_calls] for s in states]
    assert ids == calls
    assert [[m.tool_call_id for m in s.messages if m.role == "tool"] for s in states] == [
        [],
        calls[1][:1],
        calls[2],
    ]
    assert (report.steps_main, dict(report.flags), dict(report.skipped)) == (3, {}, {})


def test_an_agent_that_another_calls_is_a_side_trace(tmp_path: Path) -> None:
    export = Export()
    agent = {"gen_ai__agent__name": "gardener", "gen_ai__conversation__id": "k1"}
    root = export.span("invoke_agent", **agent, gen_ai__tool__definitions=json.dumps([TOOL]))
    talk = [said("user", "Water the beds.")]
    step(export, talk, 1, parent=root)
    tool = export.span("execute_tool", parent=root, gen_ai__tool__call__id="c1")
    inner = export.span("invoke_agent", parent=tool, gen_ai__agent__name="scout")
    side = [said("user", "Look for beds.")]
    step(export, side, 8, parent=inner, system="You look.")
    step(export, side, 9, parent=inner, system="You look.")
    again = export.span("invoke_agent", trace="b2", **agent)
    step(export, talk, 2, parent=again, trace="b2")
    traces, report = read(tmp_path, export)
    main, child = sorted(traces, key=lambda trace: trace.kind)
    assert (main.step_count, child.step_count, report.steps_side) == (2, 2, 2)
    assert main.trace_id == make_trace_id("otel", "k1", "gardener")
    assert (child.parent_trace_id, child.parent_call_id) == (main.trace_id, "c1")
    assert [c.fidelity.tools for c in main.contexts] == ["recorded", "absent"]
    assert child.contexts[0].messages[0].content == "You look."


def test_messages_of_an_event_and_of_the_chat_shape_are_read(tmp_path: Path) -> None:
    export = Export()
    content = {
        "gen_ai.input.messages": [
            {"role": "system", "content": "You water."},
            {"role": "user", "content": "Go."},
            {"role": "assistant", "content": None, "tool_calls": [
                {"id": "c1", "function": {"name": "read_file", "arguments": '{"path": "a"}'}}
            ]},
            {"role": "tool", "tool_call_id": "c1", "content": "wet"},
        ],
        "gen_ai.output.messages": [said("assistant", "Done.")],
    }  # fmt: skip
    event = {"name": "gen_ai.client.inference.operation.details", "attributes": attributes_of(content)}
    export.span("chat", events=[event], gen_ai__request__model="gpt-5")
    (trace,), _ = read(tmp_path, export)
    (state,) = trace.states()
    assert [(m.role, m.content) for m in state.messages] == [
        *(("system", "You water."), ("user", "Go."), ("assistant", ""), ("tool", "wet")),
    ]
    assert state.messages[2].tool_calls[0].arguments == '{"path": "a"}'
    assert (state.fidelity.system, state.step.family) == ("recorded", "openai")


def test_results_and_failures_come_from_the_spans_of_tools(tmp_path: Path) -> None:
    export = Export(service="gemini-cli")
    talk = [said("user", "Water the beds.")]
    step(export, talk, 1)
    export.span("execute_tool", gen_ai__tool__call__id="c1", status={"code": 2}, error__type="x")
    step(export, talk, 2)
    export.span("execute_tool", gen_ai__tool__call__id="c2", gen_ai__tool__call__result="seen 2")
    (trace,), report = read(tmp_path, export)
    first, second = trace.states()
    assert trace.harness == "gemini_cli"
    assert [(m.content, m.is_error, m.error_kind) for m in first.results] == [
        ("seen 1", True, ErrorKind.UNKNOWN)
    ]
    assert [(m.content, m.is_error) for m in second.results] == [("seen 2", False)]
    assert report.tool_errors == 1


def test_parts_of_every_kind(tmp_path: Path) -> None:
    export = Export()
    prompt = [
        said(
            "user",
            "Look.",
            {"type": "blob", "modality": "image", "mime_type": "image/png", "content": "aGk="},
        ),
        said("assistant", call_part("c1", "read_file"), call_part("c2", "read_file")),
        said("user", result_part("c2", {"lines": [1]}), result_part("c1", [text_part("wet")]), "Go on."),
        said("user", {"type": "uri", "modality": "image", "uri": "https://example.org/a.png"}),
    ]
    export.chat(prompt, [said("assistant", "I look."), said("assistant", call_part("c3", "read_file"))])
    (trace,), report = read(tmp_path, export)
    (state,) = trace.states()
    rows = [(m.role, m.content, m.tool_call_id) for m in state.messages][1:]
    assert rows[0][1].startswith("Look.\n[image: image/png, 2 bytes, blake2b ")
    assert rows[2:5] == [("tool", '{"lines":[1]}', "c2"), ("tool", "wet", "c1"), ("user", "Go on.", None)]
    assert rows[5][1].startswith("[image: by address, blake2b ")
    assert (state.student_action.text, len(state.student_action.tool_calls)) == ("I look.", 1)
    assert dict(report.unknown) == {}


def test_what_is_no_step_is_counted(tmp_path: Path) -> None:
    export = Export()
    talk = [said("user", "Water the beds.")]
    step(export, talk, 1)
    export.span("chat", gen_ai__request__model="x")
    export.span("chat", status={"code": 2}, error__type="timeout")
    export.span("chat", gen_ai__input__messages='[{"role": "us', gen_ai__output__messages="[]")
    export.chat(talk, said("assistant", {"type": "hologram"}))
    export.chat([said("oracle", "It rains.")], said("assistant", "So."))
    export.chat([*talk, said("tool", {"type": "tool_call_response", "id": "c1"})], said("assistant", "So."))
    export.chat(talk, [said("assistant", "a"), said("assistant", "b")], gen_ai__request__choice__count=2)
    export.chat(talk, said("assistant", ""))
    export.chat(talk, said("assistant", "I was") | {"finish_reason": "length"})
    outer = export.chat(talk, said("assistant", "Done."))
    export.chat(talk, said("assistant", "Done."), parent=outer)
    export.span("embeddings")
    export.span("divination")
    export.spans.append(export.spans[0])
    (trace,), report = read(tmp_path, export)
    assert [state.student_action.text for state in trace.states()] == ["do 1", "Done."]
    assert report.skipped == {
        "call of a model without its messages": 1,
        "call of a model that failed": 1,
        "messages that do not parse, as those that were cut": 1,
        "call of a model with content that is not understood": 3,
        "call of a model with several answers": 1,
    }
    assert report.flags == {
        "step without action": 1,
        "answer that broke off": 1,
        "call of a model in a span around another one's": 1,
        "span exported twice": 1,
    }
    assert report.unknown == {
        "part hologram": 1,
        "part role": 1,
        "part tool_call_response.response": 1,
        "operation divination": 1,
    }
    unknown = take_census([tmp_path]).found["otel", "no version"].unknown_kinds
    assert set(unknown) == {
        *("span divination", "part hologram", "part tool_call_response.response", "message oracle")
    }


@pytest.mark.parametrize(
    ("record", "dialect"),
    [
        ({"resourceSpans": []}, None),
        (Export().record({"traceId": "a", "attributes": attributes_of({"http.method": "GET"})}), None),
        (Export().record({"traceId": "a", "attributes": attributes_of({"gen_ai.system": "x"})}), "otel"),
        ({"resourceSpans": {"gen_ai.system": 1}}, None),
    ],
)
def test_an_export_is_told_by_an_attribute(tmp_path: Path, record: Any, dialect: str | None) -> None:
    path = tmp_path / "anything.json"
    path.write_text(json.dumps(record))
    assert detect(path) == dialect


def test_messages_and_calls_written_as_python_are_read(tmp_path: Path) -> None:
    user, answer = (
        said("user", "It's dry."),
        said("assistant", call_part("c1", "find", pattern=r"\d", deep=True)),
    )
    called = {"id": "c1", "type": "function", "function": {"name": "find", "arguments": '{"pattern": "x"}'}}
    shown_calls = {"role": "assistant", "content": None, "tool_calls": str([called])}
    answered = {"role": "tool", "tool_call_id": "c1", "content": "None"}
    told = json.dumps([user, shown_calls, answered])
    export = Export()
    for prompt, reply in ((str([user]), str([answer])), (told, str(said("assistant", "Done.")))):
        messages = {"gen_ai__input__messages": prompt, "gen_ai__output__messages": reply}
        export.span("chat", gen_ai__request__model="m", **messages)
    broken = "[{'role': 'user', 'parts': [Part(text='x')]}]"
    export.span("chat", gen_ai__input__messages=broken, gen_ai__output__messages=str([answer]))
    cut = str([shown_calls | {"tool_calls": str([called])[:-5]}])
    export.span("chat", gen_ai__input__messages=str([user]), gen_ai__output__messages=cut)
    (trace,), report = read(tmp_path, export)
    first, second = trace.states()
    assert first.messages[0].content == "It's dry."
    assert first.student_action.tool_calls[0].parsed() == {"pattern": r"\d", "deep": True}
    assert second.messages[1].tool_calls[0].parsed() == {"pattern": "x"}
    assert second.student_action.text == "Done."
    assert report.skipped == {
        "messages that do not parse, as those that were cut": 1,
        "call of a model with content that is not understood": 1,
    }


def test_a_message_that_prompts_share_is_read_once() -> None:
    user, named = said("user", "Water the beds."), said("assistant", call_part("c1", "read_file", path="a"))
    unnamed = said(
        "assistant", {key: each for key, each in call_part("", "read_file").items() if key != "id"}
    )
    reader = PromptReader()
    first = reader.read([user, named, unnamed], "s1").messages
    second = reader.read(json.loads(json.dumps([user, named, unnamed])), "s2").messages
    assert [one is other for one, other in zip(first, second, strict=True)] == [True, True, False]
    assert [message.tool_calls[0].id for message in (first[2], second[2])] == ["s1-2-0", "s2-2-0"]
    third = reader.read([named, user], "s3").messages
    assert third == [second[1], second[0]]
    assert reader.read("cut", "s4").unread == ["messages"]


def test_broken_files(tmp_path: Path) -> None:
    export = Export()
    talk = [said("user", "Water the beds.")]
    step(export, talk, 1)
    step(export, talk, 2)
    path = export.write(tmp_path / FILES[1])
    path.write_text(path.read_text()[:-40])
    (trace,), report = ingest_file(path)
    assert (trace.step_count, report.skipped) == (1, {"not json": 1})
    whole = export.write(tmp_path / FILES[0])
    whole.write_text(whole.read_text()[:-40])
    with pytest.raises(SourceError):
        ingest_file(whole)
    empty = Export()
    empty.span("embeddings")
    traces, report = ingest_file(empty.write(tmp_path / "none.json"))
    assert (traces, report.skipped) == ([], {"spans without a step": 1})


EVENTS = st.lists(
    st.one_of(
        st.tuples(st.just("user"), st.just(0)),
        st.tuples(st.just("step"), st.integers(0, 3)),
        st.tuples(st.just("cut"), st.integers(0, 30)),
        st.tuples(st.just("mask"), st.integers(0, 30)),
        st.tuples(st.just("clear"), st.just(0)),
    ),
    max_size=25,
)


@given(EVENTS, st.booleans())
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_every_state_is_the_recorded_input_of_its_span(
    tmp_path: Path, events: list[tuple[str, int]], structured: bool
) -> None:
    export, talk = Export(structured=structured), [said("user", "Go.")]
    for number, (kind, value) in enumerate([*events, ("step", 1)]):
        if kind == "user":
            talk.append(said("user", f"say {number}", f"and {number}"))
        elif kind == "cut":
            del talk[1 : 1 + value]
        elif kind == "clear":
            talk = [said("user", f"anew {number}")]
        elif kind == "mask":
            place = value % len(talk)
            first = talk[place]["parts"][0]
            is_result = first["type"] == "tool_call_response"
            part = result_part(first["id"], f"(masked {number})") if is_result else f"(masked {number})"
            talk[place] = said(talk[place]["role"], part)
        else:
            calls = [call_part(f"c{number}_{at}", "read_file", path=at) for at in range(value)]
            answer = said("assistant", f"do {number}", *calls)
            export.chat(talk, answer)
            results = [result_part(call["id"], f"got {call['id']}") for call in calls]
            talk = [*talk, answer, *([said("tool", *results)] if results else [])]
    path = export.write(tmp_path / FILES[0])
    (trace,), report = ingest_file(path)
    assert [shown(s) for s in trace.states()] == [plain_messages(own) for own in recorded_calls(path)]
    assert (dict(report.skipped), dict(report.unknown)) == ({}, {})


def test_stored_exports_are_read_to_the_letter() -> None:
    paths = sorted(path for path in GOLDEN.rglob("spans.*"))
    assert len(paths) >= 6
    steps = 0
    for path in paths:
        traces, report = ingest_file(path)
        counted = count_calls(path)
        states = sorted(
            (state for trace in traces for state in trace.states()), key=lambda s: str(s.step.timestamp)
        )
        assert (len(states), report.tool_calls) == (counted["answers"], counted["tool_calls"]), path
        assert [shown(s) for s in states] == [plain_messages(own) for own in recorded_calls(path)]
        steps += len(states)
    assert steps >= 30


PARSED = [
    {key: value for key, value in own.items() if key.endswith((".messages", "_instructions", ".definitions"))}
    for path in sorted(GOLDEN.rglob("spans.*"))
    for own in recorded_calls(path)
]


@given(st.sampled_from(PARSED).map(lambda own: [own]).flatmap(changed))
@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_part_of_another_type_in_a_message_stops_nothing(tmp_path: Path, owns: list[Any]) -> None:
    (own,) = owns
    export = Export()
    dotted = {key.replace(".", "__"): json.dumps(value) for key, value in own.items()}
    export.span("chat", **dotted)
    ingest_file(export.write(tmp_path / FILES[0]))
    list(FORMAT.kinds(export.record()))


def test_spans_are_asked_and_paired(tmp_path: Path) -> None:
    export = Export(service="my-agent")
    talk = [said("user", "glow in src/glow.py raises KeyError. Fix it.")]
    steps = [
        ("read_file", {"path": "src/glow.py"}, "def glow():\n    raise KeyError"),
        ("run_command", {"command": "python reproduce.py"}, "KeyError"),
        ("edit_file", {"path": "src/glow.py", "old_string": "raise", "new_string": "return"}, "Edited."),
        ("run_command", {"command": "python -m pytest tests"}, "1 passed"),
    ]
    for number, (name, arguments, output) in enumerate(steps):
        answer = said("assistant", "So.", call_part(f"c{number}", name, **arguments))
        export.chat(talk, answer, gen_ai__request__model="gpt-5")
        talk += [answer, said("tool", result_part(f"c{number}", output))]
    export.chat(talk, said("assistant", "Fixed."), gen_ai__request__model="gpt-5")
    (trace,), _ = read(tmp_path, export)
    states = list(trace.states())
    operations = [find_action_operation(state.student_action, trace.harness) for state in states]
    assert operations == ["read", "run", "edit", "run_test", "finish"]
    replies = tm.replay_trace_sync(
        states,
        teachers=PRESETS["simulated"].teachers,
        max_total_usd=1.0,
        settings=tm.ReplaySettings(stop="off"),
    )
    assert len(replies) == 4 * len(states)
    assert tm.extract_dpo_pairs(states, replies, agreement_threshold=2)
