"""What is shown: valid for an API at every step, growing, the same bytes every time, linear in time."""

import json
import time
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tracemill.harnesses.core.schema_builders import clean_tool_schema
from tracemill.harnesses.presentation import PRESENTATION_VERSION, present_all, present_context
from tracemill.harnesses.valid_messages import LATE_RESULT, NO_BEGINNING, NO_RESULT, NO_USER_TURN, UNPARSED
from tracemill.records.identity import extend_prompt, prompt_root
from tracemill.records.message import Message, ToolCall, ToolSpec
from tracemill.records.trace import Context, Fidelity, Step, Trace


def call(identity: str, name: str = "Read", arguments: str = '{"file_path":"/a"}') -> ToolCall:
    return ToolCall(identity, name, arguments)


def says(text: str = "", *calls: ToolCall, reasoning: str | None = None) -> Message:
    return Message("assistant", text, calls, reasoning=reasoning)


def result(identity: str, text: str = "ok") -> Message:
    return Message("tool", text, tool_call_id=identity)


def trace_of(*messages: Message, harness: str = "claude_code", tools: tuple[ToolSpec, ...] = ()) -> Trace:
    cuts = [index for index, message in enumerate(messages) if message.role == "assistant"]
    steps = tuple(Step(number, cut) for number, cut in enumerate(cuts))
    return Trace("t", "claude_code", "d", harness, (Context(0, messages, steps, tools=tools),))


def assert_valid(messages: tuple[Message, ...]) -> None:
    """What an API asks of a prompt."""
    open_calls: set[str] = set()
    ids: list[str] = []
    previous = ""
    for number, message in enumerate(messages):
        message.content.encode()
        assert (message.role == "system") == (number == 0)
        if message.role == "tool":
            assert message.tool_call_id in open_calls
            open_calls.discard(message.tool_call_id)
        else:
            assert not open_calls
        if message.role == "assistant":
            assert previous in ("user", "tool")
            assert message.content.strip() or message.tool_calls
            open_calls = {each.id for each in message.tool_calls}
            ids.extend(each.id for each in message.tool_calls)
            assert all(each.parsed() is not None for each in message.tool_calls)
        assert message.reasoning is None
        previous = message.role
    assert not open_calls
    assert previous in ("user", "tool")
    assert len(ids) == len(set(ids))


def prompts(trace: Trace) -> list[tuple[Message, ...]]:
    shown = present_context(trace, trace.contexts[0])
    return [shown.messages[:cut] for cut in shown.cuts]


def test_a_plain_session_gets_a_stand_in_and_its_own_messages() -> None:
    trace = trace_of(
        Message("user", "fix it"), says("I look", call("a"), reasoning="hm"), result("a"), says("Done.")
    )
    shown = present_context(trace, trace.contexts[0])
    assert [message.role for message in shown.messages] == [
        "system",
        "user",
        "assistant",
        "tool",
        "assistant",
    ]
    assert "stand-in" in shown.messages[0].content
    assert shown.cuts == (2, 4)
    assert shown.kind == "system=stand_in,tools=stand_in"
    assert [tool.name for tool in shown.tools] == ["Bash", "Edit", "Glob", "Grep", "Read", "Write"]
    assert shown.label == f"p{PRESENTATION_VERSION}/system=stand_in,tools=stand_in"
    assert shown.messages[2] == says("I look", call("a"))


def test_a_recorded_system_prompt_and_recorded_tools_are_used() -> None:
    loose = ToolSpec(
        "execute_bash",
        "Runs.",
        {"properties": {"command": {"type": "string", "enum": None}, "path": None}},
    )
    trace = trace_of(
        Message("system", "You are."), Message("user", "x"), says("y"), harness="openhands", tools=(loose,)
    )
    shown = present_context(trace, trace.contexts[0])
    assert shown.messages[0].content == "You are."
    assert shown.kind == "system=recorded,tools=recorded"
    assert shown.tools[0].parameters == {"type": "object", "properties": {"command": {"type": "string"}}}


def test_unknown_tools_are_inferred_from_all_calls_of_the_trace() -> None:
    first = call("a", "mcp__x__find", '{"query":"a","limit":3}')
    second = call("b", "mcp__x__find", '{"limit":2.5,"tags":["t"],"deep":true,"none":null}')
    trace = trace_of(Message("user", "x"), says("", first), result("a"), says("", second), result("b"))
    shown = present_context(trace, trace.contexts[0])
    tool = next(tool for tool in shown.tools if tool.name == "mcp__x__find")
    assert tool.origin == "inferred"
    assert json.dumps(tool.parameters) == json.dumps(
        {
            "type": "object",
            "properties": {
                "deep": {"type": "boolean"},
                "limit": {"type": "number"},
                "none": {},
                "query": {"type": "string"},
                "tags": {"type": "array", "items": {}},
            },
        }
    )
    assert shown.kind == "system=stand_in,tools=stand_in+inferred"


