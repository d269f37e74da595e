"""Render V1 events as the model is shown them, and find out whether they failed.

Follows `to_llm_message` and `to_llm_content` of the event and observation classes of openhands-sdk 1.x.
"""

from collections.abc import Mapping
from typing import Any

from tracemill.ingesters.common.openai_messages import (
    as_mapping,
    first_text,
    openai_content_text,
    openai_reasoning,
    parse_openai_call,
    parse_openai_calls,
    parse_openai_usage,
    unread_call,
    unread_calls,
    unread_content,
)
from tracemill.ingesters.openhands.v0.observation_text import (
    command_observation_text,
    observation_exit_error,
    observation_failure_kind,
)
from tracemill.ingesters.reading.result_text import error_kind_of
from tracemill.records.identity import canonical_json
from tracemill.records.message import ErrorKind, Message, ToolCall
from tracemill.records.trace import Usage

Event = Mapping[str, Any]

MAX_TOOL_CHARS = 50_000
"""A longer text of a tool result is cut in the middle."""
_CUT = "<response clipped><NOTE>The middle of this text was left out: it is too long.</NOTE>"  # a stand-in
_FAILED = "[An error occurred during execution.]\n"
_COMMAND_FAILED = "[There was an error during command execution.]\n"
_COMMAND_KINDS = frozenset({"TerminalObservation", "ExecuteBashObservation"})
_EDITOR_KINDS = frozenset({"FileEditorObservation", "StrReplaceEditorObservation"})
RESULT_KINDS = frozenset({"ObservationEvent", "AgentErrorEvent", "UserRejectObservation"})
SYSTEM_KINDS = frozenset({"SystemPromptEvent", "SystemPromptUpdateEvent"})
SHOWN_KINDS = RESULT_KINDS | SYSTEM_KINDS | {"MessageEvent", "ActionEvent", "CondensationSummaryEvent"}
"""Events that become part of the prompt; all others are bookkeeping."""
_TEXT_FIELDS: Mapping[str, tuple[str, ...]] = {
    "AgentErrorEvent": ("error",),
    "UserRejectObservation": ("rejection_reason",),
    "CondensationSummaryEvent": ("summary",),
    "Condensation": ("summary",),
}
KNOWN_KINDS = SHOWN_KINDS | {
    *("Condensation", "CondensationRequest", "ConversationStateUpdateEvent", "ACPToolCallEvent"),
    *("LLMCompletionLogEvent", "HookExecutionEvent", "TokenEvent", "PauseEvent", "InterruptEvent"),
    "ConversationErrorEvent",
}
"""Kinds that this reader handles, bookkeeping included."""


def v1_event_kind(event: Event) -> str:
    """Return the kind of an event, `untyped` if it names none."""
    return first_text(event.get("kind")) or "untyped"


def event_text_field(event: Event, name: str) -> str:
    """Return a text field, "" if it is missing or not text."""
    value = event.get(name)
    return value if isinstance(value, str) else ""


def unread_event(event: Event) -> list[str]:
    """Return the names of parts of a prompt event that are not understood."""
    kind = v1_event_kind(event)
    if kind == "ActionEvent":
        call = unread_call(event.get("tool_call"))
        rebuilt = isinstance(event.get("action"), dict) and bool(event_text_field(event, "tool_name"))
        return unread_content(event.get("thought")) + ([call] if call and not rebuilt else [])
    unread = unread_content(event.get("extended_content"))
    if kind == "MessageEvent":
        message = event.get("llm_message")
        if not isinstance(message, dict):
            return ["llm_message"]
        return [*unread, *unread_content(message.get("content")), *unread_calls(message)]
    if kind == "ObservationEvent":
        observation = event.get("observation")
        if not isinstance(observation, dict):
            return ["observation"]
        return unread + unread_content(observation.get("content"))
    if kind in SYSTEM_KINDS:
        return [
            name for key in ("system_prompt", "dynamic_context") for name in unread_content(event.get(key))
        ]
    texts = _TEXT_FIELDS.get(kind, ())
    return [key for key in texts if not isinstance(event.get(key), str | None)]


def system_event_message(event: Event) -> Message:
    """Return the system prompt, followed by the text added for the conversation."""
    parts = (
        openai_content_text(event.get("system_prompt")),
        openai_content_text(event.get("dynamic_context")),
    )
    return Message("system", "\n".join(filter(None, parts)))


def text_event_message(event: Event) -> Message:
    """Return a message of user or agent, with the text that the agent's context added to it.

    In the TypeScript port it may hold calls of the agent, or be a tool result.
    """
    message = as_mapping(event.get("llm_message"))
    added = openai_content_text(event.get("extended_content"))
    text = "\n".join(filter(None, (openai_content_text(message.get("content")), added)))
    role, name = message.get("role"), message.get("name")
    if role == "tool":
        call_id = event_text_field(message, "tool_call_id")
        return Message("tool", _cut(text), (), call_id, name if isinstance(name, str) else None)
    if event.get("source") == "agent" or role == "assistant":
        calls = parse_openai_calls(message, event_text_field(event, "id"))
        return Message("assistant", text, calls, reasoning=openai_reasoning(message))
    return Message("user", text)


def action_event_message(events: list[Event]) -> Message:
    """Return the response of these actions: the thought of the first, the calls of all.

    A blank thought becomes "".
    """
    first = events[0]
    calls = tuple(_call(event, place) for place, event in enumerate(events))
    text = openai_content_text(first.get("thought"))
    return Message("assistant", text if text.strip() else "", calls, reasoning=openai_reasoning(first))


