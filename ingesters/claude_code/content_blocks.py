"""Content blocks of Claude Code records as text, tool calls and tool results."""

import json
import re
from collections.abc import Iterable
from typing import Any, NamedTuple

import orjson

from tracemill.ingesters.claude_code.record_fields import field_text
from tracemill.ingesters.reading.result_text import error_kind_of, image_placeholder, image_url_placeholder
from tracemill.records.message import ErrorKind, Message, ToolCall

_CALL_BLOCKS = frozenset(("server_tool_use", "mcp_tool_use"))
_DENIALS = {"user-rejected": ErrorKind.USER_REJECTION, "permission-rule": ErrorKind.HOOK}
_SHELLS = frozenset(("Bash", "BashOutput", "PowerShell"))
STARTERS = frozenset(("Task", "Agent"))
"""Tools that start a subagent."""
_AGENT_ID = re.compile(r"\bagentId: ([0-9A-Za-z_-]{4,64})")
_LOADED = "[tool loaded: "
_DEEPEST = 32


class Said(NamedTuple):
    """What one assistant record holds: text, thinking, calls, and results of tools run by the server."""

    text: str
    reasoning: str
    calls: tuple[ToolCall, ...]
    results: tuple[Message, ...]


class Told(NamedTuple):
    """What one user record holds: text, and results of tools."""

    text: str
    results: tuple[Message, ...]


