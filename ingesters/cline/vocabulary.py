"""Known kinds of records of Cline and Roo Code and their keys."""

from collections.abc import Iterator

from tracemill.ingesters.cline.messages import blocks_of, unread_blocks
from tracemill.ingesters.cline.sdk_session import is_session, unread_parts
from tracemill.ingesters.format import Record, RecordKind
from tracemill.records.ingest_report import record_type

_KEYS_TEXT = """id role content ts modelInfo metrics type summary encrypted_content text reasoning_details
    reasoning_content isSummary condenseId condenseParent truncationId truncationParent isTruncationMarker
    metadata agent"""
_SESSION_KEYS_TEXT = "version updated_at agent sessionId taskType origin messages system_prompt"
_SESSION_KEYS = frozenset(_SESSION_KEYS_TEXT.split())
_KEYS = frozenset(_KEYS_TEXT.split())
_BLOCK_KEYS_TEXT = """type text source id name input tool_use_id content is_error thinking signature summary
    data call_id reasoning_details thoughtSignature encrypted_content cache_control title context citations"""
_BLOCK_KEYS = frozenset(_BLOCK_KEYS_TEXT.split())


def kinds_of_record(record: Record) -> Iterator[RecordKind]:
    """Yield the kind of a session with those of its messages, or of a message and of its blocks."""
    if is_session(record):
        yield RecordKind("session", record.keys(), True, _SESSION_KEYS)
        for message in record["messages"]:
            if isinstance(message, dict):
                role = record_type(message.get("role"))
                yield RecordKind(f"message {role}", message.keys(), role in ("user", "assistant"), _KEYS)
                yield from (RecordKind(f"block {record_type(n)}", (), False) for n in unread_parts(message))
        return
    role = record_type(record.get("role") or record.get("type"))
    known = role in ("user", "assistant") or record.get("type") == "reasoning"
    yield RecordKind(f"message {role}", record.keys(), known, _KEYS)
    content = record.get("content")
    for block in blocks_of(content):
        if isinstance(block, dict) and not unread_blocks([block]):
            yield RecordKind(f"block {block['type']}", block.keys(), True, _BLOCK_KEYS)
    yield from (RecordKind(f"block {record_type(name)}", (), False) for name in unread_blocks(content))
