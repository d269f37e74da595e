"""Known kinds and keys of mini-swe-agent runs: messages of both APIs, and what is noted beside them."""

from collections.abc import Iterator
from typing import Any

from tracemill.ingesters.format import Record, RecordKind
from tracemill.ingesters.mini_swe_agent.ingest_trajectory import ROLE_OF
from tracemill.ingesters.mini_swe_agent.messages import unread_mini_message
from tracemill.ingesters.swe_agent.vocabulary import kinds_of_message

_EXTRA_KEYS_TEXT = """timestamp response actions cost returncode output raw_output exception_info
    exception_type exception traceback interrupt_type exit_status submission model_response"""
_EXTRA_KEYS = frozenset(_EXTRA_KEYS_TEXT.split())


def kinds_of_run(record: Record) -> Iterator[RecordKind]:
    """Yield the kinds of a run, or of one message of a bare list; other columns of a row are free."""
    listed = record.get("messages")
    if isinstance(listed, list):
        yield RecordKind("run", record.keys(), True)
        for item in listed:
            yield from _kinds_of_item(item)
    else:
        yield from _kinds_of_item(record)


def _kinds_of_item(item: Any) -> Iterator[RecordKind]:
    """Yield the kind of a message, or of an answer or output of the Responses API, and of its `extra`."""
    kind = (item.get("type") or item.get("object")) if isinstance(item, dict) else None
    if isinstance(item, dict) and item.get("role") == "exit":
        yield RecordKind("message exit", item.keys(), True)
    elif isinstance(item, dict) and isinstance(kind, str) and kind in ROLE_OF:
        yield RecordKind(f"item {kind}", item.keys(), True)
        yield from (RecordKind(f"message {name}", (), False) for name in unread_mini_message(item))
    else:
        yield from kinds_of_message(item, unread_mini_message)
    extra = item.get("extra") if isinstance(item, dict) else None
    if isinstance(extra, dict):
        yield RecordKind("extra", extra.keys(), True, _EXTRA_KEYS)
