"""Policies that need no model: the answer itself, and nothing."""

import importlib
import json
import traceback
from collections.abc import Sequence

from tracemill.environments.episodes.run_episode import Policy
from tracemill.environments.task import Task
from tracemill.records.errors import EnvironmentTaskError
from tracemill.records.message import Message, ToolCall, ToolSpec


def oracle(task: Task) -> Policy:
    """Return a policy that writes the original files back, one a turn, and says that it is done."""
    files = sorted(path for path in task.original.rglob("*") if path.is_file())

    def answer(messages: Sequence[Message], tools: Sequence[ToolSpec]) -> Message:
        done = sum(message.role == "assistant" for message in messages)
        openhands = any(tool.name == "execute_bash" for tool in tools)
        steps = 2 * len(files) if openhands else len(files)
        if done >= steps:
            return Message("assistant", "The feature works again.")
        path = files[done // 2 if openhands else done]
        inside = f"/repository/{path.relative_to(task.original).as_posix()}"
        text = path.read_text(encoding="utf-8")
        if not openhands:
            name, given = "Write", {"file_path": inside, "content": text}
        elif done % 2 == 0:
            name, given = "execute_bash", {"command": f"rm {inside}"}
        else:
            name, given = "str_replace_editor", {"command": "create", "path": inside, "file_text": text}
        return Message("assistant", "", (ToolCall(f"call_{done}", name, json.dumps(given)),))

    return answer


def nothing(task: Task) -> Policy:
    """Return a policy that says at once that it is done."""
    return lambda messages, tools: Message("assistant", "Done.")


def load_policy(name: str, task: Task) -> Policy:
    """Return the policy `oracle` or `nothing`, or the one that `module:function` builds for a task.

    Raises EnvironmentTaskError if there is none; the policy raises it where the function that it wraps fails
    or returns no message.
    """
    if name in ("oracle", "nothing"):
        return oracle(task) if name == "oracle" else nothing(task)
    module, colon, function = name.partition(":")
    if not (module and colon and function):
        raise EnvironmentTaskError(f"{name!r} is no policy", "oracle, nothing or module:function")
    try:
        build = getattr(importlib.import_module(module), function)
    except (ImportError, AttributeError) as error:
        raise EnvironmentTaskError(
            f"the policy {name} cannot be loaded ({error})",
            "module:function",
            "put the folder of the module on PYTHONPATH",
        ) from None
    try:
        made = build(task)
    except Exception as error:
        raise _failed(name, task, error) from error
    if not callable(made):
        raise EnvironmentTaskError(
            f"{name} gives no policy for {task.name}", "a function that takes a task and returns a policy"
        )

    def answer(messages: Sequence[Message], tools: Sequence[ToolSpec]) -> Message:
        try:
            said = made(messages, tools)
        except Exception as error:
            raise _failed(name, task, error) from error
        if not isinstance(said, Message):
            raise EnvironmentTaskError(
                f"the policy {name} answered with {type(said).__name__}", "a Message of the assistant"
            )
        return said

    return answer


def _failed(name: str, task: Task, error: Exception) -> EnvironmentTaskError:
    """Return the error of a policy with its type and place: its text may hold a prompt."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    place = f"{last.filename} line {last.lineno}"
    return EnvironmentTaskError(
        f"the policy {name} failed on {task.name}: {type(error).__name__}, {place}",
        "",
        "mend it; the same command goes on with the episodes that are missing",
    )
