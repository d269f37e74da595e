"""Read the conversations of a Cursor database, each with its messages in order.

Cursor keeps keys and values in two tables. Where the messages of a conversation stand differs by version:

| place | versions |
|---|---|
| `cursorDiskKV`, `bubbleId:CONVERSATION:MESSAGE`, in the order of `fullConversationHeadersOnly` | 2025 on |
| `conversationMap` of `composerData:CONVERSATION`, in the same order | between |
| `conversation` of `composerData:CONVERSATION`, or of `composer.composerData` in `ItemTable` | 2024 |
| `tabs` of `workbench.panel.aichat.view.aichat.chatdata` in `ItemTable` | 2024, the chat panel |
"""

import sqlite3
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from tracemill.ingesters.common.openai_messages import as_mapping, first_text
from tracemill.ingesters.reading.json_reading import NOT_AN_OBJECT, read_json, repair_json
from tracemill.records.errors import SourceError
from tracemill.records.ingest_report import IngestReport

CHAT = "workbench.panel.aichat.view.aichat.chatdata"
COMPOSERS = "composer.composerData"
WORKSPACE = "workspace.json"
DELETED = "deleted conversation"
UNLISTED = "message that its conversation does not list"
WITHOUT_CONVERSATION = "message whose conversation is not in the database"
USER, ASSISTANT = 1, 2
_TABLES = (b"cursorDiskKV", b"ItemTable")
_TOOLS = 15
_CHILDREN = ("subagentComposerIds", "subComposerIds")
_OF_SUBAGENTS = tuple(name.encode() for name in (*_CHILDREN, "subagentInfo"))
Record = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Conversation:
    """A conversation: its metadata, and its messages in order, None for one that cannot be read."""

    id: str | None
    metadata: Record
    messages: tuple[Record | None, ...]


def holds_conversations(connection: sqlite3.Connection) -> bool:
    """Return whether a database has keys under which Cursor keeps conversations."""
    tables = _tables(connection)
    if "cursorDiskKV" in tables and next(_rows(connection, "composerData:"), None):
        return True
    return "ItemTable" in tables and any(_item(connection, key) is not None for key in (CHAT, COMPOSERS))


def read_conversations(connection: sqlite3.Connection, report: IngestReport) -> Iterator[Conversation]:
    """Yield the conversations of a database, one at a time."""
    tables = _tables(connection)
    if "cursorDiskKV" in tables:
        listed: set[str] = set()
        for key, value in _rows(connection, "composerData:"):
            listed.add(key.partition(":")[2])
            if value is None or value == b"null":
                report.skipped[DELETED] += 1
            elif (metadata := _parse(value, report)) is not None:
                named = first_text(metadata.get("composerId"), key.partition(":")[2])
                listed.add(named or "")
                yield _composer(named, metadata, connection, report)
        loose = sum(key.split(":")[1] not in listed for key in _keys(connection, "bubbleId:"))
        if loose:
            report.skipped[WITHOUT_CONVERSATION] += loose
    if "ItemTable" in tables:
        for metadata in _listed(_parse(_item(connection, COMPOSERS), report), "allComposers"):
            if metadata.get("conversation"):
                yield _composer(first_text(metadata.get("composerId")), metadata, None, report)
        for tab in _listed(_parse(_item(connection, CHAT), report), "tabs"):
            bubbles = tuple(map(_of_chat_panel, _listed(tab, "bubbles")))
            yield Conversation(first_text(tab.get("tabId")), {"createdAt": None}, bubbles)


def read_parents(connection: sqlite3.Connection) -> Mapping[str, str]:
    """Return the conversation that started each subagent's, by the ids of the two."""
    if "cursorDiskKV" not in _tables(connection):
        return {}
    found: dict[str, str] = {}
    for key, value in _rows(connection, "composerData:"):
        if value is None or not any(sign in value for sign in _OF_SUBAGENTS):
            continue
        metadata = _parse(value, IngestReport("")) or {}
        named = first_text(metadata.get("composerId"), key.partition(":")[2])
        if named and (above := first_text(as_mapping(metadata.get("subagentInfo")).get("parentComposerId"))):
            found[named] = above
        for each in _CHILDREN:
            below = metadata.get(each)
            found |= {str(child): named for child in below if named} if isinstance(below, list) else {}
    return found


def read_workspace_folder(path: Path, report: IngestReport) -> str | None:
    """Return the folder or workspace that the file beside a database names, None if there is none."""
    if not path.with_name(WORKSPACE).is_file():
        return None
    try:
        named = as_mapping(read_json(path.with_name(WORKSPACE)))
    except SourceError:
        report.flags["file of the workspace that cannot be read"] += 1
        return None
    return first_text(named.get("folder"), named.get("workspace"))


