"""Tables of what several real models did at the same state, as questions and their answers.

One JSON object a line (also gzipped): `state_id`, `messages` in the OpenAI shape, `tools` (names, or objects
with a `name`), and `actions`: by model the `tool_calls` (`name` and `arguments`), the `text`, and `usage`
(`in` and `out` tokens, `latency_s`) where it is known. A `content_ref` of a message points into a JSON file
beside the table whose name holds `prefix`: a key of an object, or `file[i]` of a list of messages; the
message's own content comes behind it.
"""

import gzip
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from harnesses.valid_messages import Builder
from records.errors import TeacherError
from records.identity import digest, extend_prompt, make_trace_id, prompt_root
from records.message import Action, Message, ToolCall, ToolSpec
from teachers.question import Question

PRESENTATION = "recorded-1"


@dataclass(frozen=True, slots=True)
class RecordedAnswer:
    """What one model did at a state. Tokens and seconds are 0 where the table does not say."""

    action: Action
    prompt_tokens: int = 0
    completion_tokens: int = 0
    latency_s: float = 0.0


@dataclass(frozen=True, slots=True)
class RecordedState:
    """A state with the answers of the models that were asked there; `task_id` groups states of one task."""

    state_id: str
    task_id: str
    messages: tuple[Message, ...]
    tools: tuple[ToolSpec, ...]
    answers: Mapping[str, RecordedAnswer]

    def question(self, redact: Callable[[Message], Message], redaction: str) -> Question:
        """The state as a question, redacted by rules of this version."""
        messages = tuple(map(redact, self.messages))
        prompt_id = prompt_root(self.tools, PRESENTATION)
        for message in messages:
            prompt_id = extend_prompt(prompt_id, message)
        trace_id = make_trace_id("recorded", self.state_id)
        step_id = f"{trace_id}:0:0"
        return Question(step_id, trace_id, messages, self.tools, prompt_id, PRESENTATION, redaction)


def state_key(messages: Sequence[Message]) -> str:
    """What identifies a state whoever presents it: all that was said but for system prompts, which a
    harness may put a stand-in for, and without ids of calls."""
    parts = list[str]()
    for message in messages:
        if message.role != "system":
            calls = [part for call in message.tool_calls for part in (call.name, call.arguments)]
            parts += [message.role, message.content, str(len(calls)), *calls]
    return digest("state", *parts)


def read_recorded(path: Path) -> list[RecordedState]:
    """The states of a table. Raises TeacherError where it cannot be read, or a row is none."""
    try:
        prefixes = _prefixes(path.parent)
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as lines:
            return [_state(line, number, path, prefixes) for number, line in enumerate(lines, 1)]
    except (OSError, EOFError) as error:
        raise TeacherError(
            f"{path} cannot be read ({error})", "a table of recorded answers", "correct `path`"
        ) from None


def _prefixes(folder: Path) -> dict[str, str]:
    """Every text a `content_ref` may point to."""
    found: dict[str, str] = {}
    for path in sorted(folder.glob("*prefix*.json")):
        try:
            value = json.loads(path.read_text(encoding="utf-8"))
        except ValueError:
            continue
        if isinstance(value, dict):
            found |= {str(key): str(text) for key, text in value.items()}
        elif isinstance(value, list):
            found |= {f"{path.stem}[{at}]": _text(each) for at, each in enumerate(value)}
    return found


def _text(value: object) -> str:
    return str(value.get("content") or "") if isinstance(value, dict) else str(value)


def _state(line: bytes, number: int, path: Path, prefixes: Mapping[str, str]) -> RecordedState:
    try:
        row = orjson.loads(line)
        builder = Builder()
        for message in _messages(row["messages"], prefixes):
            builder.add(message)
        builder.ready()
        answers = {str(model): _answer(given) for model, given in row["actions"].items()}
        tools = tuple(_tool(tool) for tool in row.get("tools") or ())
        return RecordedState(
            str(row["state_id"]), str(row.get("task_id", "")), tuple(builder.out), tools, answers
        )
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise TeacherError(
            f"{path.name}, line {number} is no recorded state ({type(error).__name__})",
            "state_id, messages and actions",
            "see docs/configuration.md",
        ) from None


def _messages(given: Sequence[Mapping[str, Any]], prefixes: Mapping[str, str]) -> Iterator[Message]:
    made, waiting = 0, list[str]()
    for each in given:
        reference = each.get("content_ref")
        content = (prefixes[reference] if reference else "") + (each.get("content") or "")
        calls = tuple(_call(call, made + at) for at, call in enumerate(each.get("tool_calls") or ()))
        made += len(calls)
        waiting += [call.id for call in calls]
        answered = None
        if each["role"] == "tool":
            answered = each.get("tool_call_id") or (waiting.pop(0) if waiting else None)
        yield Message(each["role"], content, calls, answered)


def _call(call: Mapping[str, Any], number: int) -> ToolCall:
    given = call.get("function") or call
    arguments = given.get("arguments")
    text = arguments if isinstance(arguments, str) else orjson.dumps(arguments or {}).decode()
    return ToolCall(str(call.get("id") or f"c{number}"), str(given["name"]), text)


def _tool(tool: Any) -> ToolSpec:
    if isinstance(tool, str):
        return ToolSpec(tool, "", {"type": "object"}, "inferred")
    given = tool.get("function") or tool
    schema = given.get("parameters")
    return ToolSpec(
        str(given["name"]),
        str(given.get("description") or ""),
        schema or {"type": "object"},
        "recorded" if schema else "inferred",
    )


def _answer(given: Mapping[str, Any]) -> RecordedAnswer:
    calls = tuple(_call(call, at) for at, call in enumerate(given.get("tool_calls") or ()))
    usage = given.get("usage") or {}
    return RecordedAnswer(
        Action(str(given.get("text") or ""), calls),
        int(usage.get("in") or 0),
        int(usage.get("out") or 0),
        float(usage.get("latency_s") or 0.0),
    )
