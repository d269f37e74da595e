"""Parse content blocks of Claude Code records into text, tool calls and tool results."""

import json
import re
from collections.abc import Iterable
from contextlib import suppress
from typing import Any, NamedTuple

import orjson

from tracemill.ingesters.claude_code.record_fields import field_text
from tracemill.ingesters.reading.result_text import error_kind_of, image_placeholder, image_url_placeholder
from tracemill.records.message import ErrorKind, Message, ToolCall

_CALL_BLOCKS = frozenset(("tool_use", "server_tool_use", "mcp_tool_use"))
_SERVER_RESULT = "_tool_result"
_SILENT_BLOCKS = frozenset(("redacted_thinking", "fallback"))
_TEXT_BLOCKS = ("text", "search_result", None)
"""Types of blocks that hold text or blocks of text; a block without a type is one too."""
_TITLES = {"search_result": ("title", "source"), "document": ("title", "context")}
_CONTENT = "content"
"""Name of a content that is neither text nor a list of blocks."""
_DENIALS = {"user-rejected": ErrorKind.USER_REJECTION, "permission-rule": ErrorKind.HOOK}
_SHELLS = frozenset(("Bash", "BashOutput", "PowerShell"))
STARTERS = frozenset(("Task", "Agent"))
"""Tools that start a subagent."""
_AGENT_ID = re.compile(r"\bagentId: ([0-9A-Za-z_-]{4,64})")
_LOADED = "[tool loaded: "
_DEEPEST = 32


class UnreadParts(NamedTuple):
    """Names of the parts of a content that are not understood; the names reveal nothing of it.

    `own` are parts of the text and calls, `of_results` parts of results, `results` the calls whose results
    have such parts, and `calls` the ids of calls that are left out.
    """

    own: tuple[str, ...] = ()
    of_results: tuple[str, ...] = ()
    results: frozenset[str] = frozenset()
    calls: frozenset[str] = frozenset()

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names of all parts that are not understood."""
        return self.own + self.of_results


_ALL_READ = UnreadParts()


class AssistantRecord(NamedTuple):
    """The content of one assistant record: text, thinking, calls, and results of tools run by the server."""

    text: str
    reasoning: str
    calls: tuple[ToolCall, ...]
    results: tuple[Message, ...]
    unread: UnreadParts = _ALL_READ


class UserRecord(NamedTuple):
    """The content of one user record: text, and results of tools."""

    text: str
    results: tuple[Message, ...]
    unread: UnreadParts = _ALL_READ


def parse_assistant_blocks(content: Any) -> AssistantRecord:
    """Parse the content of an assistant record; blocks of blank text are left out."""
    if isinstance(content, str):
        return AssistantRecord(content if content.strip() else "", "", (), ())
    if not isinstance(content, list):
        return AssistantRecord("", "", (), (), UnreadParts((_CONTENT,)))
    parts = _AssistantParts()
    for block in content:
        parts.add(block)
    return parts.finish()


class _AssistantParts:
    """The blocks of an assistant record, sorted by kind."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.thoughts: list[str] = []
        self.calls: list[ToolCall] = []
        self.results: list[Message] = []
        self.unread: list[str] = []
        self.unread_calls: set[str] = set()
        self.of_results: list[str] = []
        self.unread_results: set[str] = set()

    def add(self, block: Any) -> None:
        """Add one block."""
        kind = block.get("type") if isinstance(block, dict) else None
        if not isinstance(kind, str):
            self.unread.append(_name(block))
        elif kind in _CALL_BLOCKS:
            self._call(block, kind)
        elif kind == "text":
            if (text := content_block_text(block, self.unread)).strip():
                self.texts.append(text)
        elif kind == "thinking":
            if thought := field_text(block, "thinking"):
                self.thoughts.append(thought)
        elif kind.endswith(_SERVER_RESULT):
            before = len(self.of_results)
            result = parse_tool_result_block(block, None, "", None, self.of_results)
            self.results.append(result)
            if len(self.of_results) > before:
                self.unread_results.add(result.tool_call_id or "")
        elif kind not in _SILENT_BLOCKS:
            self.unread.append(_name(block))

    def _call(self, block: dict[str, Any], kind: str) -> None:
        """Add a call; one without a name, or with an input of another type, is left out."""
        if not field_text(block, "name"):
            missing = "name"
        elif not isinstance(block.get("input"), dict | str):
            missing = "input"
        else:
            arguments = compact_arguments(block["input"])
            self.calls.append(ToolCall(field_text(block, "id"), field_text(block, "name"), arguments))
            return
        self.unread.append(f"{kind}.{missing}")
        self.unread_calls.add(field_text(block, "id"))

    def finish(self) -> AssistantRecord:
        """Return the record with all blocks added so far."""
        unread = UnreadParts(
            tuple(self.unread),
            tuple(self.of_results),
            frozenset(self.unread_results),
            frozenset(self.unread_calls),
        )
        return AssistantRecord(
            "\n\n".join(self.texts),
            "\n\n".join(self.thoughts),
            tuple(self.calls),
            tuple(self.results),
            unread,
        )


