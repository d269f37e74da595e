"""Rows for short contexts: which tools stay, and that system prompt and task are cut before a row is lost."""

import json
from dataclasses import replace

import pytest

from tracemill.normalize.context_length.short_rows import TEMPLATE_TOKENS, Shortener, called_tools
from tracemill.normalize.context_length.token_counts import (
    count_message_tokens,
    count_tool_tokens,
    estimate_token_counts,
)
from tracemill.records.message import Message, ToolCall, ToolSpec
from tracemill.records.trace import MessageView

TOOLS = tuple(ToolSpec(name, "What it does. " * 30, {"type": "object"}) for name in ("Bash", "Read", "Web"))
SIDES = (
    (Message("assistant", "", (ToolCall("s", "Read", '{"path": "a.py"}'),)),),
    (Message("assistant", "Done."),),
)


def context(turns: int, system: int = 200, back: int = 300) -> tuple[Message, ...]:
    messages = [Message("system", "s" * system), Message("user", "Fix the lantern.")]
    for n in range(turns):
        arguments = json.dumps({"command": f"ls {n}"})
        messages.append(Message("assistant", f"step {n}", (ToolCall(f"c{n}", "Bash", arguments),)))
        messages.append(Message("tool", f"<{n}>" + "x" * back, tool_call_id=f"c{n}"))
    return tuple(messages)


def size(messages: object, tools: tuple[ToolSpec, ...]) -> int:
    assert isinstance(messages, (list, tuple, MessageView))
    counted = count_message_tokens([*messages, *SIDES[0]], estimate_token_counts)
    return sum(counted) + count_tool_tokens(tools, estimate_token_counts)


def test_all_tools_stay_where_a_row_fits_with_them() -> None:
    shown = context(3)
    found = Shortener(estimate_token_counts, 4096).fit(shown, TOOLS, SIDES)
    assert found is not None
    assert (found.messages, found.tools, found.length.cut) == (shown, TOOLS, "")


def test_else_those_that_are_called_in_the_row_stay() -> None:
    assert [tool.name for tool in called_tools(context(1), TOOLS, SIDES)] == ["Bash", "Read"]
    for shortener in (Shortener(estimate_token_counts, 800), Shortener(estimate_token_counts, 8192, True)):
        found = shortener.fit(context(9), TOOLS, SIDES)
        assert found is not None
        assert [tool.name for tool in found.tools] == ["Bash", "Read"]
        assert size(found.messages, found.tools) <= shortener.max_tokens - TEMPLATE_TOKENS


@pytest.mark.parametrize("turns", [0, 1, 40])
def test_system_prompt_and_task_are_cut_last(turns: int) -> None:
    shown = context(turns, system=30_000)
    view = MessageView(shown, len(shown))
    found = Shortener(estimate_token_counts, 1024, True).fit(view, TOOLS, SIDES)
    assert found is not None
    system, task, *rest = found.messages
    assert "characters left out" in system.content
    assert len(system.content) < 2100
    assert task.content.startswith("Fix the lantern.")
    assert size(found.messages, found.tools) <= 1024 - TEMPLATE_TOKENS
    assert not rest or rest[-1].content.startswith(f"<{turns - 1}>")
    assert found.length.cut == ("turns" if turns == 40 else "observations")


def test_a_side_or_a_last_turn_that_is_too_long_loses_the_row() -> None:
    long = ((Message("assistant", "word " * 2000),), SIDES[1])
    shortener = Shortener(estimate_token_counts, 1024, True)
    assert shortener.fit(context(2), TOOLS, long) is None
    huge = ToolCall("h", "Bash", json.dumps({"command": "echo " + "y" * 9000}))
    shown = (*context(1), Message("assistant", "", (huge,)), Message("tool", "ok", tool_call_id="h"))
    assert shortener.fit(shown, TOOLS, SIDES) is None


def test_descriptions_of_tools_are_cut_where_the_called_ones_are_too_long() -> None:
    schema = {
        "type": "object",
        "properties": {"description": {"type": "string", "description": "long " * 900}},
        "required": ["description"],
    }
    tools = tuple(replace(tool, description="It runs. " * 900, parameters=schema) for tool in TOOLS)
    found = Shortener(estimate_token_counts, 1024, True).fit(context(2), tools, SIDES)
    assert found is not None
    assert [(tool.name, len(tool.description)) for tool in found.tools] == [("Bash", 200), ("Read", 200)]
    assert found.tools[0].parameters == {
        "type": "object",
        "properties": {"description": {"type": "string"}},
        "required": ["description"],
    }
    assert found.messages == context(2)
