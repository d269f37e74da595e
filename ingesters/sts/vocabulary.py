"""Known kinds of lines of session traces and their keys; a header may hold anything."""

from collections.abc import Iterator

from tracemill.ingesters.common.openai_messages import as_mapping
from tracemill.ingesters.format import Record, RecordKind
from tracemill.ingesters.sts.ingest_session import unread_message
from tracemill.records.ingest_report import record_type

_MESSAGE_KEYS_TEXT = "role content reasoningContent toolCalls toolCallId timestamp model"
_TREE_KEYS_TEXT = "id parent children convId type completionId timings extra"
_MESSAGE_KEYS = frozenset((*_MESSAGE_KEYS_TEXT.split(), *_TREE_KEYS_TEXT.split()))


def kinds_of_line(record: Record) -> Iterator[RecordKind]:
    """Yield the kind of a line, of its message and of the parts that are not read."""
    if record.get("type") != "message":
        yield RecordKind(record_type(record.get("type")), record.keys(), record.get("type") == "session")
        return
    message = as_mapping(record.get("message"))
    unread = unread_message(message)
    role = record_type(message.get("role"))
    yield RecordKind(f"message {role}", message.keys(), "role" not in unread, _MESSAGE_KEYS)
    yield from (RecordKind(f"part {name}", (), False) for name in unread if name != "role")