def parse_user_blocks(content: Any, names: dict[str, str], version: str, denial: Any) -> UserRecord:
    """Parse the content of a user record; `names` maps the ids of earlier calls to their tools."""
    if isinstance(content, str):
        return UserRecord(content, ())
    if not isinstance(content, list):
        return UserRecord("", (), _ALL_READ if content is None else UnreadParts((_CONTENT,)))
    texts: list[str] = []
    results: list[Message] = []
    own: list[str] = []
    of_results: list[str] = []
    unread: set[str] = set()
    for block in content:
        if isinstance(block, dict) and block.get("type") == "tool_result":
            call, before = field_text(block, "tool_use_id"), len(of_results)
            results.append(parse_tool_result_block(block, names.get(call), version, denial, of_results))
            if len(of_results) > before:
                unread.add(call)
        elif text := content_block_text(block, own):
            texts.append(text)
    not_read = (
        UnreadParts(tuple(own), tuple(of_results), frozenset(unread)) if own or of_results else _ALL_READ
    )
    return UserRecord("\n".join(texts) if texts else "", tuple(results), not_read)


def parse_tool_result_block(
    block: dict[str, Any], name: str | None, version: str, denial: Any, unread: list[str]
) -> Message:
    """Return a tool_result block as a message, with the text the model saw and the failure.

    The names of parts that are not understood are added to `unread`.
    """
    text = flatten_content_blocks(block.get("content"), unread)
    flag = block.get("is_error")
    is_error = flag if isinstance(flag, bool) else None
    kind = _error_kind(text, is_error, name, version, denial)
    return Message("tool", text, (), field_text(block, "tool_use_id"), name, is_error, kind)


def flatten_content_blocks(content: Any, unread: list[str], depth: int = 0) -> str:
    """Return content as text, images as placeholders.

    The names of parts that are not understood are added to `unread`.
    """
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        texts = [text for block in content if (text := content_block_text(block, unread, depth))]
        return texts[0] if len(texts) == 1 else "\n".join(texts)
    return "" if content is None else content_block_text(content, unread, depth)


def content_block_text(block: Any, unread: list[str], depth: int = 0) -> str:
    """Return one block as text, "" if it has none.

    The names of parts that are not understood are added to `unread`.
    """
    if isinstance(block, str):
        return block
    kind = block.get("type") if isinstance(block, dict) else None
    if depth > _DEEPEST or not isinstance(block, dict):
        unread.append(_name(block))
        return ""
    if kind in ("image", "document"):
        return _media(block, str(kind), unread)
    if kind == "tool_reference":
        if not isinstance(block.get("tool_name"), str):
            unread.append("tool_reference.tool_name")
        return f"{_LOADED}{field_text(block, 'tool_name')}]"
    if kind not in _TEXT_BLOCKS:
        unread.append(_name(block))  # its text is used all the same
    text, nested = block.get("text"), block.get("content")
    if isinstance(text, str):
        return text
    if isinstance(nested, str | list):
        return "\n".join(filter(None, (*_titles(block), flatten_content_blocks(nested, unread, depth + 1))))
    if kind in _TEXT_BLOCKS:
        unread.append(f"{_name(block)}.text")
    return ""


def _titles(block: dict[str, Any]) -> tuple[str, ...]:
    """Return the title and context of a document, or the title and source of a search result."""
    return tuple(field_text(block, key) for key in _TITLES.get(str(block.get("type")), ()))


def _name(block: Any) -> str:
    """Return the type of a block, or the type of the value where it is not a block."""
    if not isinstance(block, dict):
        return type(block).__name__
    kind = block.get("type")
    return kind if isinstance(kind, str) and kind else "untyped"


def loaded_tools_in_block(result: Message) -> Iterable[str]:
    """Return the names of the tools that a result loaded."""
    if not result.content.startswith(_LOADED):
        return ()
    lines = result.content.splitlines()
    return [line[len(_LOADED) : -1] for line in lines if line.startswith(_LOADED) and line.endswith("]")]


def started_agent_in_block(result: Message, structured: Any) -> str | None:
    """Return the id of the subagent that a call ran, None if it ran none.

    It is in the structured result (2.1.x), or in the text (2.0.x, and background agents of 2.1.x).
    """
    agent = structured.get("agentId") if isinstance(structured, dict) else None
    if isinstance(agent, str) or result.name not in STARTERS:
        return agent if isinstance(agent, str) else None
    match = _AGENT_ID.search(result.content)
    return match.group(1) if match else None


def compact_arguments(arguments: Any) -> str:
    """Return the arguments of a call as text, objects as compact JSON."""
    if isinstance(arguments, str):
        return arguments
    with suppress(TypeError):  # an integer of more than 64 bits, or very deep
        return orjson.dumps(arguments).decode()
    try:
        return json.dumps(arguments, separators=(",", ":"), ensure_ascii=False)
    except RecursionError:
        return "{}"


def _error_kind(
    text: str, is_error: bool | None, name: str | None, version: str, denial: Any
) -> ErrorKind | None:
    """Return why the result failed, None if it did not.

    Claude Code flags failures. Without a flag only its own tags count, and API errors of a subagent.
    """
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
    # 1.x gives the bare output of a failed command. 2.x begins it with "Exit code": other text is a hook's.
    return ErrorKind.EXIT_CODE if version.startswith("1.") else ErrorKind.HOOK


def _media(block: dict[str, Any], kind: str, unread: list[str]) -> str:
    source = block.get("source")
    if isinstance(source, dict) and isinstance(source.get("url"), str):
        text = image_url_placeholder(source["url"])
    elif not isinstance(source, dict) or not isinstance(data := source.get("data"), str):
        unread.append(f"{kind}.source")
        text = f"[{kind}]"
    elif source.get("type") == "text":
        text = data
    else:
        media_type = source.get("media_type")
        text = image_placeholder(media_type if isinstance(media_type, str) else f"{kind}/unknown", data)
    return "\n".join(filter(None, (*_titles(block), text)))
