"""Terminus 2: an agent of Terminal-Bench that types keys into one terminal.

An answer is a JSON object with `commands` (`keystrokes`, `duration`) and `task_complete`; some trajectories
hold the same as calls. Original wording, based on recorded runs and the public documentation
(https://harborframework.com/docs/agents/terminus-2).
"""

import json
from typing import Any

from tracemill.harnesses.core.vocabulary import Harness, Operation, TextCommands, ToolRule
from tracemill.records.message import ToolCall

_SYSTEM = """\
You are an engineer who works in one terminal of a Linux machine. You get a task and what the terminal \
shows, and you answer in the format that the task asks for until the work is done.

(This prompt is a stand-in: what the run was really given was not recorded.)"""


def _answers(text: str) -> list[slice]:
    """Return the position of the one JSON object with the keys to type."""
    start, end = text.find("{"), text.rfind("}") + 1
    return [slice(start, end)] if _read(text[start:end]) is not None else []


def _read(text: str) -> dict[str, Any] | None:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) and isinstance(value.get("commands"), list) else None


def _keys(text: str) -> ToolCall:
    """Parse the answer as a call: keys to type, or the end of the task if there are none."""
    answer = _read(text) or {}
    typed = [str(each.get("keystrokes", "")) for each in answer.get("commands", ()) if isinstance(each, dict)]
    if not any(typed) and answer.get("task_complete"):
        return ToolCall("", "mark_task_complete", "{}")
    return ToolCall("", "bash_command", json.dumps({"keystrokes": "".join(typed)}, ensure_ascii=False))


TERMINUS_2 = Harness(
    "terminus_2",
    "2.x",
    _SYSTEM,
    {},
    (),
    {
        "bash_command": ToolRule(Operation.RUN, ("keystrokes",), "shell", ignored=("duration",)),
        "mark_task_complete": ToolRule(Operation.FINISH),
    },
    text_actions=True,
    text_system=_SYSTEM,
    text_ends_run=False,
    text_commands=TextCommands(_answers, _keys),
    results_as_user=True,
)
"""Both ways of acting."""
