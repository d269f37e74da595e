"""Keys that are equal for equal states of any session."""

import json
from typing import Any

from tracemill.records.identity import canonical_json, digest
from tracemill.records.message import Message
from tracemill.records.trace import Trace


def state_keys(trace: Trace) -> dict[str, str]:
    """Return a hash of the messages before each step, by step id; a context costs O(T).

    Ids of calls are left out: copies and forks of a session, and runs that took the same actions, have equal
    keys until they diverge.
    """
    keys: dict[str, str] = {}
    for context in trace.contexts:
        key, done = digest("state"), 0
        for step in context.steps:
            for message in context.messages[done : step.cut]:
                key = digest(key, message.role, message.content, *_calls(message))
            done = step.cut
            keys[f"{trace.trace_id}:{context.index}:{step.index}"] = key
    return keys


def _calls(message: Message) -> list[str]:
    return [part for call in message.tool_calls for part in (call.name, _normal(call.arguments))]


def _normal(arguments: str) -> str:
    try:
        value: Any = json.loads(arguments)
    except (ValueError, RecursionError):
        return arguments
    return canonical_json(value)
