"""Parse records of Cline and Roo Code: Anthropic blocks, results as blocks or as text, why a call failed."""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from tracemill.ingesters.common.openai_messages import as_mapping, first_text, openai_argument_text
from tracemill.ingesters.reading.result_text import error_kind_of, image_placeholder
from tracemill.records.message import ErrorKind, Message, ToolCall
from tracemill.records.trace import Usage

BLOCKS: Mapping[str, str] = {
    "text": "text",
    "image": "source",
    "document": "source",
    "tool_use": "name",
    "tool_result": "tool_use_id",
    "thinking": "thinking",
    "redacted_thinking": "data",
    "reasoning": "summary",
    "thoughtSignature": "thoughtSignature",
}
"""Types of blocks, each with a key that it must have."""
NO_ANSWER = "Failure: I did not provide a response."
INTERRUPTED = ("[Response interrupted by user]", "[Response interrupted by API Error]")
CUT_BY_HARNESS = "[Response interrupted by "
"""A note behind an answer of which the call was made and the rest was dropped."""
_RESULT = re.compile(r"\[([\w-]+)(?: for .*?)?\] Result:\n?", re.DOTALL)
_NOT_MADE = re.compile(r"(?:Skipping tool|Tool) \[([\w-]+)[^\]]*\]")
_DENIED = ("The user denied this operation", "The user rejected")
_FAILED = (
    *("The tool execution failed", "Missing value for required parameter", "[ERROR]"),
    *("Access to ", "Failed to edit ", "Failed to write to "),
)
_EXIT_CODE = re.compile(r"(?:^|\n)(?:Exit code: |Command failed with exit code )(-?\d+)")
_EXIT_ZERO = ("Command executed successfully (exit code 0)",)
_CODE = "xit code"
"""Words that stand in every text of an exit code."""
_MUST_BE_TEXT = ("text", "tool_use", "thinking")
"""Types of blocks whose key must hold a text."""
_NO_USAGE = Usage()
_HEAD = 600


def blocks_of(content: Any) -> list[Any]:
    """Return the blocks of a content, which may be a text alone."""
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else []
    return content if isinstance(content, list) else []


def unread_blocks(content: Any) -> list[str]:
    """Return the names of the blocks of a content that are not read."""
    if content is None or isinstance(content, str):
        return []
    if not isinstance(content, list):
        return [type(content).__name__]
    return [name for block in content if (name := unread_block(block))]


def unread_block(block: Any) -> str:
    """Return the name of a block that is not read, "" for one that is."""
    if not isinstance(block, dict):
        return type(block).__name__
    kind = block.get("type")
    if not isinstance(kind, str) or kind not in BLOCKS:
        return kind if isinstance(kind, str) and kind else "untyped"
    if kind in _MUST_BE_TEXT:
        return "" if isinstance(block.get(BLOCKS[kind]), str) else f"{kind}.{BLOCKS[kind]}"
    if kind == "tool_result":
        inner = block.get("content")
        return f"{kind}.content" if unread_blocks(inner) or not first_text(block.get("tool_use_id")) else ""
    if kind in ("image", "document"):
        return "" if isinstance(as_mapping(block.get("source")).get("data"), str) else f"{kind}.source"
    return ""


def blocks_text(content: Any) -> str:
    """Return the texts of a content, joined by newlines; an image or a document becomes its placeholder."""
    if isinstance(content, str):
        return content
    return "\n".join([text for block in blocks_of(content) if (text := block_text(block))])


def block_text(block: Any) -> str:
    """Return the text of a block that a prompt shows, "" for any other."""
    part = as_mapping(block)
    kind = part.get("type")
    if kind == "text":
        return first_text(part.get("text")) or ""
    source = as_mapping(part.get("source"))
    if kind in ("image", "document") and isinstance(source.get("data"), str):
        return image_placeholder(first_text(source.get("media_type")) or "image/unknown", source["data"])
    return ""


