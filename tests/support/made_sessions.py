"""Sessions of one context, made of calls and their results."""

import json
from typing import Any

from tracemill.records.message import ErrorKind, Message, ToolCall
from tracemill.records.trace import Context, Step, Trace

Turn = tuple[str, dict[str, Any], str, str | None]


def ok(name: str, result: str = "ok", /, **arguments: Any) -> Turn:
    """Return a call that succeeded."""
    return (name, arguments, result, None)


def bad(name: str, result: str, /, kind: str = ErrorKind.TOOL_ERROR, **arguments: Any) -> Turn:
    """Return a call that failed."""
    return (name, arguments, result, kind)


def session(*steps: Turn | list[Turn] | Message, harness: str = "claude_code") -> Trace:
    """Return a trace of one context; a list of turns is one step with parallel calls."""
    messages: list[Message] = [Message("user", "fix src/app/main.py in /repo")]
    cuts: list[int] = []
    for number, step in enumerate(steps):
        if isinstance(step, Message):
            messages.append(step)
            continue
        turns = step if isinstance(step, list) else [step]
        cuts.append(len(messages))
        calls = [ToolCall(f"c{number}-{i}", turn[0], json.dumps(turn[1])) for i, turn in enumerate(turns)]
        messages.append(Message("assistant", f"step {number}", tuple(calls)))
        for call, (_, _, result, kind) in zip(calls, turns, strict=True):
            messages.append(Message("tool", result, (), call.id, call.name, bool(kind), kind))
    context = Context(
        0, tuple(messages), tuple(Step(i, cut, "m", "anthropic", cwd="/repo") for i, cut in enumerate(cuts))
    )
    return Trace("t", "claude_code", "d", harness, (context,))
