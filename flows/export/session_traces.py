"""Convert a context to lines of the Hub's Session Trace Simple Format (STS).

Source: https://huggingface.co/docs/hub/session-traces-format. The Hub shows such files in its trace viewer.
What its messages have no place for stands in the header, which may hold anything: tools, what is known of the
prompts, places of answers that are no step (`copied`), and of results that say whether they failed
(`results`: place, failure, its kind). The reader of the format gives the same messages and steps again.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from tracemill.flows.export.chat_rows import context_name, wire_tool
from tracemill.records.message import Message
from tracemill.records.trace import Context, Step, Trace


def lines_of_context(trace: Trace, context: Context) -> Iterator[dict[str, Any]]:
    """Yield the header and the messages of a context."""
    actions = {step.cut: step for step in context.steps}
    fidelity, placed = context.fidelity, list(enumerate(context.messages))
    told = [
        (place, m.is_error, m.error_kind) for place, m in placed if m.is_error is not None or m.error_kind
    ]
    head = {
        "type": "session",
        "harness": trace.harness,
        "id": context_name(trace, context),
        "harness_version": trace.harness_version,
        "trace_id": trace.trace_id,
        "context_start": context.start,
        "fidelity": {"system": fidelity.system, "tools": fidelity.tools, "context": fidelity.context},
        "lost_from": context.lost_from or None,
        "approximate_from": context.approximate_from,
        "copied": [place for place, m in placed if m.role == "assistant" and place not in actions] or None,
        "results": [list(each if each[2] else each[:2]) for each in told],
        "tools": [wire_tool(tool) for tool in context.tools] or None,
        "licence": trace.licence,
    }
    yield {key: value for key, value in head.items() if value is not None}
    for place, message in enumerate(context.messages):
        yield {"type": "message", "message": _message(message, actions.get(place))}


def _message(message: Message, action: Step | None) -> dict[str, Any]:
    calls = [
        {"id": call.id, "function": {"name": call.name, "arguments": call.arguments}}
        for call in message.tool_calls
    ]
    told = {
        "role": message.role,
        "content": message.content,
        "reasoningContent": message.reasoning,
        "toolCalls": calls or None,
        "toolCallId": message.tool_call_id or None,
        "timestamp": _milliseconds(action.timestamp) if action else None,
        "model": action.model if action else None,
    }
    return {key: value for key, value in told.items() if value is not None}


def _milliseconds(timestamp: str | None) -> int | None:
    """Return a time as milliseconds since 1970, None if it is not ISO 8601."""
    try:
        return int(datetime.fromisoformat(timestamp).timestamp() * 1000) if timestamp else None
    except ValueError:
        return None
