"""Convert a context to a trajectory of ATIF 1.7 (https://harborframework.com/docs/trajectory-format).

A message is a step; results of calls are the observation of the step that called. A message of the agent
that was no action in this context is `is_copied_context`. Later contexts of a session continue the earlier
file. What ATIF has no field for stands in `extra`: arguments whose text the parsed object does not give,
whether a call failed, the call of a result that is far from it, and the number of messages.
"""

from contextlib import suppress
from typing import Any

import orjson

from tracemill.flows.export.chat_rows import context_name, sole_model, stand_in_tools, wire_tool
from tracemill.ingesters.atif.own_export import HOLDS_RESULTS, NO_VERSION, plain_arguments
from tracemill.records.message import Message, ToolCall
from tracemill.records.trace import Context, Step, Trace

SCHEMA_VERSION = "ATIF-v1.7"
_SOURCES = {"system": "system", "user": "user", "assistant": "agent"}


def trajectory_of_context(trace: Trace, context: Context, continued_in: str | None) -> dict[str, Any]:
    """Return the trajectory of a context; `continued_in` is the file of the session's next context."""
    fidelity = context.fidelity
    agent = {
        "name": trace.harness,
        "version": trace.harness_version or NO_VERSION,
        "model_name": sole_model(context),
        "tool_definitions": [wire_tool(tool) for tool in context.tools] or None,
    }
    extra = {
        "context_start": context.start,
        "fidelity": {"system": fidelity.system, "tools": fidelity.tools, "context": fidelity.context},
        "lost_from": context.lost_from or None,
        "approximate_from": context.approximate_from,
        "messages": len(context.messages),
        "stand_in_tools": stand_in_tools(context) or None,
        "outcome": trace.outcome,
        "repository": trace.repository,
        "instance_id": trace.instance_id,
        "parent_trace_id": trace.parent_trace_id,
        "parent_call_id": trace.parent_call_id,
        "licence": trace.licence,
    }
    return {
        "schema_version": SCHEMA_VERSION,
        "session_id": trace.trace_id,
        "trajectory_id": context_name(trace, context),
        "agent": _said(agent),
        "steps": _steps(context),
        "final_metrics": _final_metrics(context),
        **({"continued_trajectory_ref": continued_in} if continued_in else {}),
        "extra": _said(extra),
    }


def _steps(context: Context) -> list[dict[str, Any]]:
    """Return the messages as steps; a result far from its call is the observation of a system step."""
    actions = {step.cut: step for step in context.steps}
    steps: list[dict[str, Any]] = []
    for place, message in enumerate(context.messages):
        if message.role != "tool":
            steps.append({"step_id": len(steps) + 1, **_step(message, actions.get(place))})
            continue
        if not steps or (steps[-1]["source"] != "agent" and "observation" not in steps[-1]):
            holder = {"source": "system", "message": "", "extra": {HOLDS_RESULTS: True}}
            steps.append({"step_id": len(steps) + 1, **holder})
        called = {call["tool_call_id"] for call in steps[-1].get("tool_calls", ())}
        steps[-1].setdefault("observation", {"results": []})["results"].append(_result(message, called))
    return steps


def _step(message: Message, action: Step | None) -> dict[str, Any]:
    step: dict[str, Any] = {"source": _SOURCES[message.role], "message": message.content}
    step["extra"] = _result_facts(message, message.tool_call_id) or None
    if message.role != "assistant":
        return _said(step)
    step["reasoning_content"] = message.reasoning
    step["tool_calls"] = [_call(call) for call in message.tool_calls] or None
    if action is None:
        step["is_copied_context"] = True
    else:
        step |= {"timestamp": action.timestamp, "model_name": action.model}
        step["metrics"] = _metrics(action) or None
    return _said(step)


def _call(call: ToolCall) -> dict[str, Any]:
    """Return a call; its exact arguments are in `extra` if the parsed object does not give them again."""
    parsed = None
    with suppress(orjson.JSONDecodeError):  # as the file is read: no NaN, no half of an emoji
        parsed = orjson.loads(call.arguments)
    told = {"tool_call_id": call.id, "function_name": call.name}
    if isinstance(parsed, dict) and plain_arguments(parsed) == call.arguments:
        return {**told, "arguments": parsed}
    arguments = parsed if isinstance(parsed, dict) else {}
    return {**told, "arguments": arguments, "extra": {"arguments": call.arguments}}


def _result(message: Message, called: set[str]) -> dict[str, Any]:
    """Return a result, linked to its call if the same step makes the call."""
    call_id = message.tool_call_id
    joined = call_id in called
    extra = _result_facts(message, None if joined else call_id)
    told = {"source_call_id": call_id if joined else None, "content": message.content}
    return _said({**told, "extra": extra or None})


def _result_facts(message: Message, call_id: str | None) -> dict[str, Any]:
    failure = {"is_error": message.is_error, "error_kind": message.error_kind}
    return _said({"tool_call_id": call_id, "name": message.name, **failure})


def _metrics(step: Step) -> dict[str, Any]:
    usage = step.usage
    return _said(
        {
            "prompt_tokens": usage.prompt_tokens,
            "completion_tokens": usage.completion_tokens,
            "cached_tokens": usage.cached_tokens,
            "cost_usd": usage.cost_usd,
        }
    )


def _final_metrics(context: Context) -> dict[str, Any]:
    """Return the sums of the steps' metrics; a metric that no step has is left out."""
    names = ("prompt_tokens", "completion_tokens", "cached_tokens", "cost_usd")
    sums = {}
    for name in names:
        reported = [value for step in context.steps if (value := getattr(step.usage, name)) is not None]
        sums[f"total_{name}"] = sum(reported) if reported else None
    return _said({**sums, "total_steps": len(context.steps)})


def _said(fields: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in fields.items() if value is not None}
