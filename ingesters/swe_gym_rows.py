"""One row of SWE-Gym and its relatives, made a Trace.

Shapes told apart by their fields:
- SWE-Gym sampled and SFT rows, SWE-smith: `messages` (a list, or JSON text of one), each a chat message;
- nebius SWE-rebench-openhands: `trajectory` of chat messages;
- nebius SWE-agent: `trajectory` of {role: system | user | ai, text, system_prompt}.
A row is the last prompt and its response, so the prompt of the message at k is the messages before it.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from harnesses.harness import harness_for
from ingesters.instances import base_instance, outcome_of, reported_outcome, repository_of
from ingesters.reading import error_kind_of
from ingesters.wire import all_calls, calls_of, reasoning_of, specs_of, text_of
from records.families import family_of
from records.identity import digest, make_trace_id
from records.message import ErrorKind, Message
from records.skip import IngestReport
from records.state import Context, Fidelity, Outcome, Step, Trace

_RUN_MODEL = re.compile(r"^(?P<model>.+?)_maxiter_\d+")
_EXIT = re.compile(r"\[(?:The command completed|Command finished) with exit code (-?\d+)")
_SHELL = re.compile(r"\n\(Open file: [^\n]*\)\n\(Current directory: [^\n]*\)\n")
_REFUSED_EDIT = "Your proposed edit has introduced new syntax error"
_SWE_AGENT_KEYS = frozenset({"traj_id", "agent", "message_type"})
_ROLES: Mapping[str, str] = {"ai": "assistant", "developer": "system", "function": "tool"}
_RESULT_STARTS = ("OBSERVATION:\n", "EXECUTION RESULT of ", _REFUSED_EDIT)
_ID_KEYS = ("instance_id", "run_id", "trajectory_id", "traj_id", "model_name")
_TAIL = 800


@dataclass(frozen=True, slots=True)
class _Rows:
    """The raw messages of a row, and the harness they come from."""

    messages: list[Any]
    harness: str


def trace_of_row(row: Any, origin: str, report: IngestReport) -> Trace | None:
    """The trace of a row; None, and counted by reason in `report.skipped`, where it is of no known shape."""
    if not isinstance(row, Mapping):
        report.skipped["row is no object"] += 1
        return None
    raw = _raw_messages(row, report)
    if raw is None:
        return None
    messages = _messages(raw, report)
    model = _model(row)
    steps = _steps(messages, model)
    if not steps:
        report.skipped["row without a step"] += 1
        return None
    tools = specs_of(_decoded(row.get("tools")), all_calls(messages), harness_for(raw.harness))
    context = Context(0, tuple(messages), steps, "start", tools, _fidelity(messages, tools, steps))
    instance = _text(row.get("instance_id"))
    return Trace(
        trace_id=make_trace_id("swe_gym", *_native_ids(row, messages)),
        source="swe_gym",
        dialect="swe_gym",
        harness=raw.harness,
        contexts=(context,),
        repository=_text(row.get("repo")) or repository_of(instance),
        instance_id=base_instance(instance),
        outcome=_outcome(row),
        origin=origin,
    )


def _raw_messages(row: Mapping[str, Any], report: IngestReport) -> _Rows | None:
    """The messages of a row by its shape; None, and counted, where it has none."""
    key = next((k for k in ("messages", "trajectory") if row.get(k) is not None), None)
    if key is None:
        report.skipped["row without messages or trajectory"] += 1
        return None
    listed = _decoded(row[key])
    if not isinstance(listed, list) or not listed:
        report.skipped["messages are no list of messages"] += 1
        return None
    first = next((m for m in listed if isinstance(m, Mapping)), {})
    if "role" not in first:
        report.skipped["messages have no role"] += 1
        return None
    text_only = any(isinstance(m, Mapping) and m.get("role") == "ai" for m in listed)
    marked = bool(_SWE_AGENT_KEYS & (row.keys() | first.keys()))
    return _Rows(listed, "swe_agent" if text_only or marked else "openhands")


def _messages(raw: _Rows, report: IngestReport) -> list[Message]:
    """The messages in order; one of no known role is counted and left out."""
    found: list[Message] = []
    pending: list[str] = []
    for place, item in enumerate(raw.messages):
        message = _message(item, place, pending) if isinstance(item, Mapping) else None
        if message is None:
            report.skipped["message of no known role"] += 1
            continue
        report.records[message.role] += 1
        if message.role == "assistant":
            pending = [call.id for call in message.tool_calls]
        report.tool_errors += message.is_error is True
        found.append(message)
    return found


def _message(item: Mapping[str, Any], place: int, pending: list[str]) -> Message | None:
    """One message; `pending` are the ids of the calls still open, in call order."""
    role = item.get("role")
    role = _ROLES.get(role, role) if isinstance(role, str) else None
    text = text_of(item.get("content")) or text_of(item.get("text")) or ""
    if role == "system":
        return Message("system", text or text_of(item.get("system_prompt")))
    if role == "assistant":
        return Message("assistant", text, calls_of(item, f"call-{place}"), reasoning=reasoning_of(item))
    if role == "tool":
        call_id = _answered(item, pending)
        is_error, kind = text_error(text)
        return Message("tool", text, (), call_id, _text(item.get("name")), is_error, kind)
    if role == "user":
        is_error, kind = text_error(text) if _is_observation(text) else (None, None)
        return Message("user", text, is_error=is_error, error_kind=kind)
    return None


def text_error(text: str) -> tuple[bool | None, ErrorKind | None]:
    """Whether a result's text says that it failed: True, False (exit code 0), or None where it is silent."""
    kind = error_kind_of(text, None)
    if kind is None and text.startswith(_REFUSED_EDIT):
        kind = ErrorKind.TOOL_ERROR
    if kind is not None:
        return True, kind
    codes = _EXIT.findall(text[-_TAIL:])
    return (False, None) if codes and codes[-1] == "0" else (None, None)


