"""Known kinds of OpenHands events and their keys; the kinds are those that the readers handle."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from tracemill.ingesters.format import Record, RecordKind
from tracemill.ingesters.openhands.files import unpack_row
from tracemill.ingesters.openhands.v0.actions import KNOWN_ACTIONS
from tracemill.ingesters.openhands.v0.events import EVENT_KEYS, is_status_event, unread_v0_event
from tracemill.ingesters.openhands.v0.observation_text import KNOWN_OBSERVATIONS
from tracemill.ingesters.openhands.v1.event_text import KNOWN_KINDS, unread_event

_HISTORIES = ("history", "trajectory", "events")
_LOG_KEYS = frozenset(
    {
        "messages", "instructions", "input", "response", "tools", "kwargs", "cost", "timestamp",
        "usage_summary", "raw_messages", "raw_response", "fncall_messages", "fncall_response",
        "context_window", "latency_sec", "llm_path",
    }
)  # fmt: skip
_COMMON = frozenset({"id", "timestamp", "source", "kind", "parent_id"})
_CALL = _COMMON | {"tool_name", "tool_call_id"}
_KEYS: Mapping[str, frozenset[str]] = {
    "ActionEvent": _CALL
    | {"thought", "reasoning_content", "thinking_blocks", "responses_reasoning_item", "action", "tool_call"}
    | {"llm_response_id", "security_risk", "critic_result", "summary"},
    "MessageEvent": _COMMON
    | {"llm_message", "extended_content", "llm_response_id", "activated_skills", "activated_microagents"}
    | {"sender", "critic_result"},
    "ObservationEvent": _CALL | {"observation", "action_id", "extended_content"},
    "AgentErrorEvent": _CALL | {"error"},
    "UserRejectObservation": _CALL | {"rejection_reason", "rejection_source", "action_id"},
    "SystemPromptEvent": _COMMON | {"system_prompt", "dynamic_context", "tools"},
    "SystemPromptUpdateEvent": _COMMON | {"system_prompt", "dynamic_context", "tools", "reason"},
    "Condensation": _COMMON | {"forgotten_event_ids", "summary", "summary_offset", "llm_response_id"},
    "CondensationSummaryEvent": _COMMON | {"summary"},
    "ConversationStateUpdateEvent": _COMMON | {"key", "value"},
    "LLMCompletionLogEvent": _COMMON | {"filename", "log_data", "model_name", "usage_id"},
}
"""Keys of the V1 kinds that are read."""


def kinds_of_record(record: Record) -> Iterator[RecordKind]:
    """Yield the kinds of a record: an event, a row or export with its events, or a completion log.

    Other files beside events in a folder have the kind "".
    """
    row = unpack_row(dict(record))
    history = next((row[key] for key in _HISTORIES if isinstance(row.get(key), list)), None)
    if history is not None:
        yield RecordKind("row", record.keys(), True)
        for event in _flat(history):
            yield from _kinds_of_event(event, is_event=True)
    elif isinstance(record.get("response"), dict) and ("messages" in record or "input" in record):
        yield RecordKind("completion", record.keys(), True, _LOG_KEYS)
    else:
        yield from _kinds_of_event(record, is_event="id" in record and "source" in record)


def _flat(history: Iterable[Any]) -> Iterator[Record]:
    """Yield the events of a history, those of pairs one by one."""
    for item in history:
        yield from (each for each in (item if isinstance(item, list) else [item]) if isinstance(each, dict))


def _kinds_of_event(event: Record, is_event: bool) -> Iterator[RecordKind]:
    """Yield the kind of an event of either version, and of V1 the tool's own kind, which is never unknown."""
    for key, known_kinds in (("action", KNOWN_ACTIONS), ("observation", KNOWN_OBSERVATIONS)):
        name = event.get(key)
        if isinstance(name, str):
            flattened = "args" not in event and "extras" not in event
            yield RecordKind(
                f"{key} {name}", event.keys(), name in known_kinds, None if flattened else EVENT_KEYS
            )
            yield from (RecordKind(f"event {part}", (), False) for part in unread_v0_event(event))
            return
    kind = event.get("kind")
    if isinstance(kind, str) and "source" in event:
        yield RecordKind(kind, event.keys(), kind in KNOWN_KINDS, _KEYS.get(kind))
        yield from (RecordKind(f"event {part}", (), False) for part in unread_event(event))
        for key in ("action", "observation"):
            inner = event.get(key)
            if isinstance(inner, dict) and isinstance(inner.get("kind"), str):
                yield RecordKind(f"{key} {inner['kind']}", inner.keys())
    elif is_status_event(event):
        yield RecordKind("status", event.keys(), True)
    else:
        # Other files beside the events of a session are no events.
        yield RecordKind("event" if is_event else "", event.keys(), False if is_event else None)
