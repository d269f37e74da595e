"""Known kinds of entries of Pi sessions and their keys."""

from collections.abc import Iterator

from tracemill.ingesters.format import Record, RecordKind
from tracemill.ingesters.pi.entries import SHOWN, UNSHOWN
from tracemill.ingesters.pi.messages import ROLES, content_blocks, unread_blocks
from tracemill.records.ingest_report import record_type

_ENTRY_KEYS_TEXT = "type id parentId timestamp"
_OWN_KEYS = {
    "session": "version cwd parentSession branchedFrom provider modelId thinkingLevel metadata title",
    "message": "message",
    "thinking_level_change": "thinkingLevel",
    "model_change": "provider modelId model role",
    "active_tools_change": "activeToolNames",
    "compaction": """summary firstKeptEntryId firstKeptEntryIndex retainedTail tokensBefore details fromHook
        usage""",
    "branch_summary": "fromId summary details fromHook usage",
    "custom": "customType data",
    "custom_message": "customType content details display",
    "label": "targetId label",
    "session_info": "name",
    "leaf": "targetId appendParentId",
    "session_init": "systemPrompt task tools outputSchema",
    "title": "title",
    "mode_change": "mode data",
    "service_tier_change": "family tier",
    "ttsr_injection": "injectedRules",
}
_KEYS = {kind: frozenset(f"{_ENTRY_KEYS_TEXT} {keys}".split()) for kind, keys in _OWN_KEYS.items()}
_MESSAGE_KEYS_TEXT = """role content timestamp api provider model usage stopReason rawStopReason errorMessage
    responseId    responseModel diagnostics
    toolCallId toolName details isError command output exitCode cancelled truncated fullOutputPath
    excludeFromContext customType display summary fromId tokensBefore"""
_MESSAGE_KEYS = frozenset(_MESSAGE_KEYS_TEXT.split())
_BLOCK_KEYS_TEXT = """type text textSignature thinking thinkingSignature redacted data mimeType id name
    arguments partialJson thoughtSignature"""
_BLOCK_KEYS = frozenset(_BLOCK_KEYS_TEXT.split())


def kinds_of_entry(record: Record) -> Iterator[RecordKind]:
    """Yield the kind of an entry, and of its message and content blocks."""
    kind = record_type(record.get("type"))
    known = kind == "session" or kind in SHOWN or kind in UNSHOWN
    yield RecordKind(f"record {kind}", record.keys(), known, _KEYS.get(kind))
    message = record.get("message")
    content = record.get("content") if kind == "custom_message" else None
    if kind == "message" and isinstance(message, dict):
        role = record_type(message.get("role"))
        yield RecordKind(f"message {role}", message.keys(), role in ROLES, _MESSAGE_KEYS)
        content = message.get("content")
    unread = unread_blocks(content)
    for block in content_blocks(content):
        if isinstance(block, dict) and not unread_blocks([block]):
            yield RecordKind(f"block {block.get('type')}", block.keys(), True, _BLOCK_KEYS)
    yield from (RecordKind(f"block {record_type(name)}", (), False) for name in unread)
