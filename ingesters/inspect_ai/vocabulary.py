"""Known kinds of events, messages and content of inspect's samples and their keys."""

from collections.abc import Iterator
from typing import Any

from tracemill.ingesters.common.openai_messages import as_mapping, first_text
from tracemill.ingesters.format import Record, RecordKind
from tracemill.ingesters.inspect_ai.ingest_log import EVENTS
from tracemill.ingesters.inspect_ai.log_files import SampleTexts
from tracemill.ingesters.inspect_ai.messages import ROLES, content_list, content_parts, unread_part
from tracemill.records.ingest_report import record_type

_SAMPLE_KEYS_TEXT = """id epoch input choices target sandbox files setup messages output scores metadata store
    events timelines model_usage role_usage model_fallbacks started_at completed_at total_time working_time
    uuid invalidation error error_retries attachments events_data message_pool call_pool limit turn_count
    token_limit token_limit_type token_limit_usage score transcript"""
_SAMPLE_KEYS = frozenset(_SAMPLE_KEYS_TEXT.split())
_EVENT_KEYS_TEXT = "event uuid span_id timestamp working_start metadata pending"
_OWN_KEYS_TEXT = {
    "model": """model role input input_refs tools tool_choice config output retries error traceback
    traceback_ansi cache call completed working_time""",
    "tool": """type id function arguments view result truncated error events completed working_time agent
    agent_span_id failed message_id""",
    "compaction": "type role tokens_before tokens_after source",
    "span_begin": "id parent_id type name",
    "span_end": "id",
    "step": "action type name",
}
_EVENT_KEYS = {kind: frozenset(f"{_EVENT_KEYS_TEXT} {keys}".split()) for kind, keys in _OWN_KEYS_TEXT.items()}
_MESSAGE_KEYS_TEXT = "id role content source metadata tool_calls model tool_call_id function error tool_error"
_MESSAGE_KEYS = frozenset(_MESSAGE_KEYS_TEXT.split())


def kinds_of_sample(record: Record) -> Iterator[RecordKind]:
    """Yield the kind of a sample, and of its events and their messages."""
    yield RecordKind("sample", record.keys(), True, _SAMPLE_KEYS)
    yield from _kinds_of_messages(list(SampleTexts.of(record).pool))
    yield from _kinds_of_events(content_list(record.get("events")))


def _kinds_of_events(events: list[Any]) -> Iterator[RecordKind]:
    for event in map(as_mapping, events):
        kind = record_type(event.get("event"))
        yield RecordKind(f"event {kind}", event.keys(), kind in EVENTS, _EVENT_KEYS.get(kind))
        if kind == "model":
            choices = content_list(as_mapping(event.get("output")).get("choices"))
            told = [as_mapping(choice).get("message") for choice in choices]
            yield from _kinds_of_messages([*content_list(event.get("input")), *told])
        yield from _kinds_of_events(content_list(event.get("events")))


def _kinds_of_messages(messages: list[Any]) -> Iterator[RecordKind]:
    for message in map(as_mapping, messages):
        role = record_type(message.get("role"))
        yield RecordKind(f"message {role}", message.keys(), role in ROLES, _MESSAGE_KEYS)
        for part in content_parts(message.get("content")):
            kind = first_text(as_mapping(part).get("type")) or "untyped"
            yield RecordKind(f"content {record_type(kind)}", (), not unread_part(part))
