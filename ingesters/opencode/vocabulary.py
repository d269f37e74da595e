"""Known kinds of messages and parts of opencode exports and their keys."""

from collections.abc import Iterator

from tracemill.ingesters.common.openai_messages import as_mapping
from tracemill.ingesters.format import Record, RecordKind
from tracemill.ingesters.opencode.messages import ROLES, SHOWN, UNSHOWN, unread_part
from tracemill.records.ingest_report import record_type

_EXPORT_KEYS = frozenset(("info", "messages", "todos"))
_SESSION_KEYS_TEXT = """id slug projectID workspaceID directory path parentID summary share title version time
    permission revert agent model cost tokens metadata"""
_SESSION_KEYS = frozenset(_SESSION_KEYS_TEXT.split())
_INFO_KEYS_TEXT = {
    "user": """id sessionID role time format summary agent mode model fallbackModels system tools variant
    metadata""",
    "assistant": """id sessionID role time error parentID modelID providerID mode agent path summary cost
    tokens structured variant finish system metadata""",
}
_INFO_KEYS = {role: frozenset(keys.split()) for role, keys in _INFO_KEYS_TEXT.items()}
_PART_KEYS_TEXT = {
    "text": "text synthetic ignored time metadata",
    "reasoning": "text metadata time",
    "file": "mime filename url source synthetic",
    "tool": "callID tool state metadata",
    "compaction": "auto overflow tail_start_id",
    "subtask": "prompt description agent model command",
    "step-start": "snapshot",
    "step-finish": "reason snapshot cost tokens",
    "snapshot": "snapshot",
    "patch": "hash files",
    "agent": "name source",
    "retry": "attempt error time",
}
_PART_KEYS = {
    kind: frozenset(f"id sessionID messageID type {keys}".split()) for kind, keys in _PART_KEYS_TEXT.items()
}
_STATE_KEYS_TEXT = "status input raw title metadata time output error attachments"
_STATE_KEYS = frozenset(_STATE_KEYS_TEXT.split())


def kinds_of_export(record: Record) -> Iterator[RecordKind]:
    """Yield the kind of an export, of its session, and of its messages and their parts."""
    yield RecordKind("export", record.keys(), True, _EXPORT_KEYS)
    yield RecordKind("session", as_mapping(record.get("info")).keys(), True, _SESSION_KEYS)
    messages = record.get("messages")
    for item in messages if isinstance(messages, list) else ():
        info, parts = as_mapping(as_mapping(item).get("info")), as_mapping(item).get("parts")
        role = record_type(info.get("role"))
        yield RecordKind(f"message {role}", info.keys(), role in ROLES, _INFO_KEYS.get(role))
        for part in parts if isinstance(parts, list) else ():
            yield from _kinds_of_part(part)


def _kinds_of_part(part: object) -> Iterator[RecordKind]:
    if unread := unread_part(part):
        yield RecordKind(f"part {record_type(unread)}", as_mapping(part).keys(), False)
        return
    read = as_mapping(part)
    kind = str(read["type"])
    yield RecordKind(f"part {kind}", read.keys(), kind in SHOWN | UNSHOWN, _PART_KEYS.get(kind))
    if kind == "tool":
        yield RecordKind("state", as_mapping(read.get("state")).keys(), True, _STATE_KEYS)
