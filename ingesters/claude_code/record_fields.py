"""Types of Claude Code's records, and typed access to fields of records."""

from collections.abc import Mapping
from typing import Any

TREE_TYPES = frozenset(("user", "assistant", "system", "progress", "attachment"))
_OTHER_TYPES_TEXT = """summary file-history-snapshot file-history-delta queue-operation last-prompt
    permission-mode mode ai-title custom-title agent-name agent-color agent-setting tag pr-link
    bridge-session artifact-comment-monitor artifact-autoreact-ledger atis-latch
    attribution-snapshot content-replacement continued-in cost-state fork-context-ref frame-link
    isolation-latch relocated speculation-accept worktree-state"""
OTHER_TYPES = frozenset(_OTHER_TYPES_TEXT.split())

_SYSTEM_SUBTYPES_TEXT = """compact_boundary microcompact_boundary local_command api_error
    informational stop_hook_summary turn_duration away_summary bridge_status scheduled_task_fire
    model_refusal_fallback agents_killed init thinking"""
SYSTEM_SUBTYPES = frozenset(_SYSTEM_SUBTYPES_TEXT.split())
"""Subtypes of `system` records."""
QUEUE_OPERATIONS = frozenset(("enqueue", "dequeue", "remove", "popAll"))
"""Operations of `queue-operation` records."""


def field_text(record: Mapping[str, Any], key: str) -> str:
    """Return the text at a key, "" if there is none."""
    value = record.get(key)
    return value if isinstance(value, str) else ""


def field_object(record: Mapping[str, Any], key: str) -> dict[str, Any]:
    """Return the object at a key, an empty one where there is none."""
    value = record.get(key)
    return value if isinstance(value, dict) else {}


def field_strings(value: Any) -> list[str]:
    """Return the texts of a list, none if the value is not a list."""
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []


def field_objects(value: Any) -> list[dict[str, Any]]:
    """Return the objects of a list, none if the value is not a list."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def is_native(record: Mapping[str, Any]) -> bool:
    """Return whether an object is a record that Claude Code writes."""
    kind = field_text(record, "type")
    if kind in TREE_TYPES:
        return isinstance(record.get("uuid"), str) or isinstance(record.get("sessionId"), str)
    if not kind:  # usage logs of early versions: no type, no content
        return isinstance(record.get("sessionId"), str) and isinstance(record.get("message"), dict)
    return kind in OTHER_TYPES and not record.keys().isdisjoint(("sessionId", "leafUuid", "messageId"))
