"""Convert messages of the Vercel AI SDK to chat messages.

`CoreMessage` (v3, v4) and `ModelMessage` (since v5) hold content parts as they were sent. `UIMessage` holds
`parts` as an application showed them: each tool with its result, each request behind a `step-start`. Sources:
https://ai-sdk.dev/docs/reference/ai-sdk-core/model-message and .../ui-message.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from tracemill.ingesters.swe_gym.response_items import TEXT_BEHIND_CALL
from tracemill.ingesters.swe_gym.row_messages import (
    NotUnderstood,
    check_known_keys,
    part_not_understood,
    plain_name,
)
from tracemill.records.identity import canonical_json

_NOTES = frozenset(
    (
        *("type", "state", "providerOptions", "providerMetadata", "callProviderMetadata"),
        "experimental_providerMetadata",
    )
)
_TOOL = _NOTES | {"toolCallId", "toolName", "title", "resultProviderMetadata"}
PART_KEYS: Mapping[str, frozenset[str]] = {
    "text": _NOTES | {"text"},
    "reasoning": _NOTES | {"text", "reasoning", "details", "signature"},
    "image": _NOTES | {"image", "mimeType", "mediaType"},
    "tool-call": _TOOL | {"args", "input"},
    "tool-result": _TOOL | {"result", "output", "isError"},
    "tool-invocation": _NOTES | {"toolInvocation"},
    "dynamic-tool": _TOOL | {"input", "output", "errorText"},
    "step-start": _NOTES,
}
"""Parts that are read, with their keys; `tool-NAME` of a UIMessage has those of `dynamic-tool`."""
_ANSWERED = frozenset(("output-available", "result"))
_OPEN = frozenset(("input-available", "call"))
UI_KEYS = frozenset(("parts", "content", "createdAt", "toolInvocations", "reasoning"))
"""Keys that only a `UIMessage` has: its time, and repetitions of its parts."""


def is_ui_message(item: Any) -> bool:
    """Return whether a message is a `UIMessage`: its parts have types."""
    parts = item.get("parts") if isinstance(item, dict) else None
    return (
        bool(parts)
        and isinstance(parts, list)
        and item.get("role") in ("system", "user", "assistant")
        and all(isinstance(part, dict) and isinstance(part.get("type"), str) for part in parts)
    )


def is_core_message(item: Any) -> bool:
    """Return whether a message has content parts with the SDK's names."""
    parts = item.get("content") if isinstance(item, dict) else None
    return isinstance(parts, list) and any(
        isinstance(part, dict)
        and (
            part.get("type") in ("tool-call", "tool-result", "reasoning")
            or isinstance(part.get("image"), str)
        )
        for part in parts
    )


def holds_bare_results(item: Any) -> bool:
    """Return whether a message holds results of v3 or v4, whose original text is not recorded."""
    parts = item.get("content") if isinstance(item, dict) else None
    return isinstance(parts, list) and any(
        isinstance(part, dict) and part.get("type") == "tool-result" and part.get("output") is None
        for part in parts
    )


