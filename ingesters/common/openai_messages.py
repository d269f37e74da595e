"""Parse messages, calls, tools and usage of the OpenAI chat shape.

The parsers are tolerant: a value of another type than expected gives the empty value, never an exception.
`unread_content` and `unread_calls` name what is lost that way, for the caller to count.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from tracemill.harnesses.agents.registry import Harness
from tracemill.harnesses.inferred_tools import infer_tool
from tracemill.ingesters.reading.result_text import image_placeholder, image_url_placeholder
from tracemill.records.identity import canonical_json
from tracemill.records.message import Message, ToolCall, ToolSpec
from tracemill.records.trace import Usage

_NO_USAGE = Usage()
TEXT_PARTS = frozenset(("text", "input_text", "output_text"))
IMAGE_PARTS = frozenset(("image", "image_url", "input_image"))
THOUGHT_PARTS = frozenset(("thinking", "redacted_thinking"))


def as_mapping(value: Any) -> Mapping[str, Any]:
    """Return a JSON object as it is, an empty mapping for any other value."""
    return value if isinstance(value, dict) else {}


def first_text(*values: Any) -> str | None:
    """Return the first value that is a text and not empty, None if there is none."""
    for value in values:  # called for every field of every record
        if isinstance(value, str) and value:
            return value
    return None


def openai_content_text(content: Any) -> str:
    """Return message content as text: parts are joined by newlines, an image becomes its placeholder."""
    if isinstance(content, str):
        return content
    if isinstance(content, dict):
        content = [content]
    if not isinstance(content, list):
        return ""
    return "\n".join(text for text in map(_part_text, content) if text)


def _part_text(part: Any) -> str:
    """Return one content part as text: text of any kind, or the placeholder of an image."""
    if isinstance(part, str):
        return part
    if not isinstance(part, dict):
        return ""
    text = part.get("text")
    if isinstance(text, str):
        return text
    source = part.get("source")
    if isinstance(source, dict) and isinstance(source.get("data"), str):
        return image_placeholder(str(source.get("media_type") or "image/unknown"), source["data"])
    return "\n".join(image_url_placeholder(url) for url in _image_urls(part))


def unread_content(content: Any) -> list[str]:
    """Return the names of the parts of a content that `openai_content_text` does not read."""
    if content is None or isinstance(content, str):
        return []
    if not isinstance(content, list | dict):
        return [type(content).__name__]
    parts = content if isinstance(content, list) else [content]
    return [name for name in map(_unread_part, parts) if name]


def _unread_part(part: Any) -> str:
    """Return the name of a content part that is not fully read, "" for one that is."""
    if isinstance(part, str):
        return ""
    if not isinstance(part, dict):
        return type(part).__name__
    kind = part.get("type")
    if kind in THOUGHT_PARTS:  # kept as reasoning, or encrypted
        return ""
    name = kind if isinstance(kind, str) else "untyped"
    if kind in TEXT_PARTS or (kind is None and "text" in part):
        return "" if isinstance(part.get("text"), str) else f"{name}.text"
    if kind in IMAGE_PARTS or (kind is None and _image_urls(part)):
        return "" if _part_text(part) else f"{name}.source"
    return name


def unread_calls(message: Mapping[str, Any]) -> list[str]:
    """Return the names of the parts of a message that `parse_openai_calls` does not read."""
    listed, legacy = message.get("tool_calls"), message.get("function_call")
    if listed and not isinstance(listed, list):
        return ["tool_calls"]
    values = [value for value in listed or () if value is not None]
    if not values and legacy and (not isinstance(legacy, dict) or any(legacy.values())):
        values = [legacy]
    return [name for name in map(unread_call, values) if name]


def unread_call(value: Any) -> str:
    """Return the name of the part of a tool call that is not read, "" if all is read."""
    inner = value.get("function") if isinstance(value, dict) else None
    body = inner if isinstance(inner, dict) else value
    if not isinstance(body, dict):
        return "tool_call"
    if not isinstance(body.get("name"), str) or not body["name"]:
        return "tool_call.name"
    return "" if isinstance(body.get("arguments"), str | dict) else "tool_call.arguments"


def openai_image_text(url: Any) -> str:
    """Return the placeholder of an image given by address, "" for anything else."""
    return image_url_placeholder(url) if isinstance(url, str) and url else ""


def _image_urls(part: Mapping[str, Any]) -> list[str]:
    """Return the addresses of an image part, in any of the shapes in use."""
    single = part.get("image_url")
    if isinstance(single, dict):
        single = single.get("url")
    urls = part.get("image_urls")
    candidates = [single, *(urls if isinstance(urls, list) else [])]
    return [url for url in candidates if isinstance(url, str) and url]


def openai_argument_text(value: Any) -> str:
    """Return call arguments as text: an object becomes canonical JSON, None becomes `{}`."""
    if isinstance(value, str):
        return value
    return "{}" if value is None else canonical_json(value)


def parse_openai_call(value: Any, fallback_id: str) -> ToolCall | None:
    """Return a tool call, nested (`function: {name, arguments}`) or flat; None if it has no name."""
    if not isinstance(value, dict):
        return None
    inner = value.get("function")
    body = inner if isinstance(inner, dict) else value
    name = body.get("name")
    if not isinstance(name, str) or not name:
        return None
    call_id = value.get("id") or value.get("call_id") or fallback_id
    arguments = body.get("arguments")
    return ToolCall(
        call_id if isinstance(call_id, str) else str(call_id),
        name,
        arguments if isinstance(arguments, str) else openai_argument_text(arguments),
    )


def parse_openai_calls(message: Mapping[str, Any], fallback: str) -> tuple[ToolCall, ...]:
    """Return the calls of an assistant message, including the legacy `function_call`.

    A call without an id gets `<fallback>-<index>`.
    """
    listed = message.get("tool_calls")
    values = listed if isinstance(listed, list) else []
    if not values and isinstance(message.get("function_call"), dict):
        values = [message["function_call"]]
    calls = (parse_openai_call(value, f"{fallback}-{place}") for place, value in enumerate(values))
    return tuple(call for call in calls if call is not None)


def openai_reasoning(message: Mapping[str, Any]) -> str | None:
    """Return the recorded thinking of an assistant message: one text, or the blocks of LiteLLM."""
    text = message.get("reasoning_content")
    blocks = message.get("thinking_blocks")
    if not text and isinstance(blocks, list):
        thought = (block.get("thinking") for block in blocks if isinstance(block, dict))
        text = "\n".join(part for part in thought if isinstance(part, str))
    return text if isinstance(text, str) and text.strip() else None


def parse_openai_tools(tools: Any, calls: Iterable[ToolCall], harness: Harness) -> tuple[ToolSpec, ...]:
    """Return the recorded tools.

    A tool recorded without a schema of its parameters gets the stand-in of the harness, else a schema
    inferred from `calls`; the origin of the spec says which.
    """
    if not isinstance(tools, list):
        return ()
    calls = tuple(calls)
    specs = (_tool_spec(tool, calls, harness) for tool in tools)
    return tuple(spec for spec in specs if spec is not None)


def _tool_spec(tool: Any, calls: tuple[ToolCall, ...], harness: Harness) -> ToolSpec | None:
    if not isinstance(tool, dict):
        return None
    inner = tool.get("function")
    body = inner if isinstance(inner, dict) else tool
    name = _tool_name(body)
    if name is None:
        return None
    description = body.get("description")
    text = description if isinstance(description, str) else ""
    schema = body.get("parameters") or body.get("input_schema")
    if isinstance(schema, dict):
        return ToolSpec(name, text, schema, "recorded")
    stand_in = harness.tools.get(name) or infer_tool(name, calls)
    return replace(stand_in, name=name, description=text or stand_in.description)


def _tool_name(body: Mapping[str, Any]) -> str | None:
    """Return the name of a tool, from any of the fields that versions have used for it."""
    notes = body.get("annotations")
    titled = notes.get("title") if isinstance(notes, dict) else None
    return first_text(body.get("name"), body.get("title"), titled)


def collect_message_calls(messages: Iterable[Message]) -> list[ToolCall]:
    """Return every call in the messages, in order."""
    return [call for message in messages for call in message.tool_calls]


def parse_openai_usage(value: Any) -> Usage:
    """Return the token counts of a response, in the shapes of OpenAI, LiteLLM and OpenHands."""
    if not isinstance(value, dict):
        return _NO_USAGE
    details = value.get("prompt_tokens_details") or value.get("input_tokens_details")
    nested = details.get("cached_tokens") if isinstance(details, dict) else None
    return Usage(
        _count(value.get("prompt_tokens"), value.get("input_tokens")),
        _count(value.get("completion_tokens"), value.get("output_tokens")),
        _count(value.get("cache_read_tokens"), value.get("cache_read_input_tokens"), nested),
    )


def _count(*candidates: Any) -> int | None:
    for number in candidates:
        if isinstance(number, int) and not isinstance(number, bool):
            return number
    return None
