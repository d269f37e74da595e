"""The tools of a session: recorded ones, stand-ins, and schemas inferred from the calls seen."""

from collections.abc import Iterable
from typing import Any

from harnesses.harness import Harness
from harnesses.text_calls import calls_in_text
from harnesses.tool_specs import record, sendable, wire_name
from records.message import ToolCall, ToolSpec
from records.state import Context, Trace

_JSON_TYPES = ((bool, "boolean"), (int, "integer"), (float, "number"), (str, "string"), (list, "array"))
_UNDESCRIBED = "Seen in this session; its description was not recorded."


def tools_of(trace: Trace, context: Context, harness: Harness) -> tuple[ToolSpec, ...]:
    """What a model is offered at every step of a context, sorted by name unless recorded.

    Recorded tools as they are. Else a stand-in for each known tool that was called, seen or, in a main
    session, always is there; and a schema inferred from all calls of the trace for each unknown one. A
    session that acts in the text of its messages has none.
    """
    if context.tools:
        return tuple(sendable(tool) for tool in context.tools)
    calls = list(all_calls(trace))
    if not calls and harness.text_actions and _acts_in_text(trace):
        return ()
    names = {call.name for call in calls} | set(trace.seen_tools)
    if trace.kind == "main":
        names |= set(harness.core)
    tools = [harness.tools.get(name) or infer_tool(name, calls) for name in names]
    return tuple(sorted((sendable(tool) for tool in tools), key=lambda tool: tool.name))


def all_calls(trace: Trace) -> Iterable[ToolCall]:
    """Every tool call of a trace, context by context."""
    for context in trace.contexts:
        for message in context.messages:
            yield from message.tool_calls


def _acts_in_text(trace: Trace) -> bool:
    return any(
        message.role == "assistant" and bool(calls_in_text(message.content, trace.harness))
        for context in trace.contexts
        for message in context.messages
    )


def infer_tool(name: str, calls: Iterable[ToolCall]) -> ToolSpec:
    """A tool's schema as far as its calls show it: all properties seen with their types, none required."""
    types: dict[str, set[str]] = {}
    for call in calls:
        if call.name == name:
            for key, value in (call.parsed() or {}).items():
                types.setdefault(key, set()).update(_json_type(value))
    properties = {key: _property(types[key]) for key in sorted(types)}
    return ToolSpec(wire_name(name), _UNDESCRIBED, record(properties), "inferred")


def _json_type(value: Any) -> list[str]:
    if value is None:
        return []
    return [next((name for kind, name in _JSON_TYPES if isinstance(value, kind)), "object")]


def _property(types: set[str]) -> dict[str, Any]:
    if {"integer", "number"} <= types:
        types = types - {"integer"}
    names = sorted(types)
    if not names:
        return {}
    schema: dict[str, Any] = {"type": names[0] if len(names) == 1 else names}
    if "array" in names:
        schema["items"] = {}
    return schema
