"""Parts of the OpenAI chat shape as foreign files hold them, made into ours.

Everything here is tolerant: what has another type than expected gives the empty value, never an
exception. What is lost that way is for the caller to count.
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


def openai_content_text(content: Any) -> str:
    """Message content as text: parts are joined by newlines, an image becomes its placeholder."""
    if isinstance(content, str):
        return content
    if isinstance(content, dict):
        content = [content]
    if not isinstance(content, list):
        return ""
    return "\n".join(text for text in map(_part_text, content) if text)


def _part_text(part: Any) -> str:
    """One content part: text of any kind, or the placeholder of an image."""
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


def openai_image_text(url: Any) -> str:
    """The placeholder of an image given by address; "" for what is no address."""
    return image_url_placeholder(url) if isinstance(url, str) and url else ""


def _image_urls(part: Mapping[str, Any]) -> list[str]:
    """The addresses an image part gives, in any of the shapes in use."""
    single = part.get("image_url")
    if isinstance(single, dict):
        single = single.get("url")
    urls = part.get("image_urls")
    found = [single, *(urls if isinstance(urls, list) else [])]
    return [url for url in found if isinstance(url, str) and url]


def openai_argument_text(value: Any) -> str:
    """Call arguments as the string emitted; an object becomes canonical JSON, nothing becomes `{}`."""
    if isinstance(value, str):
        return value
    return "{}" if value is None else canonical_json(value)


def parse_openai_call(value: Any, fallback_id: str) -> ToolCall | None:
    """One tool call, nested (`function: {name, arguments}`) or flat; None where it has no name."""
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
    """The calls of an assistant message, the legacy `function_call` included.

    A call without an id gets `<fallback>-<place>`.
    """
    listed = message.get("tool_calls")
    values = listed if isinstance(listed, list) else []
    if not values and isinstance(message.get("function_call"), dict):
        values = [message["function_call"]]
    found = (parse_openai_call(value, f"{fallback}-{place}") for place, value in enumerate(values))
    return tuple(call for call in found if call is not None)


def openai_reasoning(message: Mapping[str, Any]) -> str | None:
    """Recorded thinking of an assistant message: as one text, else as the blocks of LiteLLM."""
    text = message.get("reasoning_content")
    blocks = message.get("thinking_blocks")
    if not text and isinstance(blocks, list):
        thought = (block.get("thinking") for block in blocks if isinstance(block, dict))
        text = "\n".join(part for part in thought if isinstance(part, str))
    return text if isinstance(text, str) and text.strip() else None


def parse_openai_tools(tools: Any, calls: Iterable[ToolCall], harness: Harness) -> tuple[ToolSpec, ...]:
    """Tools as recorded. Where a tool is recorded without the schema of its parameters, that is the
    stand-in of the harness, else inferred from `calls`; the origin of the spec says so."""
    if not isinstance(tools, list):
        return ()
    seen = tuple(calls)
    found = (_spec(tool, seen, harness) for tool in tools)
    return tuple(spec for spec in found if spec is not None)


def _spec(tool: Any, calls: tuple[ToolCall, ...], harness: Harness) -> ToolSpec | None:
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
    """The name of a tool, from the fields the versions have put it in."""
    notes = body.get("annotations")
    titled = notes.get("title") if isinstance(notes, dict) else None
    for name in (body.get("name"), body.get("title"), titled):
        if isinstance(name, str) and name:
            return name
    return None


def collect_message_calls(messages: Iterable[Message]) -> list[ToolCall]:
    """Every call in the messages, in order."""
    return [call for message in messages for call in message.tool_calls]


def parse_openai_usage(value: Any) -> Usage:
    """Token counts of a response, in the shapes of OpenAI, LiteLLM and OpenHands."""
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