def test_seen_tools_are_offered_and_a_side_session_gets_no_others() -> None:
    trace = trace_of(
        Message("user", "x"), says("", call("a", "Grep", '{"pattern":"x"}')), result("a"), says("y")
    )
    side = replace(trace, kind="side", seen_tools=("WebSearch", "mcp__new"))
    assert [tool.name for tool in present_context(side, side.contexts[0]).tools] == [
        "Grep",
        "WebSearch",
        "mcp__new",
    ]


def test_a_session_that_acts_in_its_text_has_no_tools_and_a_prompt_that_says_how() -> None:
    trace = trace_of(
        Message("user", "x"), says("I list.\n```\nls\n```"), Message("user", "a.py"), harness="swe_agent"
    )
    shown = present_context(trace, trace.contexts[0])
    assert (shown.tools, shown.kind) == ((), "system=stand_in,tools=none")
    assert "end_of_edit" in shown.messages[0].content
    talks = trace_of(Message("user", "x"), says("Which repository?"), harness="openhands")
    offered = [tool.name for tool in present_context(talks, talks.contexts[0]).tools]
    assert offered == ["execute_bash", "finish", "str_replace_editor", "think"]


def test_prefixes_that_are_not_known_to_be_complete_are_said() -> None:
    trace = trace_of(Message("user", "x"), says("```\nls\n```"), harness="swe_agent")
    context = replace(trace.contexts[0], fidelity=Fidelity(context="approximate"))
    shown = present_context(replace(trace, contexts=(context,)), context)
    assert shown.kind == "system=stand_in,tools=none,context=approximate"
    assert shown.prompt_ids == present_context(trace, trace.contexts[0]).prompt_ids


def test_a_system_message_behind_the_first_is_shown_as_the_users_and_said() -> None:
    said = (Message("user", "x"), says("y"), Message("system", "Plan only."), Message("user", "z"), says("w"))
    trace = trace_of(Message("system", "You are."), *said)
    shown = present_context(trace, trace.contexts[0])
    assert [message.role for message in shown.messages] == [
        *("system", "user", "assistant", "user", "user", "assistant")
    ]
    assert shown.messages[3].content == "Plan only."
    assert shown.kind == "system=recorded,tools=stand_in,later_system=user"
    blank = trace_of(Message("system", "You are."), Message("user", "x"), Message("system", " "), says("y"))
    assert present_context(blank, blank.contexts[0]).kind == "system=recorded,tools=stand_in"


def test_a_stand_in_that_no_recorded_call_fits_is_not_offered() -> None:
    by_lines = call("a", "edit", '{"start_line": 1, "end_line": 2, "replacement_text": "x"}')
    by_text = call("a", "edit", '{"search": "x", "replace": "y"}')
    for edit, origin in ((by_lines, "inferred"), (by_text, "stand_in")):
        trace = trace_of(Message("user", "x"), says("", edit), result("a"), says("y"), harness="swe_agent")
        tools = {tool.name: tool for tool in present_context(trace, trace.contexts[0]).tools}
        assert set(tools) == {"bash", "edit", "submit"}
        assert tools["edit"].origin == origin
        assert set(json.loads(edit.arguments)) <= set(tools["edit"].parameters["properties"])


def test_all_contexts_at_once_are_the_same_as_one_by_one() -> None:
    first = (Message("user", "x"), says("", call("a")), result("a"), says("y"))
    trace = trace_of(*first)
    recorded = ToolSpec("Read", "Reads.", {"type": "object", "properties": {}})
    second = Context(1, first[:2], (Step(0, 1),), tools=(recorded,))
    empty = Context(2, first[:1], ())
    trace = replace(trace, contexts=(*trace.contexts, second, empty))
    assert present_all(trace) == {c.index: present_context(trace, c) for c in trace.contexts[:2]}


def test_calls_without_results_and_results_without_calls() -> None:
    trace = trace_of(
        result("gone", "late text"),
        Message("user", "x"),
        says("", call("a"), call("b")),
        result("a", "A"),
        Message("user", "between"),
        says("next"),
    )
    (first, second) = prompts(trace)
    assert first[1].content == f"{LATE_RESULT}\nlate text"
    assert [(m.role, m.content) for m in second[4:]] == [
        ("tool", "A"),
        ("tool", NO_RESULT),
        ("user", "between"),
    ]
    assert second[: len(first)] == first