def chat_of_core(item: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield a `CoreMessage` or a `ModelMessage` as chat messages. Raises NotUnderstood."""
    if item.get("role") != "tool":
        yield from _turn(
            item, {key: value for key, value in item.items() if key != "content"}, item["content"]
        )
        return
    for part in item["content"]:
        if _kind(part) != "tool-result":
            raise part_not_understood(_kind(part))
        yield _result(part)


def chat_of_ui(item: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield a `UIMessage` as chat messages, several for tools with results. Raises NotUnderstood."""
    rest = {key: value for key, value in item.items() if key not in UI_KEYS}
    parts = item["parts"]
    text = "".join(
        part["text"] for part in parts if _kind(part) == "text" and isinstance(part.get("text"), str)
    )
    content = item.get("content")
    if isinstance(content, str) and content.strip() and "".join(content.split()) != "".join(text.split()):
        raise NotUnderstood("content that differs from the parts")
    step: list[Mapping[str, Any]] = []
    for part in parts:
        if _kind(part) == "step-start":
            yield from _turn(item, rest, step)
            step = []
        else:
            step.append(part)
    yield from _turn(item, rest, step)


def _turn(item: Mapping[str, Any], rest: Mapping[str, Any], parts: Iterable[Any]) -> Iterator[dict[str, Any]]:
    """Yield the message of the parts, followed by the results that they hold; nothing for no parts."""
    content: list[Any] = []
    calls: list[dict[str, Any]] = []
    thoughts: list[str] = []
    results: list[dict[str, Any]] = []
    for part in parts:
        kind = _kind(part)
        if kind == "text":
            if calls:
                raise NotUnderstood(TEXT_BEHIND_CALL)
            content.append({"type": "text", "text": part.get("text")})
        elif kind == "image":
            content.append(_image(part))
        elif item.get("role") != "assistant":
            raise part_not_understood(kind)
        elif kind == "reasoning":
            thoughts.append(str(part.get("text") or part.get("reasoning") or ""))
        elif kind == "tool-call":
            calls.append(_call(part, part.get("toolName")))
        elif kind == "tool-result":
            raise NotUnderstood("tool-result in a message of the agent")
        else:
            _use(part, kind, calls, results)
    if content or calls or thoughts:
        calls_field = {"tool_calls": calls} if calls else {}
        thought = {"reasoning_content": "\n\n".join(filter(None, thoughts))} if thoughts else {}
        yield {**rest, "content": content, **calls_field, **thought}
    yield from results


def _use(
    part: Mapping[str, Any], kind: str, calls: list[dict[str, Any]], results: list[dict[str, Any]]
) -> None:
    """Add the call of a tool of a `UIMessage`, and its result if there is one."""
    use = part["toolInvocation"] if isinstance(part.get("toolInvocation"), dict) else part
    state = use.get("state")
    name = use.get("toolName") or kind.removeprefix("tool-")
    if state not in _ANSWERED and state not in _OPEN and state != "output-error":
        raise NotUnderstood(f"state of a tool not understood: {plain_name(state)}")
    calls.append(_call(use, name))
    if state in _ANSWERED:
        text = _text(_either(use, "result", "output"))
        results.append({"role": "tool", "tool_call_id": use["toolCallId"], "name": name, "content": text})
    elif state == "output-error":
        text = _text(use.get("errorText"))
        failed = {"role": "tool", "tool_call_id": use["toolCallId"], "name": name, "content": text}
        results.append(failed | {"is_error": True})


def _call(part: Mapping[str, Any], name: Any) -> dict[str, Any]:
    call_id, arguments = part.get("toolCallId"), _either(part, "args", "input")
    if not isinstance(call_id, str) or not call_id or not isinstance(arguments, dict):
        raise NotUnderstood("tool call without toolCallId or arguments")
    return {"id": call_id, "function": {"name": name, "arguments": canonical_json(arguments)}}


def _result(part: Mapping[str, Any]) -> dict[str, Any]:
    """Return the result of a call: `output` names its kind, `result` of v3 and v4 is the value itself."""
    call_id, output = part.get("toolCallId"), part.get("output")
    if not isinstance(call_id, str) or not call_id:
        raise NotUnderstood("tool-result without toolCallId")
    message: dict[str, Any] = {"role": "tool", "tool_call_id": call_id, "name": part.get("toolName")}
    if output is None:
        flag = {"is_error": True} if part.get("isError") is True else {}
        return message | {"content": _text(part.get("result"))} | flag
    kind = output.get("type") if isinstance(output, dict) else None
    if kind not in ("text", "json", "error-text", "error-json", "content"):
        raise NotUnderstood(f"output of a tool not understood: {plain_name(kind)}")
    value = output.get("value")
    flag = {"is_error": True} if kind.startswith("error-") else {}
    return message | {"content": value if kind == "content" else _text(value)} | flag


def _image(part: Mapping[str, Any]) -> dict[str, Any]:
    """Return an image by address or by its data."""
    image = part.get("image")
    if not isinstance(image, str) or not image:
        raise NotUnderstood("image that is not text")
    if not image.startswith(("http:", "https:", "data:")):
        image = f"data:{part.get('mediaType') or part.get('mimeType') or 'image/unknown'};base64,{image}"
    return {"type": "image_url", "image_url": {"url": image}}


def _kind(part: Any) -> str:
    """Return the kind of a part that is fully read. Raises NotUnderstood."""
    kind = part.get("type") if isinstance(part, dict) else None
    if not isinstance(kind, str):
        raise part_not_understood(None)
    if kind.startswith("tool-") and kind not in PART_KEYS:
        check_known_keys(part, PART_KEYS["dynamic-tool"], "key of a tool")
    elif kind not in PART_KEYS:
        raise part_not_understood(kind)
    else:
        check_known_keys(part, PART_KEYS[kind], f"key of {kind}")
    return kind


def _text(value: Any) -> str:
    """Return a value as it is sent: text as it is, anything else as JSON with its keys in order."""
    if value is None:
        raise NotUnderstood("tool-result without a result")
    return value if isinstance(value, str) else json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def _either(part: Mapping[str, Any], early: str, late: str) -> Any:
    """Return the value at the key of v3 and v4, else at that since v5; a table has both, one of them null."""
    value = part.get(early)
    return part.get(late) if value is None else value
