"""Parse OpenHands completion logs: the exact prompt of one call, and its response.

V0 (`llm_completions/<instance>/<model>-<time>.json`) and V1 (`<model>-<time>-<hex>.json`) hold `{messages,
response, ...}`; calls over the Responses API hold `{instructions, input, response, ...}`. Models without
native tool calls were sent text and answered in text: the text is used, not the structured form logged beside
it.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from tracemill.harnesses.agents.registry import harness_for
from tracemill.ingesters.common.benchmark_ids import base_benchmark_id, benchmark_repository
from tracemill.ingesters.common.chat_messages import unread_chat_message
from tracemill.ingesters.common.growing_context import GrowingContext, StepMetadata
from tracemill.ingesters.common.openai_messages import (
    as_mapping,
    collect_message_calls,
    first_text,
    openai_content_text,
    openai_reasoning,
    parse_openai_call,
    parse_openai_calls,
    parse_openai_tools,
    parse_openai_usage,
    unread_call,
    unread_calls,
    unread_content,
)
from tracemill.ingesters.reading.result_text import error_kind_of
from tracemill.records.identity import make_trace_id
from tracemill.records.ingest_report import IngestReport, record_type
from tracemill.records.message import Message, ToolCall
from tracemill.records.trace import Trace, Usage

NO_CALL = "completion without a prompt or a response"
UNREAD_CALL = "completion with content that is not understood"
_TEXT_RESULT = "EXECUTION RESULT of ["
_OPEN, _CLOSE = "<function=", "</function>"


@dataclass(frozen=True, slots=True)
class LoggedCall:
    """One call of a model; `offered` are the tools as sent, None if they were part of the text."""

    prompt: tuple[Message, ...]
    answer: Message
    response_id: str | None = None
    model: str | None = None
    usage: Usage = field(default_factory=Usage)
    offered: Any = None
    cost_usd: float = 0.0
    in_text: bool = False


def parse_completion_log(log: Any, report: IngestReport) -> LoggedCall | None:
    """Return the call a log records.

    None is returned and counted where it lacks prompt or response, or has content that is not understood.
    """
    body = as_mapping(log)
    if unread := list(_unread(body)):
        report.skipped[UNREAD_CALL] += 1
        report.unknown.update(f"completion {record_type(name)}" for name in unread)
        return None
    prompt = tuple(_prompt(body))
    response = as_mapping(body.get("response"))
    in_text = any(body.get(name) for name in ("raw_messages", "raw_response", "fncall_response"))
    answer = _text_answer(body) if in_text else _answer(response)
    if not prompt or answer is None:
        report.skipped[NO_CALL] += 1
        return None
    cost = body.get("cost")
    return LoggedCall(
        prompt=prompt,
        answer=answer,
        response_id=first_text(response.get("id")),
        model=first_text(response.get("model")),
        usage=parse_openai_usage(response.get("usage") or body.get("usage_summary")),
        offered=None if in_text else body.get("tools") or as_mapping(body.get("kwargs")).get("tools"),
        cost_usd=float(cost) if isinstance(cost, int | float) else 0.0,
        in_text=in_text,
    )


def trace_of_completion_log(
    log: Any, dialect: str, origin: str, report: IngestReport, instance: str | None = None
) -> Trace | None:
    """Return the trace of one completion log, which has one step.

    `instance` is the name of its folder. None is returned and counted as in `parse_completion_log`.
    """
    call = parse_completion_log(log, report)
    report.records["completion"] += 1
    if call is None:
        return None
    if call.in_text:
        report.flags["tools and calls are text in the prompt"] += 1
    growing = GrowingContext(messages=call.prompt)
    growing.add_action(call.answer, StepMetadata(call.model, call.response_id, call.usage))
    version = "1" if dialect.endswith("v1") else None
    tools = parse_openai_tools(
        call.offered, collect_message_calls(growing.messages), harness_for("openhands", version)
    )
    return Trace(
        trace_id=make_trace_id("openhands", "completion", call.response_id or origin),
        source="openhands",
        dialect=dialect,
        harness="openhands",
        contexts=(growing.finish(0, tools),),
        harness_version=version,
        repository=benchmark_repository(instance),
        instance_id=base_benchmark_id(instance),
        started_at=_time(log),
        origin=origin,
    )


def _time(log: Any) -> str | None:
    """Return when the call was logged, in seconds since 1970, as ISO 8601."""
    stamp = as_mapping(log).get("timestamp")
    try:
        return datetime.fromtimestamp(stamp, UTC).isoformat() if isinstance(stamp, int | float) else None
    except (ValueError, OverflowError, OSError):
        return None


def completion_log_result(message: Message) -> Message:
    """Return a tool result as the user message that models without native calls are shown.

    Other messages are returned as they are.
    """
    if message.role != "tool":
        return message
    text = f"{_TEXT_RESULT}{message.name or ''}]:\n{message.content}"
    return Message("user", text, is_error=message.is_error, error_kind=message.error_kind)


def _prompt(body: Mapping[str, Any]) -> Iterator[Message]:
    """Yield the messages of the prompt as sent; consecutive items of the Responses API form one turn."""
    instructions = openai_content_text(body.get("instructions"))
    if instructions:
        yield Message("system", instructions)
    listed = body.get("messages") or body.get("input")
    turn: Message | None = None
    for place, item in enumerate(listed if isinstance(listed, list) else ()):
        message = _message(as_mapping(item), place)
        if message is None:
            continue
        if turn is not None and as_mapping(item).get("type") == "function_call":
            turn = replace(turn, tool_calls=(*turn.tool_calls, *message.tool_calls))
            continue
        if turn is not None:
            yield turn
        turn = message if message.role == "assistant" else None
        if turn is None:
            yield message
    if turn is not None:
        yield turn


def _unread(body: Mapping[str, Any]) -> Iterator[str]:
    """Yield the names of parts of a log's prompt or answer that are not understood."""
    yield from unread_content(body.get("instructions"))
    listed = body.get("messages") or body.get("input")
    for item in listed if isinstance(listed, list) else ():
        yield from _unread_item(item)
    for key in ("response", "raw_response", "fncall_response"):
        response = as_mapping(body.get(key))
        choices, output = response.get("choices"), response.get("output")
        if isinstance(choices, list) and choices:
            message = as_mapping(as_mapping(choices[0]).get("message"))
            yield from (*unread_content(message.get("content")), *unread_calls(message))
        for item in output if isinstance(output, list) else ():
            yield from _unread_item(item)


