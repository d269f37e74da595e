"""Known kinds of records of Codex rollouts, from public sessions of versions 0.118 to 0.147."""

from collections.abc import Iterator
from typing import Any

from tracemill.ingesters.codex.ingest_session import NOT_SHOWN
from tracemill.ingesters.codex.items import (
    ANSWERED_CALLS,
    NOT_SENT,
    OUTPUTS,
    SERVER_CALLS,
    SUMMARIES,
    is_answer,
    parse_codex_message,
    parse_codex_result,
)
from tracemill.ingesters.common.openai_messages import as_mapping
from tracemill.ingesters.format import Record, RecordKind

_RECORDS = frozenset(("session_meta", "response_item", "compacted")) | NOT_SHOWN
_EVENTS_TEXT = """token_count task_started task_complete turn_started turn_complete turn_aborted user_message
    agent_message agent_reasoning agent_reasoning_raw_content exec_command_end patch_apply_end
    web_search_end mcp_tool_call_end view_image_tool_call context_compacted thread_rolled_back
    thread_name_updated thread_settings_applied thread_goal_updated item_completed entered_review_mode
    exited_review_mode collab_waiting_end collab_agent_spawn_end collab_agent_interaction_end
    collab_close_end collab_resume_end sub_agent_activity dynamic_tool_call_request
    dynamic_tool_call_response undo_completed error warning image_generation_end"""
_EVENTS = frozenset(_EVENTS_TEXT.split())
_ITEMS = frozenset(("message", "agent_message", "reasoning"))
_ITEMS |= ANSWERED_CALLS | SERVER_CALLS | OUTPUTS | SUMMARIES | NOT_SENT


def kinds_of_record(record: Record) -> Iterator[RecordKind]:
    """Yield the kind of a record, of its event or item, and of the parts that the reader does not read."""
    kind, payload = record.get("type"), record.get("payload")
    if not isinstance(payload, dict):
        flat = kind is not None or "record_type" not in record
        if kind is None:
            yield RecordKind("session_meta" if "id" in record else "state", record.keys(), flat or None)
        else:
            yield from _kinds_of_item(record)
        return
    name = kind if isinstance(kind, str) else ""
    yield RecordKind(name, record.keys(), name in _RECORDS)
    if name == "response_item":
        yield from _kinds_of_item(payload)
    elif name == "event_msg":
        event = str(payload.get("type"))
        yield RecordKind(f"event {event}", payload.keys(), event in _EVENTS)
    elif name in _RECORDS:
        yield RecordKind(f"payload {name}", payload.keys(), True)


def _kinds_of_item(item: Any) -> Iterator[RecordKind]:
    body = as_mapping(item)
    kind = str(body.get("type"))
    yield RecordKind(f"item {kind}", body.keys(), kind in _ITEMS)
    unread: list[str] = []
    if kind in OUTPUTS:
        unread = parse_codex_result(body)[1]
    elif kind in ("message", "agent_message") and not is_answer(body):
        unread = parse_codex_message(body)[1]
    yield from (RecordKind(f"part {name.replace(' ', '_')}", (), False) for name in unread)