def answer_message(record: Mapping[str, Any], content: Sequence[Any], place: int) -> Message:
    """Return an answer: the text and calls in its blocks, its thinking, which no later prompt shows."""
    texts: list[str | None] = []
    thought: list[str | None] = []
    calls: list[ToolCall] = []
    for block in content:
        part = as_mapping(block)
        kind = part.get("type")
        if kind == "tool_use":
            if name := first_text(part.get("name")):
                call_id = first_text(part.get("id")) or f"{place}-{len(calls)}"
                calls.append(ToolCall(call_id, name, openai_argument_text(part.get("input"))))
        elif kind in ("thinking", "reasoning"):
            thought.append(first_text(part.get("thinking" if kind == "thinking" else "text")))
        else:
            texts.append(block_text(part))
    thought.append(first_text(record.get("reasoning_content")))
    reasoning = "\n".join([text for text in thought if text])
    text = "\n".join([text for text in texts if text])
    return Message("assistant", text, tuple(calls), reasoning=reasoning or None)


def result_message(block: Mapping[str, Any]) -> Message:
    """Return the result in a block."""
    text = blocks_text(block.get("content"))
    flag = block.get("is_error")
    failed, kind = result_failure(text, flag if isinstance(flag, bool) else None)
    call_id = first_text(block.get("tool_use_id")) or ""
    return Message("tool", text, tool_call_id=call_id, is_error=failed, error_kind=kind)


def named_result(text: str) -> str | None:
    """Return the tool whose result a text of the user begins with, None if it is no result."""
    match = _RESULT.match(text) or _NOT_MADE.match(text)
    return match[1] if match else None


def result_failure(text: str, flag: bool | None) -> tuple[bool | None, ErrorKind | None]:
    """Return whether a result reports a failure of its call, and why; None if it does not say."""
    match = _RESULT.match(text)
    body = text[match.end() :] if match else text
    head = body.lstrip()[:_HEAD]
    status = _status(body)
    if head.startswith(_DENIED) or status == "denied":
        return True, ErrorKind.USER_REJECTION
    if _NOT_MADE.match(head):
        return True, ErrorKind.CANCELLED
    if head.startswith("Command timed out"):
        return True, ErrorKind.TIMEOUT
    code = _EXIT_CODE.search(head) if _CODE in head else None
    if code and int(code[1]):
        return True, ErrorKind.EXIT_CODE
    if code or head.startswith(_EXIT_ZERO):
        return False, None
    if head.startswith(_FAILED) or status == "error" or flag:
        kind = error_kind_of(body, True)
        return True, ErrorKind.TOOL_ERROR if kind in (None, ErrorKind.UNKNOWN) else kind
    return flag, None


def _status(text: str) -> Any:
    """Return the `status` of a result that is a JSON object."""
    if not text.lstrip().startswith('{"status"'):
        return None
    try:
        return as_mapping(json.loads(text)).get("status")
    except (ValueError, RecursionError):
        return None


def answer_usage(record: Mapping[str, Any], request: Mapping[str, Any]) -> Usage:
    """Return the tokens and cost of an answer, by its own metrics, else by its request in the view."""
    metrics = as_mapping(record.get("metrics"))
    if not metrics and not request:
        return _NO_USAGE
    tokens = as_mapping(metrics.get("tokens"))
    cost = _number(metrics.get("cost"), request.get("cost"))
    prompt, cached = _count(tokens.get("prompt")), _count(tokens.get("cached"))
    fresh = _count(request.get("tokensIn"))
    if fresh is not None:
        read, written = _count(request.get("cacheReads")) or 0, _count(request.get("cacheWrites")) or 0
        inclusive = request.get("apiProtocol") == "openai"
        whole = fresh if inclusive else fresh + read + written
        return Usage(whole, _count(request.get("tokensOut")), read, cost)
    if prompt is None:
        return Usage(cost_usd=cost)
    if cached is not None and cached > prompt:
        prompt += cached
    return Usage(prompt, _count(tokens.get("completion")), cached, cost)


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _number(*values: Any) -> float | None:
    numbers = (value for value in values if isinstance(value, int | float) and not isinstance(value, bool))
    return next((float(number) for number in numbers), None)
