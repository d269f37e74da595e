"""Known kinds of messages of Cursor and the keys of their calls.

Messages and conversations have more than a hundred keys, and every version has others: they have no list.
"""

from collections.abc import Iterator
from pathlib import Path

from tracemill.ingesters.cursor.conversations import read_conversations
from tracemill.ingesters.cursor.messages import role_of, tool_of, unread_parts
from tracemill.ingesters.format import Record, RecordKind
from tracemill.ingesters.reading.sqlite_files import open_database
from tracemill.records.ingest_report import IngestReport, record_type

_CALL_KEYS_TEXT = """tool name toolCallId toolIndex modelCallId status rawArgs params result error
    additionalData userDecision attachmentIdx toolCallBinary"""
_CALL_KEYS = frozenset(_CALL_KEYS_TEXT.split())


def read_records(path: Path, report: IngestReport) -> Iterator[Record]:
    """Yield the conversations of a database with their messages, each as one object."""
    with open_database(path) as connection:
        for each in read_conversations(connection, report):
            yield {"conversation": each.metadata, "messages": [message or {} for message in each.messages]}


def kinds_of_conversation(record: Record) -> Iterator[RecordKind]:
    """Yield the kind of a conversation, of its messages and of their calls."""
    yield RecordKind("conversation", record["conversation"].keys(), True)
    for message in record["messages"]:
        unread = [record_type(name) for name in unread_parts(message)]
        kind = role_of(message)
        yield RecordKind(f"message {kind}", message.keys(), kind != "other")
        yield from (RecordKind(f"part {name}", (), False) for name in unread)
        if tool := tool_of(message):
            yield RecordKind("call", tool.keys(), True, _CALL_KEYS)
