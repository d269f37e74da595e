"""Parse messages of mini-swe-agent runs, of all its model classes."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from tracemill.harnesses.core.vocabulary import Operation
from tracemill.harnesses.operations import find_action_operation
from tracemill.harnesses.text_calls import calls_in_text
from tracemill.ingesters.common.chat_messages import (
    make_chat_observation,
    parse_chat_message,
    unread_chat_message,
)
from tracemill.ingesters.common.openai_messages import (
    openai_content_text,
    parse_openai_call,
    unread_call,
    unread_content,
)
from tracemill.ingesters.swe_agent.metadata import metadata_mapping
from tracemill.records.message import Action, ErrorKind, Message

_HARNESS = "mini_swe_agent"
_NOT_RUN = "action was not executed"


def parse_mini_message(item: Any, fallback: str) -> Message | None:
    """Return a message in the chat shape, or an item of the Responses API; None for any other value."""
    if not isinstance(item, dict):
        return None
    if item.get("object") == "response" or isinstance(item.get("output"), list):
        return _of_response(item, fallback)
    if item.get("type") == "function_call_output":
        call_id = item.get("call_id")
        text = openai_content_text(item.get("output"))
        return make_chat_observation("tool", text, call_id if isinstance(call_id, str) else "")
    return parse_chat_message(item, fallback)


def unread_mini_message(item: Any) -> list[str]:
    """Return the names of the parts of a message that `parse_mini_message` does not read."""
    if not isinstance(item, dict):
        return [type(item).__name__]
    if item.get("object") == "response" or isinstance(item.get("output"), list):
        output = item.get("output")
        parts = output if isinstance(output, list) else [output]
        return [name for part in parts for name in _unread_output(part)]
    if item.get("type") == "function_call_output":
        return unread_content(item.get("output"))
    return unread_chat_message(item)


def _unread_output(part: Any) -> list[str]:
    """Return the names of the parts of an answer's item that are not read."""
    kind = part.get("type") if isinstance(part, dict) else None
    if kind == "message":
        return unread_content(part.get("content"))
    if kind == "function_call":
        return [name] if (name := unread_call(part)) else []
    return [] if kind == "reasoning" else [f"item.{kind}" if isinstance(kind, str) else "item"]


def _of_response(item: Mapping[str, Any], fallback: str) -> Message:
    """Return the answer in a response: its texts, its calls, the summaries of its reasoning."""
    output = item.get("output")
    parts = [part for part in (output if isinstance(output, list) else []) if isinstance(part, dict)]
    texts = [openai_content_text(part.get("content")) for part in parts if part.get("type") == "message"]
    thought = [openai_content_text(part.get("summary")) for part in parts if part.get("type") == "reasoning"]
    listed = [part for part in parts if part.get("type") == "function_call"]
    calls = (
        parse_openai_call({**part, "id": part.get("call_id") or part.get("id")}, f"{fallback}-{place}")
        for place, part in enumerate(listed)
    )
    return Message(
        "assistant",
        "\n".join(text for text in texts if text),
        tuple(call for call in calls if call is not None),
        reasoning="\n".join(text for text in thought if text) or None,
    )


def mini_result_message(message: Message, extra: Mapping[str, Any], before: Message | None) -> Message:
    """Return a message that is not an answer with its failure: by exit code where one is recorded.

    An answer without exactly one command is always refused.
    """
    if before is None or message.role == "system":
        return message
    if "returncode" in extra:
        is_error, kind = _by_code(extra)
        return replace(message, is_error=is_error, error_kind=kind)
    by_text = before.role == "assistant" and not before.tool_calls and message.role == "user"
    if by_text and not calls_in_text(before.content, _HARNESS):
        return replace(message, is_error=True, error_kind=ErrorKind.TOOL_ERROR)
    return message


def _by_code(extra: Mapping[str, Any]) -> tuple[bool | None, ErrorKind | None]:
    code, fault = extra.get("returncode"), extra.get("exception_info")
    if fault == _NOT_RUN:
        return True, ErrorKind.USER_REJECTION
    if isinstance(fault, str) and fault:
        is_late = "timed out" in fault or "Timeout" in str(extra.get("exception_type"))
        return True, ErrorKind.TIMEOUT if is_late else ErrorKind.TOOL_ERROR
    if not isinstance(code, int):
        return None, None
    return (False, None) if code == 0 else (True, ErrorKind.EXIT_CODE)


def is_exit(item: Any, before: Any, info: Mapping[str, Any]) -> bool:
    """Return whether the last message says how the run ended.

    In 2.x it is marked `exit` in role or `extra`. In 1.x it is a user message after the submitting command,
    or one that repeats the submission.
    """
    if not isinstance(item, dict):
        return False
    if item.get("role") == "exit" or "exit_status" in metadata_mapping(item.get("extra")):
        return True
    if item.get("role") != "user" or not isinstance(before, dict):
        return False
    text, submitted = openai_content_text(item.get("content")), info.get("submission")
    if info.get("exit_status") and (not text or text == submitted):
        return True
    answer = parse_mini_message(before, "call")
    if answer is None or answer.role != "assistant":
        return False
    handed_in = find_action_operation(Action.of(answer), _HARNESS) == Operation.FINISH
    return handed_in and not text.startswith("<returncode>")
