"""The tools of a session: recorded ones, stand-ins, and schemas inferred from calls."""

from collections.abc import Iterable
from typing import Any

from tracemill.harnesses.agents.registry import Harness
from tracemill.harnesses.core.schema_builders import clean_schema_name, clean_tool_schema
from tracemill.harnesses.text_calls import calls_in_text
from tracemill.records.message import Message, ToolCall, ToolSpec
from tracemill.records.trace import Context, Trace

_JSON_TYPES = ((bool, "boolean"), (int, "integer"), (float, "number"), (str, "string"), (list, "array"))
_DESCRIPTION = "Seen in this session; its description was not recorded."


def infer_context_tools(trace: Trace, context: Context, harness: Harness) -> tuple[ToolSpec, ...]:
    """Return the tools offered at every step of a context: the recorded ones, else those of the session.

    Tools that were not recorded are sorted by name.
    """
    if context.tools:
        return tuple(clean_tool_schema(tool) for tool in context.tools)
    return infer_session_tools(trace, harness)


def infer_session_tools(trace: Trace, harness: Harness) -> tuple[ToolSpec, ...]:
    """Return the tools of a session that records none, in time linear in its messages.

    Each known tool that was called, seen or, in a main session, is always offered gets a stand-in; any other
    tool gets a schema inferred from all calls of the trace. A session that acts in the text of its messages
    has none.
    """
    messages = list({id(m): m for context in trace.contexts for m in context.messages}.values())
    calls = [call for message in messages for call in message.tool_calls]
    if not calls and harness.text_actions and _acts_in_text(messages, trace.harness):
        return ()
    names = {call.name for call in calls} | set(trace.seen_tools)
    if trace.kind == "main":
        names |= set(harness.core)
    tools = [_stand_in(harness, name, calls) or infer_tool(name, calls) for name in names]
    return tuple(sorted((clean_tool_schema(tool) for tool in tools), key=lambda tool: tool.name))


def _stand_in(harness: Harness, name: str, calls: Iterable[ToolCall]) -> ToolSpec | None:
    """Return the stand-in of a tool, None if there is none or no call has its required arguments.

    Calls without the required arguments show that another variant of the tool was offered.
    """
    tool = harness.tools.get(name)
    required = set(tool.parameters.get("required") or ()) if tool is not None else set()
    seen = [call.parsed() or {} for call in calls if call.name == name] if required else []
    return tool if not seen or any(required <= arguments.keys() for arguments in seen) else None


def _acts_in_text(messages: Iterable[Message], harness: str) -> bool:
    return any(
        message.role == "assistant" and bool(calls_in_text(message.content, harness)) for message in messages
    )


def infer_tool(name: str, calls: Iterable[ToolCall]) -> ToolSpec:
    """Return a tool's schema inferred from its calls: all properties with their types, none required."""
    types: dict[str, set[str]] = {}
    for call in calls:
        if call.name == name:
            for key, value in (call.parsed() or {}).items():
                types.setdefault(key, set()).update(_json_type(value))
    properties = {key: _property(types[key]) for key in sorted(types)}
    parameters = {"type": "object", "properties": properties}
    return ToolSpec(clean_schema_name(name), _DESCRIPTION, parameters, "inferred")


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
