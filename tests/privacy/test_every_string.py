"""No string of a trace is passed over: whatever is planted, wherever, is gone; what is clean stays."""

import dataclasses
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, get_args, get_origin, get_type_hints

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from whole_records import whole_text

from tracemill.privacy.redaction.redactor import Redactor
from tracemill.records.message import Message, ToolCall, ToolSpec
from tracemill.records.trace import Context, Step, Trace

TOKEN = "gh" + "p_" + "a8Kd72Lq" * 4 + "Zz91"
OWNERS = "Zwiebelwerk"
REDACTOR = Redactor.from_environment({}, hostname="x", key=b"k", redact=[OWNERS, r"re:(?i)projektx\d"])
Path = tuple[Any, ...]


def _trace() -> Trace:
    spec = ToolSpec(
        "mcp__db__query",
        "Asks.",
        {"properties": {"sql": {"enum": ["a"], "default": "b"}}, "required": ["sql"]},
    )
    call = ToolCall("call_1", "mcp__db__query", '{"sql": {"key": ["x"]}}')
    messages = (
        Message("system", "Be."),
        Message("user", "Do.", name="kim"),
        Message("assistant", "So.", (call,), reasoning="Hm."),
        Message("tool", '{"rows": "1"}', tool_call_id="call_1", name="mcp__db__query", error_kind="unknown"),
    )
    step = Step(0, 2, "model-a", "openai", "resp_1", cwd="/srv/a", timestamp="2026-01-02T03:04:05Z")
    return Trace(
        "swe_agent-1", "swe_agent", "swe_agent", "swe_agent", (Context(0, messages, (step,), tools=(spec,)),),
        harness_version="1.2", parent_trace_id="swe_agent-0", parent_call_id="call_0", project="p",
        repository="o/r", instance_id="i-1", licence="MIT", started_at="2026-01-02T03:04:05Z", origin="o",
        seen_tools=("mcp__db__list",), notes={"some": 1},
    )  # fmt: skip


def _strings(value: Any) -> Iterator[tuple[Path, str]]:
    """Every string of a record and how to get there, those of a fixed set of words left out."""
    if isinstance(value, str):
        yield (), value
    elif dataclasses.is_dataclass(value):
        hints = get_type_hints(type(value))
        for field in dataclasses.fields(value):
            if "Literal" not in str(get_origin(hints[field.name])) and field.name != "redaction":
                for path, text in _strings(getattr(value, field.name)):
                    yield (field.name, *path), text
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield (("key", key),), key
            for path, text in _strings(item):
                yield (key, *path), text
    elif isinstance(value, list | tuple):
        for index, item in enumerate(value):
            for path, text in _strings(item):
                yield (index, *path), text


def _planted(value: Any, path: Path, text: str) -> Any:
    if not path:
        return text
    head, rest = path[0], path[1:]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return dataclasses.replace(value, **{head: _planted(getattr(value, head), rest, text)})
    if isinstance(value, Mapping):
        if isinstance(head, tuple):
            return {text if key == head[1] else key: item for key, item in value.items()}
        return {key: _planted(item, rest, text) if key == head else item for key, item in value.items()}
    made = [_planted(item, rest, text) if index == head else item for index, item in enumerate(value)]
    return tuple(made) if isinstance(value, tuple) else made


PLACES = [path for path, _ in _strings(_trace())]


def test_the_walk_meets_every_field() -> None:
    assert len(PLACES) == len(set(PLACES)) >= 40
    assert get_args(get_type_hints(Message)["role"])[0] == "system"


FRAMES = ["{}", "pre-{}-post", "a {} b", '{{"{}": 1}}', '{{"a": ["{}"]}}']


@given(st.sampled_from(PLACES), st.sampled_from(FRAMES),
       st.sampled_from([TOKEN, OWNERS, "ProjektX7"]))  # fmt: skip
@settings(max_examples=300, deadline=None)
def test_what_is_planted_in_any_string_is_gone(place: Path, frame: str, value: str) -> None:
    trace = _planted(_trace(), place, frame.format(value))
    assert value in whole_text(trace)
    redacted, counts = REDACTOR.redact_trace(trace)
    assert value not in whole_text(redacted)
    assert sum(counts.values()) >= 1
    assert REDACTOR.redact_trace(dataclasses.replace(redacted, redaction=None))[0] == redacted


