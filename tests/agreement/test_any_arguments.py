"""Arguments of any type, for every tool that the tables know: what a model may emit raises nothing."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tracemill.agreement.equivalence.ladder import ladder_keys
from tracemill.agreement.equivalence.validity import why_calls_invalid
from tracemill.agreement.voting.policy import VotePolicy
from tracemill.agreement.voting.vote import VoteResult, tally_votes
from tracemill.agreement.world.replay_context import environment_at, replay_context
from tracemill.agreement.world.world_state import EnvironmentState
from tracemill.harnesses.agents.common_tools import _RULES as COMMON
from tracemill.harnesses.agents.registry import _ALL_RULES as KNOWN
from tracemill.harnesses.agents.registry import HARNESSES
from tracemill.records.message import Action, Message, ToolCall, ToolSpec
from tracemill.records.reply import TeacherReply
from tracemill.records.trace import Context, Step, Trace, TraceState

RULES = {**COMMON, **KNOWN}
SCHEMAS = {name: spec for each in HARNESSES for name, spec in each.tools.items()}
DIFFERENT = sorted({*{rule: name for name, rule in RULES.items()}.values(), *(SCHEMAS.keys() & RULES.keys())})
"""One tool of each rule, and those with a schema."""
OTHERS = """edits files paths view_range insert_line start_line end_line replacement_text text line content
    old_str new_str old_string new_string oldText newText search replace expected_replacements start end"""
WRONG: tuple[Any, ...] = (None, True, -5, 10**30, 1.5, "", "\x00 'a", [], {}, [None], [[]], ["a", 2], ["sql"])
WRONG += ([1, 2, 3], {"a": []}, [{}], [{"old_string": 5, "new_string": []}], {"": None})
SHOWN = Message("tool", "     1\tx = 1\n     2\tx = 1", (), "c1")


def names_of(tool: str) -> list[str]:
    rule = RULES[tool]
    schema = SCHEMAS[tool].parameters["properties"] if tool in SCHEMAS else {}
    named = {*rule.target[:4], *rule.paths[:2], *rule.ignored, rule.folder, *schema}
    return sorted(named - {""})


def made(tool: str, /, **arguments: Any) -> ToolCall:
    return ToolCall("c1", tool, json.dumps(arguments))


@pytest.mark.parametrize("tool", DIFFERENT)
def test_an_argument_of_a_wrong_type_is_read_whatever_the_tool(tool: str) -> None:
    tools = (SCHEMAS.get(tool, ToolSpec(tool, "", {})),)
    for name in names_of(tool):
        for value in WRONG:
            action = Action("", (made(tool, **{"path": "a.py", "command": "str_replace", name: value}),))
            messages = (Message("user", "mend a.py"), action.to_message(), SHOWN)
            world = EnvironmentState(
                "generic", "/repo", tools, replay_context(Context(0, messages, ()), "generic"), 3
            )
            known = ladder_keys(action, world)
            assert known.exact.startswith("exact:")
            assert why_calls_invalid(action, tools) != ""


LEAVES = st.none() | st.booleans() | st.integers(-3, 9) | st.floats(allow_nan=False) | st.text(max_size=3)
LEAVES |= st.sampled_from(["a.py", "SELECT 1", "view", "str_replace", "2:9", "*** Update File: a.py\n@@\n-x"])
VALUES = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(OTHERS.split()), inner, max_size=3)
    ),
    max_leaves=6,
)


@st.composite
def calls(draw: st.DrawFn) -> ToolCall:
    tool = draw(st.sampled_from(sorted(RULES)))
    names = st.sampled_from([*names_of(tool), "path"]) | st.sampled_from(OTHERS.split())
    return made(tool, **draw(st.dictionaries(names, VALUES, max_size=4)))


def voted(call: ToolCall, other: ToolCall, harness: str) -> VoteResult:
    messages = (
        Message("user", "mend a.py"),
        Message("assistant", "", (made("Read", file_path="/repo/a.py"),)),
        SHOWN,
        Message("assistant", "", (call,)),
        SHOWN,
        Message("assistant", "", (call, other)),
    )
    steps = tuple(Step(at, 2 * at + 1, "m", "anthropic", cwd="/repo") for at in range(3))
    context = Context(0, messages, steps)
    trace = Trace("t", "openhands", "d", harness, (context,))
    state = TraceState(trace, context, steps[2])
    tools = tuple(SCHEMAS.get(each.name, ToolSpec(each.name, "", {})) for each in (call, other))
    replies = [TeacherReply("t:0:2", f"k{n}", n, n, 0, 0, action=Action("", (call,))) for n in "ab"]
    assert ladder_keys(state.student_action, environment_at(state, tools)).effects is not None
    return tally_votes(state, tools, replies, VotePolicy())


@settings(max_examples=100, deadline=None)
@given(calls(), calls(), st.sampled_from(["generic", "openhands", *(each.name for each in HARNESSES)]))
def test_any_arguments_are_voted_on(call: ToolCall, other: ToolCall, harness: str) -> None:
    first = voted(call, other, harness)
    assert len(first.votes) == 2
    assert voted(call, other, harness) == first


@pytest.mark.parametrize("value", [[], ["sql"], [None], {}, 5, None])
def test_a_statement_that_is_no_text_makes_no_pair_with_one_that_is(value: Any) -> None:
    world = EnvironmentState("generic", "/repo")
    odd, real = (Action("", (made("sql", query=each),)) for each in (value, "SELECT 1"))
    assert ladder_keys(odd, world).effect != ladder_keys(real, world).effect
