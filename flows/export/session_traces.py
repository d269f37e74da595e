"""Convert a context to lines of the Hub's Session Trace Simple Format (STS).

Source: https://huggingface.co/docs/hub/session-traces-format. The Hub shows such files in its trace viewer.
What its messages have no place for stands in the header, which may hold anything: tools, what is known of the
prompts, the outcome, the number of `messages`, places of answers that are no step (`copied`), and what is
known of results (`results`: id of the call, failure, its kind, name of the tool; the place of a result whose
call's id is not its own). The reader of the format gives the same messages and steps again.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

from tracemill.flows.export.chat_rows import context_name, stand_in_tools, wire_tool
from tracemill.records.message import Message
from tracemill.records.trace import Context, Step, Trace


def lines_of_context(trace: Trace, context: Context) -> Iterator[dict[str, Any]]:
    """Yield the header and the messages of a context."""
    actions = {step.cut: step for step in context.steps}
    fidelity, placed = context.fidelity, list(enumerate(context.messages))
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
        "messages": len(context.messages),
        "results": _results(context.messages),
        "tools": [wire_tool(tool) for tool in context.tools] or None,
        "stand_in_tools": stand_in_tools(context) or None,
        "outcome": trace.outcome,
        "repository": trace.repository,
        "instance_id": trace.instance_id,
        "licence": trace.licence,
    }
    yield {key: value for key, value in head.items() if value is not None}
    for place, message in enumerate(context.messages):
        yield {"type": "message", "message": _message(message, actions.get(place))}


def _results(messages: Sequence[Message]) -> list[list[Any]]:
    """Return what is known of each result beside its text, under its call's id or its place."""
    ids = Counter(message.tool_call_id for message in messages if message.role == "tool")
    entries = []
    for place, message in enumerate(messages):
        own = message.role == "tool" and message.tool_call_id and ids[message.tool_call_id] == 1
        facts = [message.is_error, message.error_kind, message.name]
        while facts and facts[-1] is None:
            facts.pop()
        if facts:
            entries.append([message.tool_call_id if own else place, *facts])
    return entries


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
