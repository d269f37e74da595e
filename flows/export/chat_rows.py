"""Convert a context to a row of OpenAI chat messages.

The reader of chat rows gives the same messages and steps again. Beside `messages` and `tools` a row says what
the messages alone do not: the harness, what is known of the prompts (`fidelity`), the outcome.
"""

from typing import Any

from tracemill.records.message import Message, ToolSpec
from tracemill.records.trace import Context, Trace

_VERDICTS = {"resolved": True, "not_resolved": False}


def row_of_context(trace: Trace, context: Context) -> dict[str, Any]:
    """Return the row of a context; unknown fields are left out."""
    actions = {step.cut for step in context.steps}
    fidelity = context.fidelity
    row: dict[str, Any] = {
        "id": context_name(trace, context),
        "messages": [_message(m, place in actions) for place, m in enumerate(context.messages)],
        "tools": [wire_tool(tool) for tool in context.tools],
        "stand_in_tools": stand_in_tools(context),
        "model": sole_model(context),
        "harness": trace.harness,
        "harness_version": trace.harness_version,
        "fidelity": {"system": fidelity.system, "tools": fidelity.tools, "context": fidelity.context},
        "lost_from": context.lost_from or None,
        "approximate_from": context.approximate_from,
        "context_start": context.start,
        "parent_trace_id": trace.parent_trace_id,
        "repo": trace.repository,
        "instance_id": trace.instance_id,
        "resolved": _VERDICTS.get(trace.outcome),
        "licence": trace.licence,
    }
    return {key: value for key, value in row.items() if value not in (None, [])}


def context_name(trace: Trace, context: Context) -> str:
    """Return a name of a context that is valid as a file name."""
    return trace.trace_id if context.index == 0 else f"{trace.trace_id}.{context.index}"


def sole_model(context: Context) -> str | None:
    """Return the model of all steps, None if there are several or it is unknown."""
    models = {step.model for step in context.steps}
    return models.pop() if len(models) == 1 else None


def wire_tool(tool: ToolSpec) -> dict[str, Any]:
    """Return a tool as an entry of `tools`; its schema only if it was recorded."""
    wire = tool.to_wire()
    if tool.origin != "recorded":
        del wire["function"]["parameters"]
    return wire


def stand_in_tools(context: Context) -> list[str]:
    """Return the names of the tools whose schema the session does not record."""
    return [tool.name for tool in context.tools if tool.origin != "recorded"]


def _message(message: Message, is_step: bool) -> dict[str, Any]:
    """Return a message; an agent's message that is not a step is marked with `is_demo`."""
    wire = message.to_wire()
    if message.role in ("tool", "user"):
        wire |= {"name": message.name, "is_error": message.is_error, "error_kind": message.error_kind}
    elif message.role == "assistant":
        wire |= {"reasoning_content": message.reasoning, "is_demo": None if is_step else True}
    return {key: value for key, value in wire.items() if value is not None}