def _tables(connection: sqlite3.Connection) -> set[str]:
    names = connection.execute("select name from sqlite_master where type = 'table'")
    return {name.decode() for (name,) in names if name in _TABLES}


def _rows(connection: sqlite3.Connection, prefix: str) -> Iterator[tuple[str, bytes | None]]:
    """Yield the keys with a prefix that ends in a colon, and their values; the index finds them."""
    query = "select key, value from cursorDiskKV where key >= ? and key < ? order by key"
    for key, value in connection.execute(query, (prefix, f"{prefix[:-1]};")):
        yield key.decode("utf-8", "replace"), value if isinstance(value, bytes | None) else b""


def _keys(connection: sqlite3.Connection, prefix: str) -> Iterator[str]:
    """Yield the keys with a prefix that ends in a colon."""
    query = "select key from cursorDiskKV where key >= ? and key < ?"
    for (key,) in connection.execute(query, (prefix, f"{prefix[:-1]};")):
        yield key.decode("utf-8", "replace")


def _item(connection: sqlite3.Connection, key: str) -> bytes | None:
    found = connection.execute("select value from ItemTable where key = ?", (key,)).fetchone()
    return found[0] if found and isinstance(found[0], bytes) else None


def _parse(value: bytes | None, report: IngestReport) -> Record | None:
    """Return a value that is a JSON object, None for any other, which is counted where there is one."""
    if value is None:
        return None
    try:
        parsed = orjson.loads(value)
    except orjson.JSONDecodeError:
        parsed, reason = repair_json(value)
        if reason:
            report.skipped[reason] += 1
            return None
    if not isinstance(parsed, dict):
        report.skipped[NOT_AN_OBJECT] += 1
        return None
    return parsed


def _listed(record: Record | None, key: str) -> list[Record]:
    listed = (record or {}).get(key)
    return [each for each in listed if isinstance(each, dict)] if isinstance(listed, list) else []


def _composer(
    named: str | None, metadata: Record, connection: sqlite3.Connection | None, report: IngestReport
) -> Conversation:
    """Return a conversation of the composer, with separately stored parts put into its messages."""
    messages: list[Record | None] = list(_listed(metadata, "conversation"))
    headers = _listed(metadata, "fullConversationHeadersOnly")
    if headers:
        mapped = as_mapping(metadata.get("conversationMap"))
        stored = dict(_rows(connection, f"bubbleId:{named}:")) if connection and named else {}
        ids = [str(header.get("bubbleId")) for header in headers]
        places = [f"bubbleId:{named}:{bubble}" for bubble in ids]
        report.flags[UNLISTED] += len(stored.keys() - set(places))
        messages = [
            _with_header(_parse(stored.get(place), report) or mapped.get(bubble), header)
            for place, bubble, header in zip(places, ids, headers, strict=True)
        ]
    calls = _separate_calls(metadata)
    if calls:
        messages = [_with_call(message, calls) for message in messages]
    return Conversation(named, metadata, tuple(messages))


def _with_header(message: Any, header: Record) -> Record | None:
    """Return a message with the type of its header where it has none of its own."""
    if not isinstance(message, dict):
        return None
    return message if "type" in message else message | {"type": header.get("type")}


def _separate_calls(metadata: Record) -> Mapping[str, Any]:
    """Return the calls that early versions keep apart from the messages, by the id of the message."""
    for capability in _listed(metadata, "capabilities"):
        if capability.get("type") == _TOOLS:
            kept = as_mapping(capability.get("data")).get("bubbleDataMap")
            if isinstance(kept, str):
                try:
                    kept = orjson.loads(kept)
                except orjson.JSONDecodeError:
                    kept = None
            return as_mapping(kept)
    return {}


def _with_call(message: Record | None, calls: Mapping[str, Any]) -> Record | None:
    call = calls.get(str(message.get("bubbleId"))) if message else None
    if message is None or not call or as_mapping(message.get("toolFormerData")).get("name"):
        return message
    return {**message, "toolFormerData": call}


def _of_chat_panel(bubble: Record) -> Record:
    """Return a message of the chat panel in the shape of the composer's."""
    kind = {"user": USER, "ai": ASSISTANT}.get(str(bubble.get("type")))
    model = {"modelName": bubble.get("modelType")}
    raw = first_text(bubble.get("rawText"), bubble.get("text")) or ""
    attached = {key: bubble.get(key) for key in ("selections", "fileSelections", "selectedImages")}
    return {
        "type": kind if kind else bubble.get("type"),
        "bubbleId": bubble.get("id"),
        "text": raw,
        "modelInfo": model,
        "context": attached,
    }
