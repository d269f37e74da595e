"""Runs of one task, made of turns, to be compared with each other."""

import json
from typing import Any

from tracemill.records.message import Message, ToolCall
from tracemill.records.trace import Context, Outcome, Step, Trace

Turn = tuple[str, str, dict[str, Any], str]  # what is said, the tool, its arguments, what came back


def bash(command: str, back: str = "ok", said: str = "") -> Turn:
    return said, "execute_bash", {"command": command}, back


def view(path: str, back: str = "text") -> Turn:
    return "", "str_replace_editor", {"command": "view", "path": path}, back


def run(name: str, outcome: Outcome, *turns: Turn, task: str = "Fix it.", **changes: Any) -> Trace:
    messages = [Message("system", f"You are run {name}."), Message("user", task)]
    steps: list[Step] = []
    for said, tool, arguments, back in turns:
        steps.append(Step(len(steps), len(messages), "model-x", "x"))
        call = ToolCall(f"{name}-{len(steps)}", tool, json.dumps(arguments))
        messages.append(Message("assistant", said, (call,)))
        messages.append(Message("tool", back, tool_call_id=call.id, name=tool))
    context = Context(0, tuple(messages), tuple(steps), **changes)
    return Trace(
        f"openhands-{name}",
        "openhands",
        "d",
        "openhands",
        (context,),
        instance_id="o__r-1",
        repository="o/r",
        licence="MIT",
        outcome=outcome,
    )


LOOK = bash("ls", "main.py")


GOOD = run("a", "resolved", LOOK, view("/r/main.py"), bash("pytest"))


BAD = run("b", "not_resolved", LOOK, bash("rm -rf /r/build"), bash("pytest"))
