"""What the agent of the OpenHands SDK (V1) is shown of an event, and whether that failed.

Follows `to_llm_message` and `to_llm_content` of the event and observation classes of openhands-sdk 1.x.
"""

from collections.abc import Mapping
from typing import Any

from ingesters.openhands_v0_text import command_text, exit_error
from ingesters.wire import call_of, reasoning_of, text_of
from records.identity import canonical_json
from records.message import ErrorKind, Message, ToolCall

Event = Mapping[str, Any]

_FAILED = "[An error occurred during execution.]\n"
_COMMAND_KINDS = frozenset({"TerminalObservation", "ExecuteBashObservation"})
RESULT_KINDS = frozenset({"ObservationEvent", "AgentErrorEvent", "UserRejectObservation"})
SYSTEM_KINDS = frozenset({"SystemPromptEvent", "SystemPromptUpdateEvent"})
SHOWN_KINDS = RESULT_KINDS | SYSTEM_KINDS | {"MessageEvent", "ActionEvent", "CondensationSummaryEvent"}
"""Events that become part of the prompt; all others are bookkeeping."""


def kind_of(event: Event) -> str:
    """The kind of an event, `untyped` where it names none."""
    kind = event.get("kind")
    return kind if isinstance(kind, str) and kind else "untyped"


def text_field(event: Event, name: str) -> str:
    """A text field, "" where it is absent or no text."""
    value = event.get(name)
    return value if isinstance(value, str) else ""


def system_message(event: Event) -> Message:
    """The system prompt with what is added per conversation behind it."""
    parts = (text_of(event.get("system_prompt")), text_of(event.get("dynamic_context")))
    return Message("system", "\n".join(filter(None, parts)))


def said_message(event: Event) -> Message:
    """A message of user or agent, with what the agent's context added to it."""
    inner = event.get("llm_message")
    message = inner if isinstance(inner, Mapping) else {}
    added = text_of(event.get("extended_content"))
    text = "\n".join(filter(None, (text_of(message.get("content")), added)))
    if event.get("source") == "agent" or message.get("role") == "assistant":
        return Message("assistant", text, reasoning=reasoning_of(message))
    return Message("user", text)


def action_message(events: list[Event]) -> Message:
    """The response behind actions of one response id: thought of the first, calls of all."""
    first = events[0]
    calls = tuple(_call(event, place) for place, event in enumerate(events))
    return Message("assistant", text_of(first.get("thought")), calls, reasoning=reasoning_of(first))


def result_message(event: Event) -> Message:
    """A tool result: what was observed, an error of the scaffold, or a rejection."""
    kind = kind_of(event)
    call_id, name = text_field(event, "tool_call_id"), text_field(event, "tool_name") or None
    if kind == "AgentErrorEvent":
        return Message("tool", text_field(event, "error"), (), call_id, name, True, ErrorKind.TOOL_ERROR)
    if kind == "UserRejectObservation":
        by_hook = event.get("rejection_source") == "hook"
        reason = f"Action rejected: {text_field(event, 'rejection_reason')}"
        error = ErrorKind.HOOK if by_hook else ErrorKind.USER_REJECTION
        return Message("tool", reason, (), call_id, name, True, error)
    inner = event.get("observation")
    observation = inner if isinstance(inner, Mapping) else {}
    text = observation_text(observation)
    added = text_of(event.get("extended_content"))
    failed, error = observation_error(observation)
    return Message("tool", "\n".join(filter(None, (text, added))), (), call_id, name, failed, error)


def observation_text(observation: Mapping[str, Any]) -> str:
    """The text of an observation as a model is shown it."""
    text = text_of(observation.get("content"))
    if not text and "content" not in observation:
        text = _other_text(observation)
    if observation.get("kind") in _COMMAND_KINDS:
        metadata = observation.get("metadata")
        text = command_text(text, metadata if isinstance(metadata, Mapping) else {})
    return _FAILED + text if observation.get("is_error") is True else text


def observation_error(observation: Mapping[str, Any]) -> tuple[bool | None, ErrorKind | None]:
    """Whether an observation is a failure (None: it does not say), and of which kind."""
    code = observation.get("exit_code")
    by_code = exit_error(code if isinstance(code, int) and not isinstance(code, bool) else None)
    if by_code[0]:
        return by_code
    if observation.get("timeout") is True:
        return True, ErrorKind.TIMEOUT
    flag = observation.get("is_error")
    if flag is True:
        return True, ErrorKind.TOOL_ERROR
    return (flag if isinstance(flag, bool) else by_code[0]), None


def working_dir(event: Event) -> str | None:
    """The working directory after a command."""
    observation = event.get("observation")
    metadata = observation.get("metadata") if isinstance(observation, Mapping) else None
    value = metadata.get("working_dir") if isinstance(metadata, Mapping) else None
    return value if isinstance(value, str) and value else None


def _other_text(observation: Mapping[str, Any]) -> str:
    """Text of observations without `content`: early versions and the TypeScript port."""
    for name in ("output", "text", "error"):
        value = observation.get(name)
        if isinstance(value, str) and value:
            return value
    streams = [observation.get(name) for name in ("stdout", "stderr")]
    if any(isinstance(stream, str) for stream in streams):
        return "\n".join(stream for stream in streams if isinstance(stream, str) and stream)
    rest = {k: v for k, v in observation.items() if k not in ("kind", "is_error")}
    return canonical_json(rest) if rest else ""


def _call(event: Event, place: int) -> ToolCall:
    """The call of an action; one without its call record is rebuilt from the parsed action."""
    fallback = text_field(event, "tool_call_id") or f"{text_field(event, 'id')}-{place}"
    call = call_of(event.get("tool_call"), fallback)
    if call is not None:
        return call
    action = event.get("action")
    arguments = {k: v for k, v in action.items() if k != "kind"} if isinstance(action, Mapping) else {}
    return ToolCall(fallback, text_field(event, "tool_name") or "unknown", canonical_json(arguments))
