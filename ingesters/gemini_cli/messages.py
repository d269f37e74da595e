"""Parse messages of Gemini CLI: parts of contents, calls with the results recorded beside them, thoughts."""

import re
from collections.abc import Mapping
from typing import Any

from tracemill.ingesters.common.openai_messages import as_mapping, first_text, openai_argument_text
from tracemill.ingesters.reading.result_text import error_kind_of, image_placeholder
from tracemill.records.identity import canonical_json
from tracemill.records.message import ErrorKind, Message, ToolCall
from tracemill.records.trace import Usage

UNSHOWN = ("info", "warning", "error")
"""Types of messages that only the user sees."""
FAILED = ("error", "cancelled")
_EXIT_CODE = re.compile(r"^Exit Code: (-?\d+)$", re.MULTILINE)
_PARTS = frozenset(("text", "functionCall", "functionResponse", "inlineData", "fileData"))
_IDLE_PARTS = frozenset(("thought", "thoughtSignature", "videoMetadata"))


def content_parts(content: Any) -> list[Any]:
    """Return the parts of a content: a text, a part, or a list of both."""
    listed = content if isinstance(content, list) else [] if content is None else [content]
    return [{"text": part} if isinstance(part, str) else part for part in listed]


def unread_parts(content: Any) -> list[str]:
    """Return the names of the parts of a content that are not read."""
    names: list[str] = []
    for part in content_parts(content):
        if not isinstance(part, dict):
            names.append(type(part).__name__)
        elif _PARTS.isdisjoint(part):
            names += sorted(part.keys() - _IDLE_PARTS) or ([] if part else ["untyped"])
    return names


def recorded_calls(record: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the calls of an answer that are recorded beside its content."""
    listed = record.get("toolCalls")
    return [call for call in listed if isinstance(call, dict)] if isinstance(listed, list) else []


def unread_recorded_calls(record: Mapping[str, Any]) -> list[str]:
    """Return the names of the unread parts of an answer's calls."""
    listed = record.get("toolCalls")
    if listed is not None and not isinstance(listed, list):
        return ["toolCalls"]
    whole = [call for call in recorded_calls(record) if first_text(call.get("name"))]
    return ["toolCalls"] * (len(listed or ()) - len(whole))


def content_text(content: Any) -> str:
    """Return the parts of a content as text; an image or a file becomes its placeholder."""
    texts = (_part_text(part) for part in content_parts(content) if isinstance(part, dict))
    return "\n".join(text for text in texts if text)


def _part_text(part: Mapping[str, Any]) -> str:
    if part.get("thought"):
        return ""
    data, file = as_mapping(part.get("inlineData")), as_mapping(part.get("fileData"))
    if isinstance(data.get("data"), str):
        return image_placeholder(first_text(data.get("mimeType")) or "image/unknown", data["data"])
    if file:
        return f"[file: {first_text(file.get('mimeType')) or 'of no known type'}, by address]"
    return first_text(part.get("text")) or ""


def answer_message(record: Mapping[str, Any]) -> Message:
    """Return an answer: its text, its calls, the summaries of its thoughts."""
    listed = recorded_calls(record)
    parts = (as_mapping(part) for part in content_parts(record.get("content")))
    inline = [as_mapping(part.get("functionCall")) for part in parts]
    both = [*listed, *(call for call in inline if call and not _is_listed(call, listed))]
    calls = tuple(
        ToolCall(
            first_text(call.get("id")) or f"{record.get('id')}-{place}",
            call["name"],
            openai_argument_text(call.get("args")),
        )
        for place, call in enumerate(both)
        if first_text(call.get("name"))
    )
    noted = record.get("thoughts")
    thoughts = [as_mapping(thought) for thought in noted] if isinstance(noted, list) else []
    lines = (first_text(each.get(key)) for each in thoughts for key in ("subject", "description"))
    reasoning = "\n".join(line for line in lines if line)
    return Message("assistant", content_text(record.get("content")), calls, reasoning=reasoning or None)


def _is_listed(inline: Mapping[str, Any], listed: list[dict[str, Any]]) -> bool:
    """Return whether a call in the content stands beside it: by its id, else by name and arguments."""
    keys = ("id",) if inline.get("id") else ("name", "args")
    return any(all(inline.get(key) == call.get(key) for key in keys) for call in listed)


def recorded_results(record: Mapping[str, Any]) -> list[Message]:
    """Return the results that are recorded beside the calls of an answer."""
    results: list[Message] = []
    for place, call in enumerate(recorded_calls(record)):
        if call.get("result"):
            call_id = first_text(call.get("id")) or f"{record.get('id')}-{place}"
            parts = content_parts(call["result"])
            results.append(_result(call_id, first_text(call.get("name")), parts, call.get("status")))
    return results


def sent_results(record: Mapping[str, Any]) -> list[Message]:
    """Return the results in the content of a message of the user."""
    results: list[Message] = []
    for part in content_parts(record.get("content")):
        answer = as_mapping(as_mapping(part).get("functionResponse"))
        if answer:
            call_id, name = first_text(answer.get("id")) or "", first_text(answer.get("name"))
            results.append(_result(call_id, name, [part], None))
    return results


def _result(call_id: str, name: str | None, parts: list[Any], status: Any) -> Message:
    """Return a result with why the call failed: by its status, its `error`, or the exit code in its text."""
    answers = [as_mapping(as_mapping(part).get("functionResponse")).get("response") for part in parts]
    texts = [_answer_text(as_mapping(answer)) for answer in answers if answer]
    text = "\n".join(each for each in (*texts, content_text(parts)) if each)
    failed = status in FAILED or any("error" in as_mapping(answer) for answer in answers)
    kind: ErrorKind | None = None
    code = _EXIT_CODE.search(text) if name == "run_shell_command" else None
    if status == "cancelled":
        kind = ErrorKind.USER_REJECTION
    elif code and int(code[1]):
        failed, kind = True, ErrorKind.EXIT_CODE
    elif failed:
        kind = error_kind_of(text, True)
        kind = ErrorKind.TOOL_ERROR if kind == ErrorKind.UNKNOWN else kind
    return Message("tool", text, tool_call_id=call_id, name=name, is_error=failed, error_kind=kind)


def _answer_text(answer: Mapping[str, Any]) -> str:
    for key in ("output", "error"):
        if isinstance(answer.get(key), str):
            return answer[key]
    return canonical_json(dict(answer))


def parse_usage(value: Any) -> Usage:
    """Return the tokens of an answer, thoughts among the completion; none if all are zero."""
    tokens = as_mapping(value)
    prompt, output, cached, thoughts = (tokens.get(key) for key in ("input", "output", "cached", "thoughts"))
    if not isinstance(prompt, int) or not prompt:
        return Usage()
    completion = sum(each for each in (output, thoughts) if isinstance(each, int))
    return Usage(prompt, completion, cached if isinstance(cached, int) else None)
