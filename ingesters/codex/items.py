"""Parse response items of Codex: what was sent to the model, and what it answered.

Source: https://platform.openai.com/docs/api-reference/responses. A freeform tool takes text, so that its call
has the one argument `input`. A search of the web runs at the provider: its call is recorded, its result not.
"""

import json
from collections.abc import Mapping
from typing import Any

from tracemill.ingesters.common.codex_results import codex_error
from tracemill.ingesters.common.openai_messages import (
    as_mapping,
    first_text,
    openai_argument_text,
    openai_content_text,
    unread_content,
)
from tracemill.records.identity import canonical_json
from tracemill.records.message import ErrorKind, Message, ToolCall

ANSWERED_CALLS = frozenset(("function_call", "custom_tool_call", "local_shell_call", "tool_search_call"))
"""Calls whose results are items of their own."""
SERVER_CALLS = frozenset(("web_search_call", "image_generation_call"))
"""Calls that the provider runs within an answer."""
OUTPUTS = frozenset(
    ("function_call_output", "custom_tool_call_output", "local_shell_call_output", "tool_search_output")
)
SUMMARIES = frozenset(("compaction", "compaction_summary", "context_compaction"))
"""Encrypted summaries of a conversation."""
NOT_SENT = frozenset(("ghost_snapshot",))
"""Items that Codex keeps for itself."""
ENCRYPTED = "[encrypted text, not recorded]"
"""Replaces text that only the provider can read."""


def is_answer(item: Mapping[str, Any]) -> bool:
    """Return whether the model made an item."""
    kind = item.get("type")
    if kind == "message":
        return item.get("role") == "assistant"
    return kind == "reasoning" or kind in ANSWERED_CALLS or kind in SERVER_CALLS


def parse_codex_message(item: Mapping[str, Any]) -> tuple[Message | None, list[str]]:
    """Return an item that the model did not make as a message, and the names of its unread parts.

    The message is None for an item that is no text. Encrypted parts are replaced and named.
    """
    kind, content = item.get("type"), item.get("content")
    if kind not in ("message", "agent_message"):
        return None, [f"item {kind}" if isinstance(kind, str) else "item"]
    unread = [name for name in unread_content(content) if name != "encrypted_content"]
    parts = content if isinstance(content, list) else [content]
    encrypted = any(as_mapping(part).get("type") == "encrypted_content" for part in parts)
    text = openai_content_text([_readable(part) for part in parts if part is not None])
    role = item.get("role", "user" if kind == "agent_message" else None)
    if role not in ("user", "developer", "system"):
        return None, [f"role {role}" if isinstance(role, str) else "role"]
    message = Message("user" if role == "user" else "system", text)
    return message, [*unread, *(["encrypted text"] if encrypted else [])]


def _readable(part: Any) -> Any:
    return ENCRYPTED if as_mapping(part).get("type") == "encrypted_content" else part


def parse_codex_call(item: Mapping[str, Any], fallback: str) -> ToolCall | None:
    """Return the call that an item makes; None if it names no tool."""
    kind = item.get("type")
    call_id = first_text(item.get("call_id"), item.get("id")) or fallback
    if kind in SERVER_CALLS or kind in ("local_shell_call", "tool_search_call"):
        given = item.get("action") if kind != "tool_search_call" else item.get("arguments")
        if kind == "image_generation_call":
            given = {"prompt": item.get("revised_prompt") or ""}
        return ToolCall(call_id, str(kind).removesuffix("_call"), openai_argument_text(given))
    name, space = first_text(item.get("name")), first_text(item.get("namespace"))
    if name is None:
        return None
    name = join_tool_name(space, name)
    if kind == "custom_tool_call":
        return ToolCall(call_id, name, json.dumps({"input": item.get("input")}, ensure_ascii=False))
    return ToolCall(call_id, name, openai_argument_text(item.get("arguments")))


def join_tool_name(space: str | None, name: str) -> str:
    """Return a tool name with its group's name as prefix."""
    return f"{space.removesuffix('__')}__{name}" if space else name


def parse_codex_thought(item: Mapping[str, Any]) -> str:
    """Return the readable text of a reasoning item: its summary, and the text where it is not encrypted."""
    texts = (openai_content_text(item.get(key)) for key in ("summary", "content"))
    return "\n\n".join(text for text in texts if text)


def parse_codex_result(item: Mapping[str, Any]) -> tuple[Message, list[str]]:
    """Return the result of a call as a message, and the names of its unread parts."""
    output = item.get("tools") if item.get("type") == "tool_search_output" else item.get("output")
    flag: Any = item.get("success")
    if isinstance(output, dict) and "content" in output:
        flag, output = output.get("success", flag), output["content"]
    if item.get("type") == "tool_search_output":
        output = canonical_json(output)
    unread = [] if output is None else unread_content(output)
    text = openai_content_text(output)
    is_error, kind = codex_error(text)
    if is_error is None and isinstance(flag, bool):
        is_error, kind = not flag, None if flag else ErrorKind.TOOL_ERROR
    return Message("tool", text, (), first_text(item.get("call_id")) or "", None, is_error, kind), unread