def test_text_between_two_results_comes_behind_both() -> None:
    trace = trace_of(
        Message("user", "x"),
        says("", call("a"), call("b")),
        result("a", "A"),
        Message("user", "reminder"),
        result("b", "B"),
        Message("user", "said"),
        says("next"),
    )
    assert [m.content for m in prompts(trace)[1][3:]] == ["A", "B", "reminder", "said"]


def test_a_session_that_begins_with_the_agent_or_repeats_it_gets_user_turns() -> None:
    shown = prompts(trace_of(says("one"), says(""), says("two")))
    assert [m.content for m in shown[0][1:]] == [NO_BEGINNING]
    assert [m.content for m in shown[2][1:]] == [NO_BEGINNING, "one", NO_USER_TURN]


def test_broken_arguments_and_repeated_ids_are_made_valid() -> None:
    trace = trace_of(
        Message("user", "x"),
        says("", call("a", "Read", "{oops")),
        result("a"),
        says("", call("a")),
        result("a"),
        says("z"),
    )
    last = prompts(trace)[2]
    assert last[2].tool_calls[0].parsed() == {UNPARSED: "{oops"}
    assert [m.tool_call_id for m in last if m.role == "tool"] == ["a", "a_2"]
    assert last[4].tool_calls[0].id == "a_2"


def test_prompt_ids_are_the_chain_of_what_is_shown() -> None:
    trace = trace_of(Message("user", "x"), says("", call("a")), result("a"), says("y"))
    shown = present_context(trace, trace.contexts[0])
    chain = prompt_root(shown.tools, "p1")
    for message in shown.messages[: shown.cuts[1]]:
        chain = extend_prompt(chain, message)
    assert shown.prompt_ids[1] == chain
    assert len(set(shown.prompt_ids)) == 2


def test_another_presentation_keeps_the_identity_of_prompts_that_stay(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Answers are found again by it."""
    trace = trace_of(Message("user", "x"), says("", call("a")), result("a"), says("y"))
    before = present_context(trace, trace.contexts[0])
    monkeypatch.setattr("tracemill.harnesses.presentation.PRESENTATION_VERSION", PRESENTATION_VERSION + 1)
    after = present_context(trace, trace.contexts[0])
    assert (after.prompt_ids, after.version) == (before.prompt_ids, before.version)
    assert after.label == f"p{PRESENTATION_VERSION + 1}/{after.kind}"


def test_a_default_of_null_is_kept_and_nulls_of_columns_are_not() -> None:
    recorded = {
        "type": "object",
        "properties": {
            "a": {"anyOf": [{"type": "string"}, {"type": "null"}], "default": None},
            "b": {"type": "string", "default": None, "enum": None},
        },
    }
    shown = clean_tool_schema(ToolSpec("t", "", recorded))
    assert shown.parameters["properties"] == {"a": recorded["properties"]["a"], "b": {"type": "string"}}


MESSAGES = st.lists(
    st.one_of(
        st.builds(Message, st.just("user"), st.sampled_from(["", "hello", "bad \ud800"])),
        st.builds(Message, st.just("system"), st.sampled_from(["rules", "more"])),
        st.builds(result, st.sampled_from(["a", "b", ""])),
        st.builds(
            lambda text, calls: says(text, *calls, reasoning="r"),
            st.sampled_from(["", "text"]),
            st.lists(
                st.builds(
                    call,
                    st.sampled_from(["a", "b", ""]),
                    st.just("Re ad"),
                    st.sampled_from(["{}", "", "[", "3"]),
                ),
                max_size=3,
            ),
        ),
    ),
    max_size=14,
)


@settings(max_examples=300, deadline=None)
@given(MESSAGES)
def test_every_prompt_of_any_session_is_valid_and_a_prefix_of_the_next(messages: list[Message]) -> None:
    trace = trace_of(*messages)
    shown = prompts(trace)
    for prompt in shown:
        assert_valid(prompt)
    for earlier, later in pairwise(shown):
        assert later[: len(earlier)] == earlier
    assert present_context(trace, trace.contexts[0]) == present_context(trace, trace.contexts[0])


def test_two_thousand_steps_are_quick_and_share_their_texts() -> None:
    messages = [Message("user", "task")]
    for number in range(2000):
        arguments = json.dumps({"file_path": f"/a/{number}", "x": "y" * 200})
        messages += [
            says("t", call(f"c{number}", "mcp__find" if number % 2 else "Read", arguments)),
            result(f"c{number}", "z" * 2000),
        ]
    trace = trace_of(*messages)
    began = time.perf_counter()
    shown = present_context(trace, trace.contexts[0])
    assert time.perf_counter() - began < 2.0
    assert shown.cuts[-1] == 2 + 2 * 1999
    assert shown.messages[3] is trace.contexts[0].messages[2]
    assert len(set(shown.prompt_ids)) == 2000