def _unread_item(item: Any) -> list[str]:
    """Return the names of parts of a message, or of an item of the Responses API, that are not understood."""
    kind = item.get("type") if isinstance(item, dict) and item.get("role") is None else None
    if kind == "function_call":
        return [name] if (name := unread_call(item)) else []
    if kind == "function_call_output":
        return unread_content(item.get("output"))
    if kind == "message":
        return unread_content(item.get("content"))
    if kind is not None:
        return [] if kind == "reasoning" else [f"item.{kind}"]
    return unread_chat_message(item)


def _message(item: Mapping[str, Any], place: int) -> Message | None:
    """Return one item of a prompt: a chat message, or an item of the Responses API."""
    kind, role = item.get("type"), item.get("role")
    if kind == "function_call":
        call = parse_openai_call({**item, "id": item.get("call_id") or item.get("id")}, f"call-{place}")
        return Message("assistant", "", (call,)) if call else None
    if kind == "function_call_output":
        return _result(openai_content_text(item.get("output")), item.get("call_id"), None)
    text = openai_content_text(item.get("content"))
    if role == "tool":
        return _result(text, item.get("tool_call_id"), item.get("name"))
    if role == "assistant":
        return Message(
            "assistant", text, parse_openai_calls(item, f"call-{place}"), reasoning=openai_reasoning(item)
        )
    if role in ("system", "developer"):
        return Message("system", text)
    return _user(text) if role == "user" else None


def _user(text: str) -> Message:
    """Return a user text; one that is the result of a call in text has its failure."""
    kind = error_kind_of(text.partition("\n")[2], None) if text.startswith(_TEXT_RESULT) else None
    return Message("user", text, is_error=True if kind else None, error_kind=kind)


def _result(text: str, call_id: Any, name: Any) -> Message:
    kind = error_kind_of(text, None)
    named = name if isinstance(name, str) else None
    return Message("tool", text, (), str(call_id or ""), named, True if kind else None, kind)


def _answer(response: Mapping[str, Any]) -> Message | None:
    """Return the assistant message of a response of either API."""
    choices = response.get("choices")
    if isinstance(choices, list) and choices:
        message = as_mapping(as_mapping(choices[0]).get("message"))
        calls = parse_openai_calls(message, "call-answer")
        return Message(
            "assistant",
            openai_content_text(message.get("content")),
            calls,
            reasoning=openai_reasoning(message),
        )
    output = response.get("output")
    if not isinstance(output, list):
        return None
    items = [as_mapping(item) for item in output]
    texts = [openai_content_text(item.get("content")) for item in items if item.get("type") == "message"]
    messages = (
        _message(item, place) for place, item in enumerate(items) if item.get("type") == "function_call"
    )
    calls = tuple(call for message in messages if message is not None for call in message.tool_calls)
    return Message("assistant", "\n".join(filter(None, texts)), calls)


def _text_answer(body: Mapping[str, Any]) -> Message | None:
    """Return the text that a model without native calls wrote, closing a call that a stop word cut off."""
    of_v1 = "raw_response" in body or "raw_messages" in body
    written = _answer(as_mapping(body.get("raw_response" if of_v1 else "response")))
    parsed = _answer(as_mapping(body.get("response" if of_v1 else "fncall_response")))
    if written is None or parsed is None:
        return written or parsed
    text = written.content
    if text.rfind(_OPEN) > text.rfind(_CLOSE):
        text = text.rstrip().removesuffix("</function").rstrip() + "\n" + _CLOSE
    elif _OPEN not in text:
        text = "\n\n".join(filter(None, (text.rstrip(), *map(_call_text, parsed.tool_calls))))
    return Message("assistant", text, reasoning=written.reasoning or parsed.reasoning)


def _call_text(call: ToolCall) -> str:
    """Return a call in the notation of models without native calls."""
    arguments = (call.parsed() or {}).items()
    lines = [f"<parameter={key}>{value}</parameter>" for key, value in arguments]
    return "\n".join((f"{_OPEN}{call.name}>", *lines, _CLOSE))
