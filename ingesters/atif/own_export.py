"""Read a context that `tracemill export --format atif` wrote: every message as it was, in its place.

Such a trajectory says in `extra` how many messages it holds. One with another number was changed since: all
of its states are `lost`.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, get_args

from tracemill.ingesters.atif.steps import step_metadata, step_results
from tracemill.ingesters.common.flags import CHANGED_EXPORT
from tracemill.ingesters.common.openai_messages import as_mapping, first_text
from tracemill.records.ingest_report import IngestReport
from tracemill.records.message import ErrorKind, Message, ToolCall
from tracemill.records.trace import Context, ContextStart, Fidelity, Outcome, Step

HOLDS_RESULTS = "holds_results"
"""Key of `extra` of a step that is no message: it has a place for results that are far from their calls."""
NO_VERSION = "unknown"
"""Version of the agent where none is known: the format requires one."""
_KINDS = frozenset(kind.value for kind in ErrorKind)
_CONTEXTS = ("complete", "approximate", "lost")
_RECORDED = ("recorded", "absent")
_ROLES: Mapping[str, Any] = {"system": "system", "user": "user", "agent": "assistant"}


def is_own_export(run: Mapping[str, Any]) -> bool:
    """Return whether tracemill wrote a trajectory: `extra` tells start, fidelity and number of messages."""
    extra = as_mapping(run.get("extra"))
    told = as_mapping(extra.get("fidelity"))
    return (
        type(extra.get("messages")) is int
        and extra.get("context_start") in get_args(ContextStart)
        and told.get("context") in _CONTEXTS
        and told.get("system") in _RECORDED
        and told.get("tools") in _RECORDED
    )


def own_context(run: Mapping[str, Any], listed: Sequence[Any], report: IngestReport) -> Context | None:
    """Return the context of a trajectory that tracemill wrote, without its tools; None without a step."""
    extra, agent = as_mapping(run.get("extra")), as_mapping(run.get("agent"))
    messages: list[Message] = []
    steps: list[Step] = []
    for step in listed:
        if step["source"] == "agent" and not step.get("is_copied_context"):
            steps.append(step_metadata(step, agent).step(len(steps), len(messages)))
        messages.extend(_messages_of(step))
    if not steps:
        return None
    report.tool_errors += sum(message.is_error is True for message in messages)
    changed = len(messages) != extra["messages"]
    if changed:
        report.flags[CHANGED_EXPORT] += 1
    told = extra["fidelity"]
    return Context(
        0,
        tuple(messages),
        tuple(steps),
        extra["context_start"],
        fidelity=Fidelity(told["system"], told["tools"], "lost" if changed else told["context"]),
        lost_from=0 if changed else _index(extra.get("lost_from")) or 0,
        approximate_from=_index(extra.get("approximate_from")),
    )


def own_outcome(run: Mapping[str, Any]) -> Outcome:
    """Return the outcome that the trajectory of an export tells."""
    told = as_mapping(run.get("extra")).get("outcome")
    known: dict[str, Outcome] = {outcome: outcome for outcome in get_args(Outcome)}
    return known.get(str(told), "unknown")


def plain_arguments(parsed: Any) -> str:
    """Return the text that arguments are read as where `extra` does not hold it."""
    return json.dumps(parsed, separators=(",", ":"), ensure_ascii=False)


def _messages_of(step: Mapping[str, Any]) -> Iterator[Message]:
    """Yield the message of a step, unless it only holds results, then the results of its observation."""
    extra = as_mapping(step.get("extra"))
    if extra.get(HOLDS_RESULTS) is not True:
        role, text = _ROLES[step["source"]], _text(step.get("message"))
        listed = step.get("tool_calls")
        calls = tuple(map(_call, listed)) if isinstance(listed, list) else ()
        thought = step.get("reasoning_content")
        thought = thought if isinstance(thought, str) else None
        yield _message(role, text, calls, first_text(extra.get("tool_call_id")), extra, thought)
    for result in step_results(step):
        more = as_mapping(result.get("extra"))
        call_id = result.get("source_call_id", more.get("tool_call_id"))
        yield _message("tool", _text(result.get("content")), (), call_id, more)


def _message(
    role: Any,
    text: str,
    calls: tuple[ToolCall, ...],
    call_id: Any,
    extra: Mapping[str, Any],
    thought: str | None = None,
) -> Message:
    named, failed, kind = extra.get("name"), extra.get("is_error"), extra.get("error_kind")
    return Message(
        role,
        text,
        calls,
        call_id if isinstance(call_id, str) else None,
        named if isinstance(named, str) else None,
        failed if isinstance(failed, bool) else None,
        kind if isinstance(kind, str) and kind in _KINDS else None,
        thought,
    )


def _call(value: Any) -> ToolCall:
    call = as_mapping(value)
    exact = as_mapping(call.get("extra")).get("arguments")
    arguments = exact if isinstance(exact, str) else plain_arguments(call.get("arguments"))
    return ToolCall(_text(call.get("tool_call_id")), _text(call.get("function_name")), arguments)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _index(value: Any) -> int | None:
    return value if type(value) is int and value >= 0 else None
