"""Write sessions as Pi does, and count session files without the reader."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

CLAUDE = {"provider": "anthropic", "api": "anthropic-messages", "model": "claude-sonnet-4-5"}
GPT = {"provider": "openai", "api": "openai-responses", "model": "gpt-5.1-codex"}
USAGE = {"input": 10, "output": 5, "cacheRead": 80, "cacheWrite": 20, "cost": {"total": 0.25}}


def text(*texts: str) -> list[dict[str, str]]:
    """Content of text blocks."""
    return [{"type": "text", "text": each} for each in texts]


def called(call_id: str, name: str, **arguments: Any) -> dict[str, Any]:
    """A block that calls a tool."""
    return {"type": "toolCall", "id": call_id, "name": name, "arguments": arguments}


class PiFile:
    """A session of file version 3, entry by entry; each hangs on the one before it, or on `parent`."""

    def __init__(self, day: str = "2026-03-01", **header: Any) -> None:
        self.day, self.last, self.count = day, None, 0
        head = {"type": "session", "version": 3, "id": "0190-garden", "cwd": "/home/dev/garden"}
        self.records: list[dict[str, Any]] = [head | {"timestamp": f"{day}T10:00:00.000Z"} | header]

    def add(self, kind: str, **fields: Any) -> str:
        """Add an entry and return its id."""
        self.count += 1
        name = f"e{self.count:07}"
        entry = {"type": kind, "id": name, "parentId": fields.pop("parent", self.last)}
        entry["timestamp"] = f"{self.day}T10:{self.count // 60:02}:{self.count % 60:02}.000Z"
        self.records.append(entry | fields)
        self.last = name
        return name

    def message(self, role: str, parent: str | None = None, **fields: Any) -> str:
        """Add a message and return the id of its entry."""
        where = {"parent": parent} if parent else {}
        return self.add("message", message={"role": role, "timestamp": 1} | fields, **where)

    def user(self, words: str, parent: str | None = None) -> str:
        """Add what the user says."""
        return self.message("user", parent, content=text(words))

    def answer(self, *blocks: dict[str, Any], reason: str = "toolUse", **fields: Any) -> str:
        """Add an answer of the model."""
        more = {**CLAUDE, "usage": USAGE, "stopReason": reason, **fields}
        return self.message("assistant", content=list(blocks), **more)

    def result(self, call_id: str, words: str, failed: bool = False, tool: str = "bash") -> str:
        """Add the result of a call."""
        return self.message(
            "toolResult", toolCallId=call_id, toolName=tool, content=text(words), isError=failed
        )

    def write(self, path: Path) -> Path:
        """Write the file."""
        path.write_text("".join(json.dumps(record) + "\n" for record in self.records))
        return path


def count_pi_file(path: Path) -> Counter[str]:
    """Count answers, those that broke off or do nothing, calls, failed results and compactions of a file."""
    found: Counter[str] = Counter()
    for line in path.read_text(encoding="utf-8").splitlines():
        record = json.loads(line)
        message = record.get("message") or {}
        found["compactions"] += record["type"] == "compaction"
        found["tool_errors"] += message.get("isError") is True
        if message.get("role") == "assistant":
            blocks = message["content"]
            broken = message["stopReason"] in ("aborted", "error")
            does = any(b["type"] == "toolCall" or (b.get("text") or "").strip() for b in blocks)
            calls = sum(b["type"] == "toolCall" for b in blocks)
            found["answers"] += 1
            found["broken"] += broken
            found["idle"] += not broken and not does
            found["cut"] += does and message["stopReason"] == "length"
            found["calls"] += calls
            found["calls of broken"] += calls * broken
    return found