def test_a_clean_trace_keeps_every_part() -> None:
    trace = _trace()
    redacted, counts = REDACTOR.redact_trace(trace)
    assert sum(counts.values()) == 0
    assert dataclasses.replace(redacted, redaction=None, worked_in=()) == trace
    assert redacted.contexts is trace.contexts


@pytest.mark.parametrize(
    "name", [f"mcp__{OWNERS}_projektx1__query", f"x{TOKEN}", f"mcp__{OWNERS}__" + "q" * 49]
)
def test_a_tools_name_is_one_name_throughout_and_may_be_sent(name: str) -> None:
    trace = _trace()
    context = trace.contexts[0]
    call = dataclasses.replace(context.messages[2].tool_calls[0], name=name)
    messages = (
        dataclasses.replace(context.messages[2], tool_calls=(call,)),
        dataclasses.replace(context.messages[3], name=name),
    )
    tools = (dataclasses.replace(context.tools[0], name=name),)
    context = dataclasses.replace(context, messages=messages, tools=tools, steps=())
    redacted, _ = REDACTOR.redact_trace(dataclasses.replace(trace, contexts=(context,), seen_tools=(name,)))
    new = redacted.contexts[0]
    names = {
        new.tools[0].name,
        new.messages[0].tool_calls[0].name,
        new.messages[1].name,
        *redacted.seen_tools,
    }
    assert len(names) == 1
    assert re.fullmatch(r"[A-Za-z0-9_-]{1,64}", str(names.pop()))


def test_ids_that_hold_a_token_still_agree() -> None:
    call = ToolCall(f"c-{TOKEN}", "Bash", "{}")
    messages = (Message("assistant", "", (call,)), Message("tool", "x", tool_call_id=call.id))
    trace = dataclasses.replace(_trace(), contexts=(Context(0, messages, ()),))
    side = dataclasses.replace(_trace(), trace_id="swe_agent-2", parent_call_id=call.id)
    new = REDACTOR.redact_trace(trace)[0].contexts[0].messages
    assert new[0].tool_calls[0].id == new[1].tool_call_id == REDACTOR.redact_trace(side)[0].parent_call_id


@pytest.mark.parametrize("hidden", [json.dumps(TOKEN), '"\\u0067\\u0068p_' + TOKEN[4:] + '"'])
def test_a_text_that_is_one_json_string_is_decoded(hidden: str) -> None:
    for text in (hidden, f" {hidden}\n", json.dumps({"a": hidden})):
        redacted, counts = REDACTOR.redact_text(text)
        assert counts == {"GITHUB_TOKEN": 1}
        assert TOKEN[4:] not in redacted
        json.loads(redacted)
    _, counts = REDACTOR.redact_message(Message("assistant", "", (ToolCall("c", "Bash", hidden),)))
    assert counts == {"GITHUB_TOKEN": 1}


def test_a_token_glued_to_a_word_is_found_by_its_exact_length() -> None:
    found = {"abc" + TOKEN: "GITHUB_TOKEN", "row7AKIA" + "QW2E" * 3 + "Z7KM": "AWS_KEY_ID"}
    found["keysk-or-v1-" + "8d2f06b1c94ae753" * 4] = "OPENROUTER_KEY"
    for text, kind in found.items():
        redacted, counts = REDACTOR.redact_text(f"see {text}, then")
        assert counts == {kind: 1}
        assert re.fullmatch(rf"see [a-z0-9]+<{kind}_[0-9a-f]{{8}}>, then", redacted)
    for text in (
        "abc" + TOKEN + "a",
        "abc" + TOKEN[:-1],
        "task-proj-abcdefghijklmnopqrst1",
        "abcghp_" + "a" * 36,
    ):
        assert REDACTOR.redact_text(f"see {text}, then")[1] == {}


def test_quoted_lines_that_are_no_json_keep_their_line_ends() -> None:
    text = f'"two\nlines with {TOKEN}\n"'
    redacted, counts = REDACTOR.redact_text(text)
    assert counts == {"GITHUB_TOKEN": 1}
    assert redacted.count("\n") == 2
