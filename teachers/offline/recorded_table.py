"""Read tables of what several real models did at the same state.

One JSON object a line (also gzipped): `state_id`, `messages` in the OpenAI shape, `tools` (names, or objects
with a `name`), and `actions`: by model the `tool_calls` (`name` and `arguments`), the `text`, `usage` (`in`
and `out` tokens, `latency_s`) and `reward` (or `correct`) where known. Optional are `task_id`, `depth`,
`source`, `harness` and `cwd`.

A message's `content_ref` points into a JSON file beside the table whose name contains `prefix`: a key of an
object, or `file[i]` of a list of messages; the message's own content is appended. Where one tool takes one
text, an assistant text that a tool answers is a call of it.
"""

import json
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

from tracemill.harnesses.core.schema_builders import clean_tool_schema
from tracemill.harnesses.valid_messages import MessageBuilder
from tracemill.records.errors import TeacherError
from tracemill.records.identity import digest, extend_prompt, make_trace_id, prompt_root
from tracemill.records.message import Action, Message, ToolCall, ToolSpec
from tracemill.records.storage.text_lines import lines_of
from tracemill.teachers.core.question import Question
from tracemill.teachers.offline.recorded_values import (
    REWARDS,
    is_unrewarded,
    recorded_reward_value,
    recorded_usage_values,
)

PRESENTATION = "recorded-1"
_NAMELESS = "a model without a name"
_FAULTS = (ValueError, KeyError, TypeError, AttributeError, IndexError, ArithmeticError, RecursionError)


@dataclass(frozen=True, slots=True)
class RecordedAnswer:
    """Recorded action of one model at a state; tokens and seconds are 0 if unknown.

    `reward` is the table's own judgement of the action (`correct` is 1 or 0), None without one.
    """

    action: Action
    prompt_tokens: int = 0
    completion_tokens: int = 0
    latency_s: float = 0.0
    reward: float | None = None


@dataclass(frozen=True, slots=True)
class RecordedState:
    """A state with the answers of the models asked there.

    `task_id` groups states of one task, `depth` is the number of actions before it. `broken` has the models
    whose answer is unreadable, `unrewarded` those with an invalid reward and `unmeasured` those with an
    invalid usage, which are left out.
    """

    state_id: str
    task_id: str
    messages: tuple[Message, ...]
    tools: tuple[ToolSpec, ...]
    answers: Mapping[str, RecordedAnswer]
    depth: int = 0
    source: str = ""
    harness: str = ""
    cwd: str | None = None
    broken: tuple[str, ...] = field(default=())
    unrewarded: tuple[str, ...] = field(default=())
    unmeasured: tuple[str, ...] = field(default=())

    def question(self, redact: Callable[[Message], Message], redaction: str) -> Question:
        """Return the state as a question, redacted by rules of this version."""
        messages = tuple(map(redact, self.messages))
        prompt_id = prompt_root(self.tools, PRESENTATION)
        for message in messages:
            prompt_id = extend_prompt(prompt_id, message)
        trace_id = make_trace_id("recorded", self.state_id)
        step_id = f"{trace_id}:0:0"
        return Question(step_id, trace_id, messages, self.tools, prompt_id, PRESENTATION, redaction)


@dataclass(frozen=True, slots=True)
class BrokenRow:
    """An invalid line of a table, counted from 1, and the reason."""

    line: int
    why: str


def recorded_table_state_key(messages: Sequence[Message]) -> str:
    """Return a key of a state that does not depend on its presentation.

    System prompts, which may be stand-ins, and call ids are left out.
    """
    parts = list[str]()
    for message in messages:
        if message.role != "system":
            calls = [part for call in message.tool_calls for part in (call.name, call.arguments)]
            parts += [message.role, message.content, str(len(calls)), *calls]
    return digest("state", *parts)


def read_recorded(path: Path) -> list[RecordedState]:
    """Return the states of a table.

    Raises TeacherError if it cannot be read, or a row or an answer is invalid.
    """
    found: list[RecordedState] = []
    for number, row in enumerate(iter_recorded_table(path), 1):
        if isinstance(row, BrokenRow) or row.broken:
            why = row.why if isinstance(row, BrokenRow) else f"answer of {row.broken[0]}"
            raise TeacherError(
                f"{path.name}, line {number} is not a recorded state ({why})",
                "state_id, messages and actions",
                "see docs/configuration.md",
            )
        found.append(row)
    return found


def iter_recorded_table(path: Path) -> Iterator[RecordedState | BrokenRow]:
    """Yield the lines of a table as states or broken rows.

    Raises TeacherError if the file cannot be read to its end.
    """
    try:
        prefixes = _prefixes(path.parent)
        for number, line in enumerate(lines_of(path), 1):
            yield _row(line, number, prefixes)
    except (OSError, EOFError, zlib.error) as error:
        raise TeacherError(
            f"{path} cannot be read ({error})", "a table of recorded answers", "name another file"
        ) from None


def _row(line: bytes, number: int, prefixes: Mapping[str, str]) -> RecordedState | BrokenRow:
    try:
        row = _json_of(line)
    except UnicodeEncodeError:
        return BrokenRow(number, "half a surrogate pair")
    except (ValueError, RecursionError):
        return BrokenRow(number, "no JSON")
    if not isinstance(row, dict) or not row:
        return BrokenRow(number, "no object")
    missing = [name for name in ("state_id", "messages", "actions") if name not in row]
    if missing:
        return BrokenRow(number, f"no {missing[0]}")
    try:
        return _state(row, prefixes)
    except KeyError as error:
        return BrokenRow(number, f"{str(error)[:60]} is missing, or not in a prefix file beside the table")
    except _FAULTS as error:
        return BrokenRow(number, f"of another form ({str(error)[:60]})")


