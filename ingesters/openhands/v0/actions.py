"""Build the assistant message behind an action of OpenHands V0.

With `tool_call_metadata` it is the recorded response of the model, the same for all actions of that response.
Without (before 0.14, resolver outputs), the call is rebuilt from the action's arguments.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tracemill.ingesters.common.openai_messages import (
    first_text,
    openai_content_text,
    openai_reasoning,
    parse_openai_calls,
)
from tracemill.ingesters.openhands.v0.events import V0Event, recorded_message
from tracemill.records.identity import canonical_json
from tracemill.records.message import Message, ToolCall

SILENT_ACTIONS = frozenset(
    {
        "null", "change_agent_state", "recall", "condensation_request", "loop_recovery",
        "initialize", "start", "pause", "resume", "stop",
    }
)  # fmt: skip
"""Actions that the model neither did nor was shown."""

_REBUILT: Mapping[str, tuple[str, Mapping[str, str]]] = {
    "run": ("execute_bash", {"command": "command", "is_input": "is_input"}),
    "run_ipython": ("execute_ipython_cell", {"code": "code"}),
    "read": ("str_replace_editor", {"path": "path", "view_range": "view_range"}),
    "write": ("str_replace_editor", {"path": "path", "content": "file_text"}),
    "browse": ("web_read", {"url": "url"}),
    "browse_interactive": ("browser", {"browser_actions": "code"}),
    "think": ("think", {"thought": "thought"}),
    "finish": ("finish", {"final_thought": "message", "task_completed": "task_completed"}),
}
KNOWN_ACTIONS = (
    SILENT_ACTIONS
    | _REBUILT.keys()
    | {"edit", "message", "system", "delegate", "condensation"}
    | {"call_tool_mcp", "task_tracking", "reject"}  # by their own names
)
"""Actions that this reader handles."""
_COMMANDS = {"read": "view", "write": "create"}
_EDIT_KEYS = ("command", "path", "file_text", "old_str", "new_str", "insert_line")
_LLM_EDIT_KEYS = ("path", "content", "start", "end")
_BOOKKEEPING = frozenset(
    {
        "thought", "hidden", "blocking", "keep_prompt", "confirmation_state", "is_confirmed",
        "action_risk", "security_risk", "kernel_init_code", "impl_source", "include_extra",
    }
)  # fmt: skip


@dataclass(slots=True)
class V0Response:
    """A response of the model: `id` is the source's id of it, `usage` its token counts as recorded."""

    message: Message
    id: str | None = None
    model: str | None = None
    usage: Any = None
    rebuilt: bool = False


def v0_action_response_key(event: V0Event) -> str:
    """Return a key of the response that an action belongs to: its id, else the id of the event."""
    if event.call is None:
        return f"event {event.id}"
    recorded = event.call.get("model_response")
    native = recorded.get("id") if isinstance(recorded, dict) else None
    return str(native) if native and recorded_message(event.call) is not None else f"event {event.id}"


def v0_action_response(event: V0Event) -> V0Response:
    """Return the response that an agent's action came from."""
    if event.call is None:
        return V0Response(_rebuilt(event), rebuilt=True)
    recorded = event.call.get("model_response")
    message = recorded_message(event.call)
    if not isinstance(recorded, dict) or message is None:
        return V0Response(_rebuilt(event), rebuilt=True)
    native, model = recorded.get("id"), recorded.get("model")
    return V0Response(
        message=_assistant(message, str(native) if native else f"event {event.id}"),
        id=str(native) if native else None,
        model=model if isinstance(model, str) else None,
        usage=recorded.get("usage"),
    )


def v0_action_call_id(event: V0Event) -> str | None:
    """Return the id of the call an event belongs to, None if it has no call metadata."""
    return first_text(event.call.get("tool_call_id")) if event.call else None


def rebuilt_action_call_id(event_id: int) -> str:
    """Return the id of a call that is rebuilt from an action."""
    return f"call-{event_id}"


def _assistant(message: Mapping[str, Any], key: str) -> Message:
    """Return the recorded response as a message; blank text becomes ""."""
    text = openai_content_text(message.get("content"))
    return Message(
        "assistant",
        text if text.strip() else "",
        parse_openai_calls(message, key),
        reasoning=openai_reasoning(message),
    )


def _rebuilt(event: V0Event) -> Message:
    """Return an assistant message with the call rebuilt from an action."""
    name, arguments = _call_parts(event)
    call_id = v0_action_call_id(event) or rebuilt_action_call_id(event.id)
    recorded_name = event.call.get("function_name") if event.call else None
    call = ToolCall(call_id, first_text(recorded_name) or name, canonical_json(arguments))
    return Message("assistant", "" if event.name == "think" else event.field("thought"), (call,))


def _call_parts(event: V0Event) -> tuple[str, dict[str, Any]]:
    """Return tool and arguments of an action; an unknown action is called by its own name."""
    fields = event.fields
    if event.name == "edit":
        by_command = isinstance(fields.get("command"), str) and bool(fields["command"])
        keys = _EDIT_KEYS if by_command else _LLM_EDIT_KEYS
        return "str_replace_editor" if by_command else "edit_file", _given(fields, {k: k for k in keys})
    if event.name in _REBUILT:
        name, keys = _REBUILT[event.name]
        arguments = _given(fields, keys)
        if event.name in _COMMANDS:
            arguments["command"] = _COMMANDS[event.name]
        return name, arguments
    return event.name, {k: v for k, v in fields.items() if k not in _BOOKKEEPING and v is not None}


def _given(fields: Mapping[str, Any], keys: Mapping[str, str]) -> dict[str, Any]:
    """Return the fields that are set, under the names of the tool's parameters."""
    return {new: value for old, new in keys.items() if (value := fields.get(old)) not in (None, False, "")}
