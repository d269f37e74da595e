"""Agents without a model: wrong, plausible and right, for `tracemill env run --policy`."""

import itertools
import json
import re
from collections.abc import Callable, Sequence

from tracemill.environments.episodes.run_episode import Policy
from tracemill.environments.task import Task
from tracemill.records.message import Message, ToolCall, ToolSpec

DELETED = "raise NotImplementedError"
FAULTS = (
    (" + ", " - "),
    (" < ", " <= "),
    (" - ", " + "),
    (" // ", " / "),
    (" not in ", " in "),
    (" == ", " != "),
)
"""What a plausible answer has otherwise than the original, the first of them that it holds."""


def right(task: Task) -> Policy:
    """Look around, then write the original files back."""
    return _writes(task, lambda body: body)


def plausible(task: Task) -> Policy:
    """Write the original with one fault in each function."""
    return _writes(task, _with_a_fault)


def wrong(task: Task) -> Policy:
    """Let every function return nothing."""
    return _writes(task, lambda body: re.match(r"\s*", body)[0] + "return None\n")  # type: ignore[index]


def _with_a_fault(body: str) -> str:
    for sign, other in FAULTS:
        if sign in body:
            return body.replace(sign, other, 1)
    return re.sub(r"return (.+)", r"return \1 or None", body.replace("1", "2", 1), count=1)


def _writes(task: Task, change: Callable[[str], str]) -> Policy:
    """Return a policy that looks around, writes each file with changed bodies, and says that it is done."""
    texts = {
        file: _changed(task, file, change)
        for file in sorted({name.partition("::")[0] for name in task.deleted})
    }
    calls = [("Bash", {"command": "ls -R; grep -rn NotImplementedError ."})]
    calls += [
        ("Write", {"file_path": f"/repository/{file}", "content": text}) for file, text in texts.items()
    ]

    def answer(messages: Sequence[Message], tools: Sequence[ToolSpec]) -> Message:
        done = sum(message.role == "assistant" for message in messages)
        if done == len(calls):
            return Message("assistant", "The feature works again.")
        name, arguments = calls[done]
        return Message("assistant", "", (ToolCall(f"call_{done}", name, json.dumps(arguments)),))

    return answer


def _changed(task: Task, file: str, change: Callable[[str], str]) -> str:
    """Return the original of a file, other bodies in place of those that the task deleted."""
    broken = (task.repository / file).read_text(encoding="utf-8").splitlines(keepends=True)
    original = (task.original / file).read_text(encoding="utf-8").splitlines(keepends=True)
    found, at = [], 0
    for number, line in enumerate(broken):
        if line.strip() != DELETED:
            found.append(line)
            at += 1
            continue
        kept = itertools.takewhile(lambda each: each.strip() != DELETED, broken[number + 1 :])
        behind = [*itertools.islice(kept, 3)]
        end = at
        while end < len(original) and (not behind or original[end : end + len(behind)] != behind):
            end += 1
        found.append(change("".join(original[at:end])))
        at = end
    return "".join(found)
