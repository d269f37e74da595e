"""Parse messages, tools, results and usage of inspect."""

from collections.abc import Mapping
from typing import Any, cast

from tracemill.ingesters.common.chat_messages import chat_text_error
from tracemill.ingesters.common.openai_messages import as_mapping, first_text, openai_argument_text
from tracemill.ingesters.reading.result_text import image_placeholder, image_url_placeholder
from tracemill.records.message import ErrorKind, Message, Role, ToolCall, ToolSpec
from tracemill.records.trace import Outcome, Usage

ROLES: tuple[Role, ...] = ("system", "user", "assistant", "tool")
MEDIA = ("image", "audio", "video", "document")
"""Types of content of which the log holds the data or an address."""
_ERROR_KINDS = {
    "timeout": ErrorKind.TIMEOUT,
    "approval": ErrorKind.HOOK,
    "cancelled": ErrorKind.CANCELLED,
}
_DATA_URL = "data:"
_CORRECT, _INCORRECT = ("C", "CORRECT"), ("I", "INCORRECT", "N")


def content_parts(content: Any) -> list[Any]:
    """Return the parts of a content, a text as one part."""
    return [{"type": "text", "text": content}] if isinstance(content, str) else content_list(content)


def content_list(content: Any) -> list[Any]:
    """Return a content that is a part or a list of parts as a list."""
    return content if isinstance(content, list) else [] if content is None else [content]


def unread_part(part: Any) -> str:
    """Return the name of the unread part of a content part, "" if all is read."""
    if not isinstance(part, dict):
        return type(part).__name__
    kind = first_text(part.get("type")) or "untyped"
    if kind == "text":
        return "" if isinstance(part.get("text"), str) else "text.text"
    if kind == "reasoning":
        return "" if isinstance(part.get("reasoning"), str) else "reasoning.reasoning"
    if kind in MEDIA:
        return "" if first_text(part.get(kind)) else f"{kind}.{kind}"
    return kind


def unread_message(raw: Any) -> list[str]:
    """Return the names of the unread parts of a message."""
    if not isinstance(raw, dict):
        return [f"message {type(raw).__name__}"]
    if raw.get("role") not in ROLES:
        return [f"role {first_text(raw.get('role')) or 'untyped'}"]
    unread = [f"content {name}" for part in content_parts(raw.get("content")) if (name := unread_part(part))]
    calls = raw.get("tool_calls")
    if calls is not None and not isinstance(calls, list):
        unread.append("tool_calls")
    unread += [
        "tool_call" for call in content_list(calls) if not first_text(as_mapping(call).get("function"))
    ]
    return unread


def parse_message(raw: Mapping[str, Any]) -> Message:
    """Parse a message; a failed result contains the error shown to the model."""
    role = cast(Role, raw["role"]) if raw.get("role") in ROLES else "user"
    text, thoughts = content_text(raw.get("content")), _thoughts(raw.get("content"))
    if role == "tool":
        call_id, name = first_text(raw.get("tool_call_id")), first_text(raw.get("function"))
        return result_message(call_id or "", name, text, raw.get("error"))
    if role != "assistant":
        return Message(role, text)
    calls = tuple(
        ToolCall(
            first_text(call.get("id")) or f"call-{place}",
            call["function"],
            openai_argument_text(call.get("arguments")),
        )
        for place, call in enumerate(map(as_mapping, content_list(raw.get("tool_calls"))))
        if first_text(call.get("function"))
    )
    return Message("assistant", text, calls, reasoning=thoughts or None)


def has_unread_arguments(raw: Mapping[str, Any]) -> bool:
    """Return whether arguments of a call did not parse; their original text is not recorded then."""
    return any(as_mapping(call).get("parse_error") for call in content_list(raw.get("tool_calls")))


def result_message(call_id: str, name: str | None, text: str, error: Any) -> Message:
    """Return the result of a call."""
    told = as_mapping(error)
    if not told:
        failed, kind = chat_text_error(text)
        return Message("tool", text, (), call_id, name, failed, kind)
    kind = _ERROR_KINDS.get(str(told.get("type")), ErrorKind.TOOL_ERROR)
    return Message("tool", first_text(told.get("message")) or text, (), call_id, name, True, kind)


def result_text(result: Any) -> str:
    """Return a tool's result as text: content, or a plain value."""
    if isinstance(result, bool | int | float):
        return str(result)
    return content_text(result)


def content_text(content: Any) -> str:
    """Return a content as text without thoughts; media become placeholders."""
    texts = (_part_text(as_mapping(part)) for part in content_parts(content))
    return "\n".join(text for text in texts if text)


def _part_text(part: Mapping[str, Any]) -> str:
    kind = part.get("type")
    if kind == "text":
        return first_text(part.get("text")) or ""
    data = first_text(part.get(kind)) if kind in MEDIA else None
    if data is None:
        return ""
    if data.startswith((_DATA_URL, "http://", "https://")) or kind == "image":
        return image_url_placeholder(data)
    form = first_text(part.get("mime_type"), part.get("format"))
    return image_placeholder(f"{kind}/{form or 'unknown'}" if "/" not in (form or "") else str(form), data)


def _thoughts(content: Any) -> str:
    parts = (as_mapping(part) for part in content_parts(content))
    told = (first_text(part.get("reasoning")) for part in parts if part.get("type") == "reasoning")
    return "\n".join(text for text in told if text)


def parse_tools(listed: Any) -> tuple[ToolSpec, ...]:
    """Return the tools that a model call offered."""
    tools = (as_mapping(tool) for tool in content_list(listed))
    return tuple(
        ToolSpec(
            str(tool["name"]),
            first_text(tool.get("description")) or "",
            as_mapping(tool.get("parameters")),
        )
        for tool in tools
        if first_text(tool.get("name"))
    )


def parse_usage(value: Any) -> Usage:
    """Return tokens and cost of a call; prompt tokens are all except output, cached ones included."""
    usage = as_mapping(value)
    names = ("input_tokens", "output_tokens", "total_tokens", "input_tokens_cache_read")
    fresh, output, total, cached = (_count(usage.get(name)) for name in names)
    prompt = fresh if total is None or output is None or fresh is None else max(fresh, total - output)
    cost = usage.get("total_cost")
    paid = float(cost) if isinstance(cost, int | float) and not isinstance(cost, bool) else None
    return Usage(prompt, output, cached, paid)


def parse_outcome(scores: Any) -> Outcome:
    """Return the outcome if all scores of a sample agree on it."""
    found: set[Outcome] = {_verdict(as_mapping(score).get("value")) for score in as_mapping(scores).values()}
    return found.pop() if len(found) == 1 else "unknown"


def _verdict(value: Any) -> Outcome:
    if value in _CORRECT or value is True or (isinstance(value, int | float) and value == 1):
        return "resolved"
    if value in _INCORRECT or value is False or (isinstance(value, int | float) and value == 0):
        return "not_resolved"
    return "unknown"


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None