def result_event_message(event: Event) -> Message:
    """Return a tool result: an observation, an error of the scaffold, or a rejection."""
    kind = v1_event_kind(event)
    call_id, name = event_text_field(event, "tool_call_id"), event_text_field(event, "tool_name") or None
    if kind == "AgentErrorEvent":
        text = event_text_field(event, "error")
        return Message("tool", text, (), call_id, name, True, observation_failure_kind(text))
    if kind == "UserRejectObservation":
        by_hook = event.get("rejection_source") == "hook"
        reason = f"Action rejected: {event_text_field(event, 'rejection_reason')}"
        error = ErrorKind.HOOK if by_hook else ErrorKind.USER_REJECTION
        return Message("tool", reason, (), call_id, name, True, error)
    observation = as_mapping(event.get("observation"))
    body = observation_event_text(observation)
    failed, error = observation_event_error(observation, body)
    header = _FAILED if observation.get("is_error") is True else ""
    parts = (_task_info(observation), header, body, openai_content_text(event.get("extended_content")))
    text = "\n".join(filter(None, parts))
    return Message("tool", text, (), call_id, name, failed, error)


def observation_event_text(observation: Mapping[str, Any]) -> str:
    """Return the text of an observation as a model is shown it, without the header of a failure."""
    content = observation.get("content")
    if event_text_field(observation, "kind") in _COMMAND_KINDS:
        text = openai_content_text(content) if "content" in observation else _other_text(observation)
        header = _COMMAND_FAILED if observation.get("error") is True else ""
        return _cut(header + command_observation_text(text, as_mapping(observation.get("metadata"))))
    if "content" not in observation:
        content = _other_text(observation)
    parts = content if isinstance(content, list) else [content]
    screenshot = observation.get("screenshot_data")
    if isinstance(screenshot, str) and screenshot:
        parts = [*parts, {"image_urls": [f"data:image/png;base64,{screenshot}"]}]
    return "\n".join(_cut(text) for text in map(openai_content_text, parts) if text)


def observation_event_error(
    observation: Mapping[str, Any], text: str
) -> tuple[bool | None, ErrorKind | None]:
    """Return whether an observation with this text failed (None: unknown), and the kind of failure.

    Recorded fields decide, else the text.
    """
    code = observation.get("exit_code")
    by_code = observation_exit_error(code if isinstance(code, int) and not isinstance(code, bool) else None)
    if by_code[0]:
        return by_code
    if observation.get("timeout") is True:
        return True, ErrorKind.TIMEOUT
    flag = observation.get("is_error")
    if flag is True or (flag is None and observation.get("error")):
        return True, observation_failure_kind(text)
    is_error = flag if isinstance(flag, bool) else by_code[0]
    kind = error_kind_of(text, is_error)
    return (True, kind) if kind else (is_error, None)


def v1_event_call_id(event: Event) -> str:
    """Return the id of an action's call."""
    return event_text_field(event, "tool_call_id") or event_text_field(
        as_mapping(event.get("tool_call")), "id"
    )


def event_port_usage(value: Any) -> Usage:
    """Return token counts under the names of the TypeScript port."""
    usage = as_mapping(value)
    names = {"prompt_tokens": "input", "completion_tokens": "output", "cache_read_tokens": "cacheRead"}
    return parse_openai_usage(
        {ours: usage.get(f"{name}Tokens", usage.get(name)) for ours, name in names.items()}
    )


def event_working_dir(event: Event) -> str | None:
    """Return the working directory after a command."""
    return first_text(as_mapping(as_mapping(event.get("observation")).get("metadata")).get("working_dir"))


def _other_text(observation: Mapping[str, Any]) -> str:
    """Return the text of an observation without `content`.

    These are of versions before November 2025, where an error replaces all other text, and of the TypeScript
    port.
    """
    if error := event_text_field(observation, "error"):
        return error if observation.get("kind") in _EDITOR_KINDS else f"Error: {error}"
    if text := first_text(*(observation.get(name) for name in ("output", "text", "message"))):
        return text
    streams = [observation.get(name) for name in ("stdout", "stderr")]
    if any(isinstance(stream, str) for stream in streams):
        return "\n".join(stream for stream in streams if isinstance(stream, str) and stream)
    rest = {k: v for k, v in observation.items() if k not in ("kind", "is_error")}
    return canonical_json(rest) if rest else ""


def _task_info(observation: Mapping[str, Any]) -> str:
    """Return the header of the result of a subagent's task."""
    named = (("Task ID", "task_id"), ("Subagent", "subagent"), ("Status", "status"))
    if observation.get("kind") != "TaskObservation":
        return ""
    return "\n".join(f"{label}: {event_text_field(observation, name)}" for label, name in named)


def _cut(text: str) -> str:
    """Return the text without its middle where it is longer than a tool result may be."""
    if len(text) <= MAX_TOOL_CHARS:
        return text
    kept = MAX_TOOL_CHARS - len(_CUT)
    return text[: (kept + 1) // 2] + _CUT + text[-(kept // 2) :]


def _call(event: Event, place: int) -> ToolCall:
    """Return the call of an action; one without its call record is rebuilt from the parsed action."""
    fallback = v1_event_call_id(event) or f"{event_text_field(event, 'id')}-{place}"
    call = parse_openai_call(event.get("tool_call"), fallback)
    if call is not None:
        return call
    action = event.get("action")
    parsed = {k: v for k, v in action.items() if k != "kind"} if isinstance(action, dict) else {}
    return ToolCall(fallback, event_text_field(event, "tool_name") or "unknown", canonical_json(parsed))