def _is_observation(text: str) -> bool:
    """Whether a user text is what a tool gave back, in harnesses without tool messages."""
    return text.startswith(_RESULT_STARTS) or bool(_SHELL.search(text))


def _answered(item: Mapping[str, Any], pending: list[str]) -> str:
    """The call a result answers: the one it names, else the first that is still open."""
    listed = item.get("tool_call_ids")
    named = item.get("tool_call_id") or (listed[0] if isinstance(listed, list) and listed else None)
    call_id = named if isinstance(named, str) else (pending[0] if pending else "")
    if call_id in pending:
        pending.remove(call_id)
    return call_id


def _steps(messages: list[Message], model: str | None) -> tuple[Step, ...]:
    cuts = [place for place, message in enumerate(messages) if message.role == "assistant"]
    family = family_of(model)
    return tuple(Step(index, cut, model, family) for index, cut in enumerate(cuts))


def _fidelity(messages: list[Message], tools: Any, steps: tuple[Step, ...]) -> Fidelity:
    asked = any(message.role == "user" for message in messages[: steps[0].cut])
    return Fidelity(
        system="recorded" if messages[0].role == "system" and messages[0].content else "absent",
        tools="recorded" if any(tool.origin == "recorded" for tool in tools) else "absent",
        context="complete" if asked else "lost",
    )


def _model(row: Mapping[str, Any]) -> str | None:
    """The model: its own column, else the start of the run id."""
    for key in ("model", "model_name"):
        if _text(row.get(key)):
            return _text(row[key])
    found = _RUN_MODEL.match(_text(row.get("run_id")) or "")
    return found.group("model") if found else None


def _outcome(row: Mapping[str, Any]) -> Outcome:
    """The verdict: `resolved`, `target` (nebius), or the report of the test run."""
    for key in ("resolved", "target"):
        outcome = outcome_of(row.get(key))
        if outcome != "unknown":
            return outcome
    return reported_outcome(_decoded(row.get("test_result")))


def _native_ids(row: Mapping[str, Any], messages: list[Message]) -> tuple[str, ...]:
    """The ids a row gives, and a digest of what was said: sets reuse ids for several samples."""
    said = digest(*(part for m in messages for part in (m.role, m.content, *_arguments(m))))
    return (*(_text(row.get(key)) or "" for key in _ID_KEYS), said)


def _arguments(message: Message) -> Iterator[str]:
    return (call.arguments for call in message.tool_calls)


def _decoded(value: Any) -> Any:
    """A value that some sets store as JSON text."""
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except ValueError:
        return None


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None
