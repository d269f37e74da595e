"""Builders of Claude Code records, for sessions written in tests."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tracemill.ingesters.claude_code.ingest_session import ingest_file
from tracemill.records.ingest_report import IngestReport
from tracemill.records.message import Message
from tracemill.records.trace import Trace

SESSION = "5e55104a-0000-4000-8000-000000000002"


def line(kind: str, uuid: str, parent: str | None, **fields: Any) -> dict[str, Any]:
    """A record of the uuid tree."""
    base = {"type": kind, "uuid": uuid, "parentUuid": parent, "sessionId": SESSION, "isSidechain": False}
    return base | {"version": "2.1.33", "cwd": "/home/me/shop", "timestamp": "2026-01-01T00:00:00Z"} | fields


def user(uuid: str, parent: str | None, content: Any, **fields: Any) -> dict[str, Any]:
    return line("user", uuid, parent, message={"role": "user", "content": content}, **fields)


def answer(uuid: str, parent: str | None, call: str, text: Any, **fields: Any) -> dict[str, Any]:
    """A user record that carries the result of a call."""
    flag = {"is_error": fields.pop("is_error")} if "is_error" in fields else {}
    block = {"type": "tool_result", "tool_use_id": call, "content": text}
    return user(uuid, parent, [block | flag], **fields)


def says(uuid: str, parent: str | None, number: str | None, *blocks: Any, **fields: Any) -> dict[str, Any]:
    """An assistant record; a text block for a string, a call for a pair (id, name) or a triple with input.
    `tokens` is what it reports of its prompt."""
    content = [_block(block) for block in blocks]
    message = {"role": "assistant", "model": fields.pop("model", "claude-sonnet-4-5"), "content": content}
    message |= {"id": number} if number else {}
    if (tokens := fields.pop("tokens", None)) is not None:
        message["usage"] = {"input_tokens": tokens, "output_tokens": 1}
    message |= {key: fields.pop(key) for key in ("usage", "stop_reason") if key in fields}
    return line("assistant", uuid, parent, message=message, **fields)


def _block(block: Any) -> dict[str, Any]:
    if isinstance(block, str):
        return {"type": "text", "text": block}
    if isinstance(block, tuple):
        call, name, *rest = block
        return {"type": "tool_use", "id": call, "name": name, "input": rest[0] if rest else {}}
    return block


def thinks(text: str) -> dict[str, Any]:
    return {"type": "thinking", "thinking": text, "signature": "s"}


def attachment(uuid: str, parent: str | None, **fields: Any) -> dict[str, Any]:
    return line("attachment", uuid, parent, attachment=fields)


def boundary(uuid: str, metadata: dict[str, Any], **fields: Any) -> dict[str, Any]:
    """A compaction boundary: a root of its own."""
    return line("system", uuid, None, subtype="compact_boundary", compactMetadata=metadata, **fields)


def summary(uuid: str, parent: str | None, text: str = "the summary") -> dict[str, Any]:
    return user(uuid, parent, text, isCompactSummary=True, isVisibleInTranscriptOnly=True)


def queued(operation: str, content: str | None = None, **fields: Any) -> dict[str, Any]:
    """A record of the prompt queue."""
    text = {} if content is None else {"content": content}
    return {"type": "queue-operation", "operation": operation, "sessionId": SESSION} | text | fields


def write(path: Path, *records: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def ingest(tmp_path: Path, *records: Any) -> tuple[list[Trace], IngestReport]:
    return ingest_file(write(tmp_path / "session.jsonl", *records))


def read(tmp_path: Path, *records: Any) -> Trace:
    """The main trace of a session."""
    return ingest(tmp_path, *records)[0][0]


def texts(messages: Iterable[Message]) -> list[str]:
    return [f"{m.role}:{m.content}" for m in messages]