def parse_assistant_blocks(content: Any) -> Said:
    """The content of an assistant record; blocks of blank text are left out."""
    if isinstance(content, str):
        return Said(content if content.strip() else "", "", (), ())
    blocks = [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []
    if len(blocks) == 1:  # as most records have it
        kind = blocks[0].get("type")
        if kind == "tool_use":
            return Said("", "", (_call(blocks[0]),), ())
        if kind == "thinking":
            return Said("", field_text(blocks[0], "thinking"), (), ())
    texts: list[str] = []
    thoughts: list[str] = []
    calls: list[ToolCall] = []
    results: list[Message] = []
    for block in blocks:
        _take(block, texts, thoughts, calls, results)
    text = texts[0] if len(texts) == 1 else "\n\n".join(texts)
    return Said(text, "\n\n".join(thoughts) if thoughts else "", tuple(calls), tuple(results))


def _take(
    block: dict[str, Any],
    texts: list[str],
    thoughts: list[str],
    calls: list[ToolCall],
    results: list[Message],
) -> None:
    """One block, into the list it belongs to."""
    kind = block.get("type")
    if kind == "tool_use":
        calls.append(_call(block))
    elif kind == "text":
        text = block.get("text")
        if isinstance(text, str) and text.strip():
            texts.append(text)
    elif kind == "thinking":
        if thought := field_text(block, "thinking"):
            thoughts.append(thought)
    elif isinstance(kind, str):
        if kind in _CALL_BLOCKS:
            calls.append(_call(block))
        elif kind.endswith("_tool_result"):
            results.append(parse_tool_result_block(block, None, "", None))


def parse_user_blocks(content: Any, names: dict[str, str], version: str, denial: Any) -> Told:
    """The content of a user record; `names` gives the tool of each call seen so far."""
    if isinstance(content, str):
        return Told(content, ())
    texts: list[str] = []
    results: list[Message] = []
    for block in content if isinstance(content, list) else ():
        if isinstance(block, dict) and block.get("type") == "tool_result":
            results.append(
                parse_tool_result_block(block, names.get(field_text(block, "tool_use_id")), version, denial)
            )
        elif text := content_block_text(block):
            texts.append(text)
    return Told("\n".join(texts) if texts else "", tuple(results))


def parse_tool_result_block(block: dict[str, Any], name: str | None, version: str, denial: Any) -> Message:
    """A tool_result block as a message: text as the model saw it, flagged where the source flags it."""
    text = flatten_content_blocks(block.get("content"))
    flag = block.get("is_error")
    is_error = flag if isinstance(flag, bool) else None
    kind = _error_kind(text, is_error, name, version, denial)
    return Message("tool", text, (), field_text(block, "tool_use_id"), name, is_error, kind)


def flatten_content_blocks(content: Any, depth: int = 0) -> str:
    """Content of any shape as text, images as placeholders; what is nested beyond sense is left out."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        texts = [text for block in content if (text := content_block_text(block, depth))]
        return texts[0] if len(texts) == 1 else "\n".join(texts)
    return "" if content is None else content_block_text(content, depth)


def content_block_text(block: Any, depth: int = 0) -> str:
    """One block as text; "" for a block that has none."""
    if isinstance(block, str):
        return block
    if not isinstance(block, dict) or depth > _DEEPEST:
        return ""
    kind = block.get("type")
    if kind in ("image", "document"):
        return _media(block, str(kind))
    if kind == "tool_reference":
        return f"{_LOADED}{field_text(block, 'tool_name')}]"
    if "text" in block:
        return field_text(block, "text")
    nested = block.get("content")
    return flatten_content_blocks(nested, depth + 1) if isinstance(nested, (str, list)) else ""


def loaded_tools_in_block(result: Message) -> Iterable[str]:
    """Names of the tools that a result loaded."""
    if not result.content.startswith(_LOADED):
        return ()
    lines = result.content.splitlines()
    return [line[len(_LOADED) : -1] for line in lines if line.startswith(_LOADED) and line.endswith("]")]


def started_agent_in_block(result: Message, twin: Any) -> str | None:
    """The id of the subagent that a call ran: as the structured twin of its result has it (2.1.x), or
    as the text says (2.0.x, and 2.1.x of agents in the background)."""
    agent = twin.get("agentId") if isinstance(twin, dict) else None
    if isinstance(agent, str) or result.name not in STARTERS:
        return agent if isinstance(agent, str) else None
    found = _AGENT_ID.search(result.content)
    return found.group(1) if found else None


def _call(block: dict[str, Any]) -> ToolCall:
    """A call; the record holds its arguments parsed, so the string is the compact JSON of them."""
    arguments = block.get("input")
    return ToolCall(field_text(block, "id"), field_text(block, "name"), compact_arguments(arguments))


def compact_arguments(arguments: Any) -> str:
    """Return the arguments of a call as text: a text as it is, else the compact JSON."""
    return arguments if isinstance(arguments, str) else _compact(arguments)


def _compact(value: Any) -> str:
    try:
        return orjson.dumps(value).decode()
    except TypeError:  # an integer of more than 64 bits, or very deep
        pass
    try:
        return json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    except RecursionError:
        return "{}"


def _error_kind(
    text: str, is_error: bool | None, name: str | None, version: str, denial: Any
) -> ErrorKind | None:
    """Why the result failed. The harness flags failures, so without a flag only its own tags count, and
    a subagent that came back with an error of the API."""
    if not is_error:
        tagged = text.startswith("<tool_use_error>") or (name in STARTERS and text.startswith("API Error"))
        return error_kind_of(text, True) if tagged else None
    if isinstance(denial, str) and denial in _DENIALS:
        return _DENIALS[denial]
    kind = error_kind_of(text, True)
    if kind is not ErrorKind.UNKNOWN:
        return kind
    if name not in _SHELLS:
        return ErrorKind.TOOL_ERROR if name else kind
    # 1.x gives the bare output of a failed command; 2.x begins it with "Exit code", so free text is a hook's.
    return ErrorKind.EXIT_CODE if version.startswith("1.") else ErrorKind.HOOK


def _media(block: dict[str, Any], kind: str) -> str:
    source = block.get("source")
    if not isinstance(source, dict):
        return f"[{kind}]"
    if isinstance(source.get("url"), str):
        return image_url_placeholder(source["url"])
    if source.get("type") == "text":
        return field_text(source, "data")
    media_type = source.get("media_type")
    return image_placeholder(
        media_type if isinstance(media_type, str) else f"{kind}/unknown", field_text(source, "data")
    )
