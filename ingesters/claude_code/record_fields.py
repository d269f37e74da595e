"""Records of Claude Code by their type, and fields of other people's records, taken only where they have the
type expected."""

from collections.abc import Mapping
from typing import Any

TREE = frozenset(("user", "assistant", "system", "progress", "attachment"))
UNTREED = frozenset(
    (
        "summary",
        "file-history-snapshot",
        "file-history-delta",
        "queue-operation",
        "last-prompt",
        "permission-mode",
        "mode",
        "ai-title",
        "custom-title",
        "agent-name",
        "agent-color",
        "agent-setting",
        "tag",
        "pr-link",
        "bridge-session",
        "artifact-comment-monitor",
        "artifact-autoreact-ledger",
        "atis-latch",
        "attribution-snapshot",
        "content-replacement",
        "continued-in",
        "cost-state",
        "fork-context-ref",
        "frame-link",
        "isolation-latch",
        "relocated",
        "speculation-accept",
        "worktree-state",
    )
)


def field_text(record: Mapping[str, Any], key: str) -> str:
    """The text at a key, "" where there is none."""
    value = record.get(key)
    return value if isinstance(value, str) else ""


def field_object(record: Mapping[str, Any], key: str) -> dict[str, Any]:
    """The object at a key, an empty one where there is none."""
    value = record.get(key)
    return value if isinstance(value, dict) else {}


def field_strings(value: Any) -> list[str]:
    """The texts of a list, none where it is no list."""
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []


def field_objects(value: Any) -> list[dict[str, Any]]:
    """The objects of a list, none where it is no list."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def is_native(record: Mapping[str, Any]) -> bool:
    """Whether an object is a record as Claude Code writes them."""
    kind = field_text(record, "type")
    if kind in TREE:
        return isinstance(record.get("uuid"), str) or isinstance(record.get("sessionId"), str)
    if not kind:  # usage logs of early versions: no type, no content
        return isinstance(record.get("sessionId"), str) and isinstance(record.get("message"), dict)
    return kind in UNTREED and not record.keys().isdisjoint(("sessionId", "leafUuid", "messageId"))
