"""What the agent of the OpenHands SDK (V1) is shown of an event, and whether that failed.

Follows `to_llm_message` and `to_llm_content` of the event and observation classes of openhands-sdk 1.x.
"""

from collections.abc import Mapping
from typing import Any

from tracemill.ingesters.common.openai_messages import (
    openai_content_text,
    openai_reasoning,
    parse_openai_call,
    parse_openai_calls,
    parse_openai_usage,
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
"""Above this a text of a tool result is cut in the middle."""
_CUT = "<response clipped><NOTE>The middle of this text was left out: it is too long.</NOTE>"  # our words
_FAILED = "[An error occurred during execution.]\n"
_COMMAND_FAILED = "[There was an error during command execution.]\n"
_COMMAND_KINDS = frozenset({"TerminalObservation", "ExecuteBashObservation"})
_EDITOR_KINDS = frozenset({"FileEditorObservation", "StrReplaceEditorObservation"})
RESULT_KINDS = frozenset({"ObservationEvent", "AgentErrorEvent", "UserRejectObservation"})
SYSTEM_KINDS = frozenset({"SystemPromptEvent", "SystemPromptUpdateEvent"})
SHOWN_KINDS = RESULT_KINDS | SYSTEM_KINDS | {"MessageEvent", "ActionEvent", "CondensationSummaryEvent"}
"""Events that become part of the prompt; all others are bookkeeping."""


def v1_event_kind(event: Event) -> str:
    """The kind of an event, `untyped` where it names none."""
    kind = event.get("kind")
    return kind if isinstance(kind, str) and kind else "untyped"


def event_text_field(event: Event, name: str) -> str:
    """A text field, "" where it is absent or no text."""
    value = event.get(name)
    return value if isinstance(value, str) else ""


def system_event_message(event: Event) -> Message:
    """The system prompt with what is added per conversation behind it."""
    parts = (
        openai_content_text(event.get("system_prompt")),
        openai_content_text(event.get("dynamic_context")),
    )
    return Message("system", "\n".join(filter(None, parts)))


def spoken_event_message(event: Event) -> Message:
    """A message of user or agent, with what the agent's context added to it.

    In the port to TypeScript it may bear calls of the agent, or be the result of one as it was shown.
    """
    message = _mapping(event.get("llm_message"))
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
    """The response behind actions of one response id: thought of the first, calls of all. A thought that is
    blank is not sent."""
    first = events[0]
    calls = tuple(_call(event, place) for place, event in enumerate(events))
    text = _plain(first.get("thought"))
    return Message("assistant", text if text.strip() else "", calls, reasoning=openai_reasoning(first))


def result_event_message(event: Event) -> Message:
    """A tool result: what was observed, an error of the scaffold, or a rejection."""
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
    observation = _mapping(event.get("observation"))
    said = observation_event_text(observation)
    failed, error = observation_event_error(observation, said)
    header = _FAILED if observation.get("is_error") is True else ""
    parts = (_task_info(observation), header, said, _plain(event.get("extended_content")))
    text = "\n".join([part for part in parts if part])
    return Message("tool", text, (), call_id, name, failed, error)


def observation_event_text(observation: Mapping[str, Any]) -> str:
    """The text of an observation as a model is shown it, without what stands in front of a failure."""
    content = observation.get("content")
    if event_text_field(observation, "kind") in _COMMAND_KINDS:
        text = _plain(content) if "content" in observation else _other_text(observation)
        header = _COMMAND_FAILED if observation.get("error") is True else ""
        return _cut(header + command_observation_text(text, _mapping(observation.get("metadata"))))
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
    """Whether an observation that reads `text` is a failure (None: it does not say), and of which kind: by
    its fields, else by its text."""
    code = observation.get("exit_code")
    by_code = observation_exit_error(code if isinstance(code, int) and not isinstance(code, bool) else None)
    if by_code[0]:
        return by_code
    if observation.get("timeout") is True:
        return True, ErrorKind.TIMEOUT
    flag = observation.get("is_error")
    if flag is True or (flag is None and observation.get("error")):
        return True, observation_failure_kind(text)
    known = flag if isinstance(flag, bool) else by_code[0]
    kind = error_kind_of(text, known)
    return (True, kind) if kind else (known, None)


def v1_event_call_id(event: Event) -> str:
    """The id of the call an action is."""
    return event_text_field(event, "tool_call_id") or event_text_field(_mapping(event.get("tool_call")), "id")


def event_port_usage(value: Any) -> Usage:
    """Token counts as the port to TypeScript names them."""
    given = _mapping(value)
    names = {"prompt_tokens": "input", "completion_tokens": "output", "cache_read_tokens": "cacheRead"}
    return parse_openai_usage(
        {ours: given.get(f"{name}Tokens", given.get(name)) for ours, name in names.items()}
    )


def event_working_dir(event: Event) -> str | None:
    """The working directory after a command."""
    value = _mapping(_mapping(event.get("observation")).get("metadata")).get("working_dir")
    return value if isinstance(value, str) and value else None


def _other_text(observation: Mapping[str, Any]) -> str:
    """Text of observations without `content`: versions before November 2025, where an error stands in
    place of all else, and the TypeScript port."""
    if error := event_text_field(observation, "error"):
        return error if observation.get("kind") in _EDITOR_KINDS else f"Error: {error}"
    for name in ("output", "text", "message"):
        value = observation.get(name)
        if isinstance(value, str) and value:
            return value
    streams = [observation.get(name) for name in ("stdout", "stderr")]
    if any(isinstance(stream, str) for stream in streams):
        return "\n".join(stream for stream in streams if isinstance(stream, str) and stream)
    rest = {k: v for k, v in observation.items() if k not in ("kind", "is_error")}
    return canonical_json(rest) if rest else ""


def _task_info(observation: Mapping[str, Any]) -> str:
    """What stands in front of the result of a task given to a subagent."""
    named = (("Task ID", "task_id"), ("Subagent", "subagent"), ("Status", "status"))
    if observation.get("kind") != "TaskObservation":
        return ""
    return "\n".join(f"{label}: {event_text_field(observation, name)}" for label, name in named)


def _plain(content: Any) -> str:
    """`openai_content_text`, which is nearly always asked for nothing or for one text."""
    if not content:
        return ""
    if type(content) is list and len(content) == 1 and type(content[0]) is dict:
        text = content[0].get("text")
        if type(text) is str:
            return text
    return openai_content_text(content)


def _cut(text: str) -> str:
    """The text without its middle where it is longer than a tool result may be."""
    if len(text) <= MAX_TOOL_CHARS:
        return text
    kept = MAX_TOOL_CHARS - len(_CUT)
    return text[: (kept + 1) // 2] + _CUT + text[-(kept // 2) :]


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _call(event: Event, place: int) -> ToolCall:
    """The call of an action; one without its call record is rebuilt from the parsed action."""
    given = event.get("tool_call")
    if type(given) is dict:
        own, name, arguments = given.get("id"), given.get("name"), given.get("arguments")
        if own and name and isinstance(own, str) and isinstance(name, str) and isinstance(arguments, str):
            return ToolCall(own, name, arguments)
    fallback = v1_event_call_id(event) or f"{event_text_field(event, 'id')}-{place}"
    call = parse_openai_call(given, fallback)
    if call is not None:
        return call
    action = event.get("action")
    parsed = {k: v for k, v in action.items() if k != "kind"} if isinstance(action, dict) else {}
    return ToolCall(fallback, event_text_field(event, "tool_name") or "unknown", canonical_json(parsed))
