"""Known kinds of records of Gemini CLI sessions and their keys."""

from collections.abc import Iterator
from typing import Any

from tracemill.ingesters.format import Record, RecordKind
from tracemill.ingesters.gemini_cli.messages import (
    UNSHOWN,
    recorded_calls,
    unread_parts,
    unread_recorded_calls,
)
from tracemill.records.ingest_report import record_type

_SESSION_KEYS_TEXT = """sessionId projectHash startTime lastUpdated messages summary memoryScratchpad
    directories kind"""
_SESSION_KEYS = frozenset(_SESSION_KEYS_TEXT.split())
_MESSAGE_KEYS_TEXT = "id timestamp type content displayContent toolCalls thoughts tokens model"
_MESSAGE_KEYS = frozenset(_MESSAGE_KEYS_TEXT.split())
_CALL_KEYS_TEXT = """id name args result status timestamp agentId displayName description resultDisplay
    renderOutputAsMarkdown"""
_CALL_KEYS = frozenset(_CALL_KEYS_TEXT.split())


def kinds_of_record(record: Record) -> Iterator[RecordKind]:
    """Yield the kind of a line or a whole session, and of its messages, calls and parts."""
    if "$rewindTo" in record:
        yield RecordKind("$rewindTo", record.keys(), True)
    elif isinstance(change := record.get("$set"), dict):
        yield RecordKind("$set", change.keys(), True, _SESSION_KEYS)
        yield from _kinds_of_messages(change.get("messages"))
    elif "sessionId" in record:
        yield RecordKind("session", record.keys(), True, _SESSION_KEYS)
        yield from _kinds_of_messages(record.get("messages"))
    else:
        yield from _kinds_of_messages([record])


def _kinds_of_messages(listed: Any) -> Iterator[RecordKind]:
    for message in listed if isinstance(listed, list) else ():
        if not isinstance(message, dict):
            continue
        kind = record_type(message.get("type"))
        known = kind in UNSHOWN or kind in ("user", "gemini")
        yield RecordKind(f"message {kind}", message.keys(), known, _MESSAGE_KEYS)
        for call in recorded_calls(message):
            yield RecordKind("call", call.keys(), True, _CALL_KEYS)
        for name in (*unread_recorded_calls(message), *unread_parts(message.get("content"))):
            yield RecordKind(f"part {record_type(name)}", (), False)
