"""Parse messages of Pi, and entries that its prompts show as messages of the user."""

from collections.abc import Mapping
from typing import Any

from tracemill.ingesters.common.openai_messages import as_mapping, first_text, openai_argument_text
from tracemill.ingesters.reading.result_text import error_kind_of, image_placeholder
from tracemill.records.message import ErrorKind, Message, ToolCall
from tracemill.records.trace import Usage

CUT_OFF = ("aborted", "error")
"""Stop reasons of an answer that broke off."""
ROLES = (
    *("user", "assistant", "toolResult", "bashExecution"),
    *("custom", "hookMessage", "branchSummary", "compactionSummary"),
)
_STOPPED = ("Operation aborted", "Command aborted", "User denied")
_BLOCK_KEYS = {"text": "text", "thinking": "thinking", "image": "data", "toolCall": "name"}
"""Types of content blocks, with the key that holds what is read."""


def content_blocks(content: Any) -> list[Any]:
    """Return the blocks of a content, which may be a text alone."""
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return content if isinstance(content, list) else []


def unread_blocks(content: Any) -> list[str]:
    """Return the names of the blocks of a content that are not read."""
    if content is not None and not isinstance(content, str | list):
        return [type(content).__name__]
    return [name for block in content_blocks(content) if (name := _unread(block))]


def _unread(block: Any) -> str:
    if not isinstance(block, dict):
        return type(block).__name__
    kind = block.get("type")
    key = _BLOCK_KEYS.get(kind) if isinstance(kind, str) else None
    if key is None:
        return kind if isinstance(kind, str) and kind else "untyped"
    return "" if isinstance(block.get(key), str) else f"{kind}.{key}"


def block_text(content: Any, *kinds: str) -> str:
    """Return the blocks of some kinds as text, by default `text` and `image`; an image is a placeholder."""
    texts = (_text_of(as_mapping(block), kinds or ("text", "image")) for block in content_blocks(content))
    return "\n".join(text for text in texts if text)


def _text_of(block: Mapping[str, Any], kinds: tuple[str, ...]) -> str:
    kind = block.get("type")
    if kind not in kinds:
        return ""
    if kind == "image":
        data = block.get("data")
        media = first_text(block.get("mimeType")) or "image/unknown"
        return image_placeholder(media, data) if isinstance(data, str) else ""
    return first_text(block.get(str(kind))) or ""


def answer_message(message: Mapping[str, Any], entry_id: str, thinking_as_text: bool) -> Message:
    """Return an answer; its thinking is part of its text if another model is shown it."""
    content = message.get("content")
    blocks = [block for block in content_blocks(content) if isinstance(block, dict)]
    listed = [block for block in blocks if block.get("type") == "toolCall" and first_text(block.get("name"))]
    calls = tuple(
        ToolCall(
            first_text(block.get("id")) or f"{entry_id}-{place}",
            block["name"],
            openai_argument_text(block.get("arguments")),
        )
        for place, block in enumerate(listed)
    )
    text = block_text(content, "text", "thinking") if thinking_as_text else block_text(content, "text")
    return Message("assistant", text, calls, reasoning=block_text(content, "thinking") or None)


def has_open_thinking(message: Mapping[str, Any]) -> bool:
    """Return whether an answer holds thinking that another model is shown as text."""
    return any(
        block.get("type") == "thinking" and not block.get("redacted") and first_text(block.get("thinking"))
        for block in content_blocks(message.get("content"))
        if isinstance(block, dict)
    )


def result_message(message: Mapping[str, Any]) -> Message:
    """Return a tool result, with why the call failed."""
    text = block_text(message.get("content"))
    flag = message.get("isError")
    failed = flag if isinstance(flag, bool) else None
    return Message(
        "tool",
        text,
        tool_call_id=first_text(message.get("toolCallId")) or "",
        name=first_text(message.get("toolName")),
        is_error=failed,
        error_kind=_error_kind(text, str(message.get("toolName"))) if failed else None,
    )


def _error_kind(text: str, tool: str) -> ErrorKind:
    """Return why a call failed: Pi flags a result whose tool raised, and puts the reason at its end."""
    last = text.rstrip().rpartition("\n")[2]
    if last.startswith(_STOPPED):
        return ErrorKind.USER_REJECTION
    if last.startswith("Command exited with code "):
        return ErrorKind.EXIT_CODE
    if last.startswith("Command timed out"):
        return ErrorKind.TIMEOUT
    if text.startswith("Skipped due to queued"):
        return ErrorKind.CANCELLED
    kind = error_kind_of(text, True)
    return ErrorKind.TOOL_ERROR if kind in (None, ErrorKind.UNKNOWN) else kind


def shell_text(message: Mapping[str, Any]) -> str | None:
    """Return the text shown to the model of a command that the user ran, None if it is hidden from it."""
    if message.get("excludeFromContext") is True:
        return None
    output, code = first_text(message.get("output")), message.get("exitCode")
    parts = [f"Ran `{message.get('command')}`", f"```\n{output}\n```" if output else "(no output)"]
    text = "\n".join(parts)
    if message.get("cancelled") is True:
        text += "\n\n(command cancelled)"
    elif isinstance(code, int) and code:
        text += f"\n\nCommand exited with code {code}"
    path = first_text(message.get("fullOutputPath"))
    if message.get("truncated") is True and path:
        text += f"\n\n[Output truncated. Full output: {path}]"
    return text


def summary_text(summary: Any) -> str:
    """Return a summary in tracemill's own frame, since the session holds only the summary."""
    return f"[summary of what came before]\n\n{first_text(summary) or ''}"


def parse_usage(value: Any) -> Usage:
    """Return the tokens and cost of an answer; with cached tokens among the prompt tokens."""
    usage = as_mapping(value)
    fresh, read, written = (_count(usage.get(key)) for key in ("input", "cacheRead", "cacheWrite"))
    prompt = None if fresh is None else fresh + (read or 0) + (written or 0)
    cost = as_mapping(usage.get("cost")).get("total")
    paid = float(cost) if isinstance(cost, int | float) and not isinstance(cost, bool) else None
    return Usage(prompt, _count(usage.get("output")), read, paid)


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None