def _json_of(line: bytes) -> Any:
    """Return the value of a line.

    Python's parser accepts more than JSON has (NaN, infinity, lone surrogates): an action with such values
    beyond its reward and usage becomes None. Raises UnicodeEncodeError where other text has them, and
    ValueError for invalid JSON.
    """
    try:
        return orjson.loads(line)
    except ValueError:
        row = json.loads(line.decode("utf-8", "surrogatepass"))
    if not isinstance(row, dict) or not isinstance(row.get("actions"), dict):
        return row
    json.dumps(row | {"actions": list(row["actions"])}, ensure_ascii=False).encode()
    return row | {"actions": {model: _valid_action(given) for model, given in row["actions"].items()}}


def _valid_action(given: Any) -> Any:
    """Return an action as it is, None if its content is no JSON."""
    beside = (*REWARDS, "usage")
    done = {k: v for k, v in given.items() if k not in beside} if isinstance(given, dict) else given
    try:
        json.dumps(done, ensure_ascii=False, allow_nan=False).encode()
    except ValueError:
        return None
    return given


def _prefixes(folder: Path) -> dict[str, str]:
    """Return every text that a `content_ref` may point to."""
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


def _state(row: Mapping[str, Any], prefixes: Mapping[str, str]) -> RecordedState:
    answers, broken = dict[str, RecordedAnswer](), list[str]()
    for model, given in row["actions"].items():
        if not model.strip():
            broken.append(_NAMELESS)
            continue
        try:
            answers[model] = _answer(given)
        except _FAULTS:
            broken.append(model)
    tools = tuple(_tool(tool) for tool in row.get("tools") or ())
    builder = MessageBuilder()
    for message in _messages(row["messages"], prefixes, _only_text(tools, answers)):
        builder.add(message)
    builder.ready()
    spoken = sum(message.role == "assistant" for message in builder.out)
    depth = row.get("depth")
    return RecordedState(
        str(row["state_id"]),
        str(row.get("task_id") or ""),
        tuple(builder.out),
        tools,
        answers,
        depth if isinstance(depth, int) else spoken,
        str(row.get("source") or ""),
        str(row.get("harness") or ""),
        row.get("cwd") if isinstance(row.get("cwd"), str) else None,
        tuple(broken),
        tuple(model for model in answers if is_unrewarded(row["actions"][model])),
        tuple(model for model in answers if recorded_usage_values(row["actions"][model]) is None),
    )


def _only_text(tools: Sequence[ToolSpec], answers: Mapping[str, RecordedAnswer]) -> tuple[str, str] | None:
    """Return the only tool and its only argument, a text; None if there are several."""
    if len(tools) != 1:
        return None
    calls = [call.parsed() or {} for answer in answers.values() for call in answer.action.tool_calls]
    names = {name for given in calls for name in given}
    texts = all(isinstance(value, str) for given in calls for value in given.values())
    return (tools[0].name, names.pop()) if len(names) == 1 and texts else None


def _messages(
    given: Sequence[Mapping[str, Any]], prefixes: Mapping[str, str], only: tuple[str, str] | None
) -> Iterator[Message]:
    made, unanswered = 0, list[str]()
    for at, each in enumerate(given):
        reference = each.get("content_ref")
        content = (prefixes[reference] if reference else "") + _content(each.get("content"))
        calls = tuple(_call(call, made + number) for number, call in enumerate(each.get("tool_calls") or ()))
        answered_next = at + 1 < len(given) and given[at + 1]["role"] == "tool"
        if only and not calls and each["role"] == "assistant" and answered_next:
            calls, content = (_call({"name": only[0], "arguments": {only[1]: content}}, made),), ""
        made += len(calls)
        unanswered += [call.id for call in calls]
        answered = None
        if each["role"] == "tool":
            answered = each.get("tool_call_id") or (unanswered.pop(0) if unanswered else None)
        yield Message(each["role"], content, calls, answered)


def _content(given: Any) -> str:
    """Return the text of a content, or of its parts."""
    if isinstance(given, list):
        return "\n".join(str(part.get("text") or "") for part in given)
    return str(given or "")


def _call(call: Mapping[str, Any], number: int) -> ToolCall:
    given = call.get("function") or call
    arguments = given.get("arguments")
    text = arguments if isinstance(arguments, str) else orjson.dumps(arguments or {}).decode()
    return ToolCall(str(call.get("id") or f"c{number}"), str(given["name"]), text)


def _tool(tool: Any) -> ToolSpec:
    if isinstance(tool, str):
        return clean_tool_schema(ToolSpec(tool, "", {"type": "object"}, "inferred"))
    given = tool.get("function") or tool
    schema = given.get("parameters")
    spec = ToolSpec(
        str(given["name"]),
        str(given.get("description") or ""),
        schema or {"type": "object"},
        "recorded" if schema else "inferred",
    )
    return clean_tool_schema(spec)


def _answer(given: Mapping[str, Any]) -> RecordedAnswer:
    calls = tuple(_call(call, at) for at, call in enumerate(given.get("tool_calls") or ()))
    prompt, completion, latency_s = recorded_usage_values(given) or (0, 0, 0.0)
    action = Action(str(given.get("text") or ""), calls)
    return RecordedAnswer(action, prompt, completion, latency_s, recorded_reward_value(given))
