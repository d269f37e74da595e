"""Write databases as Cursor does, and count the answers and calls of one without the reader."""

import json
import re
import sqlite3
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any

START = 1_772_359_200_000  # 2026-03-01T10:00:00Z
FOLDER = "/home/dev/garden"
Record = dict[str, Any]


def tool(name: str, call_id: str, result: Any = None, **given: Any) -> Record:
    """Return a call that returned; `status`, `error`, `decision`, `model_call` and `raw` are facts of it."""
    facts = {key: given.pop(key, None) for key in ("status", "error", "decision", "model_call", "raw")}
    arguments = json.dumps(given)
    record = {
        "tool": 5,
        "name": name,
        "toolCallId": call_id,
        "status": facts["status"] or "completed",
        "rawArgs": arguments if facts["raw"] is None else facts["raw"],
        "params": arguments,
        "result": result if isinstance(result, str | None) else json.dumps(result),
        "additionalData": {},
    }
    named = {"error": facts["error"], "userDecision": facts["decision"], "modelCallId": facts["model_call"]}
    return record | {key: value for key, value in named.items() if value is not None}


class CursorConversation:
    """A conversation message by message, each a second after the one before."""

    def __init__(self, name: str = "c1", **facts: Any) -> None:
        self.name = name
        self.facts = {
            "_v": 10,
            "composerId": name,
            "createdAt": START,
            "status": "completed",
            "modelConfig": {"modelName": "claude-4.5-sonnet"},
            "workspaceIdentifier": {"id": "ab12", "uri": {"fsPath": FOLDER}},
        } | facts
        self.messages: list[Record] = []

    def add(self, kind: Any, text: str, **fields: Any) -> Record:
        """Add a message and return it."""
        place = len(self.messages) + 1
        message = {
            "_v": 3,
            "type": kind,
            "bubbleId": f"{self.name}-m{place}",
            "text": text,
            "createdAt": f"2026-03-01T10:00:{place:02}.000Z",
            "tokenCount": {"inputTokens": 0, "outputTokens": 0},
        } | fields
        self.messages.append(message)
        return message

    def user(self, text: str, **fields: Any) -> Record:
        """Add a message of the user."""
        return self.add(1, text, **fields)

    def say(self, text: str, thought: str = "", **fields: Any) -> Record:
        """Add a text of the assistant, or a thought."""
        return self.add(2, text, **({"thinking": {"text": thought}} if thought else {}), **fields)

    def call(self, *args: Any, **given: Any) -> Record:
        """Add a call of the assistant."""
        return self.add(2, "", capabilityType=15, toolFormerData=tool(*args, **given))

    def rows(self) -> list[tuple[str, Any]]:
        """Return keys and values as later versions keep them."""
        heads = [{"bubbleId": each["bubbleId"], "type": each["type"]} for each in self.messages]
        facts = self.facts | {"fullConversationHeadersOnly": heads, "conversationMap": {}}
        bubbles = [(f"bubbleId:{self.name}:{each['bubbleId']}", each) for each in self.messages]
        return [(f"composerData:{self.name}", facts), *bubbles]

    def inline(self) -> Record:
        """Return the conversation as early versions keep it, as one object."""
        return self.facts | {"conversation": self.messages}


def write_database(
    path: Path, rows: list[tuple[str, Any]], items: list[tuple[str, Any]] = (), wal: bool = False
) -> Path:
    """Write a database with rows of the two tables; what is no text and no bytes is written as JSON."""
    with closing(sqlite3.connect(path)) as connection:
        if wal:
            connection.execute("pragma journal_mode = wal")
        for table, pairs in (("ItemTable", items), ("cursorDiskKV", rows)):
            connection.execute(f"create table if not exists {table} (key text unique, value blob)")
            given = [(key, v if isinstance(v, str | bytes | None) else json.dumps(v)) for key, v in pairs]
            connection.executemany(f"insert or replace into {table} values (?, ?)", given)
        connection.commit()
    return path


def count_database(path: Path) -> Counter[str]:
    """Count messages by speaker, answers and their calls, line of thought apart.

    An answer is the thinking, the texts and then the calls that follow each other; calls without a text
    between them are one answer only where they share the id of a model call, or an id behind a number.
    """
    found: Counter[str] = Counter()
    with closing(sqlite3.connect(path)) as connection:
        rows = dict(connection.execute("select key, value from cursorDiskKV"))
    for key, value in rows.items():
        if not key.startswith("composerData:") or not value:
            continue
        facts = json.loads(value)
        heads = facts.get("fullConversationHeadersOnly", [])
        kept = [rows.get(f"bubbleId:{facts['composerId']}:{head['bubbleId']}") for head in heads]
        messages = [json.loads(each) for each in kept if each] or facts.get("conversation", [])
        groups: list[list[Record]] = []
        shared = None
        for message in messages:
            found["user" if message["type"] == 1 else "assistant"] += 1
            made = message.get("toolFormerData") or {}
            mark = re.sub(r"^\d+_(?=tool_)", "", made.get("toolCallId", ""))
            mark = made.get("modelCallId") or (mark if mark != made.get("toolCallId") else "")
            if message["type"] == 1:
                groups.append([])
                groups.append([])
            elif not groups or (shared is not None and not (mark and mark == shared)):
                groups.append([message])
            else:
                groups[-1].append(message)
            shared = mark if made else None
        for group in groups:
            calls = sum(bool(each.get("toolFormerData")) for each in group)
            found["steps"] += bool(calls or any(each["text"].strip() for each in group))
            found["calls"] += calls
    return found
