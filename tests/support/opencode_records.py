"""Write sessions as `opencode export` does, and count exports without the reader."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

START = 1_772_359_200_000  # 2026-03-01T10:00:00Z
INFO = {
    "id": "ses_garden",
    "slug": "quiet-garden",
    "projectID": "p1",
    "directory": "/home/dev/garden",
    "title": "Beds",
    "version": "1.2.5",
    "time": {"created": START, "updated": START},
}
Part = dict[str, Any]


def call_part(call_id: str, tool: str, output: str, **given: Any) -> Part:
    """Return a call that returned; `exit`, `compacted` and `attachments` are facts of its result."""
    facts = {key: given.pop(key) for key in ("exit", "compacted", "attachments") if key in given}
    time = {"start": START, "end": START} | {key: facts[key] for key in ("compacted",) if key in facts}
    state = {"status": "completed", "input": given, "output": output, "title": tool, "time": time}
    state["metadata"] = {"exit": facts["exit"]} if "exit" in facts else {}
    if "attachments" in facts:
        state["attachments"] = facts["attachments"]
    return {"type": "tool", "callID": call_id, "tool": tool, "state": state}


def failed_part(call_id: str, tool: str, error: str, metadata: Any = None, **given: Any) -> Part:
    """Return a call that raised."""
    state = {"status": "error", "input": given, "error": error, "time": {"start": START, "end": START}}
    return {"type": "tool", "callID": call_id, "tool": tool, "state": state | {"metadata": metadata or {}}}


def text_part(words: str, **fields: Any) -> Part:
    """Return a text."""
    return {"type": "text", "text": words} | fields


class OpencodeFile:
    """A session message by message; each begins a second after the one before."""

    def __init__(self, **info: Any) -> None:
        self.info = INFO | info
        self.messages: list[dict[str, Any]] = []

    @property
    def now(self) -> int:
        """Return when the next message begins."""
        return START + 1000 * (len(self.messages) + 1)

    def add(self, info: dict[str, Any], parts: list[Part]) -> str:
        """Add a message and return its id."""
        name = f"msg_{len(self.messages) + 1}"
        head = {"id": name, "sessionID": self.info["id"], "time": {"created": self.now}} | info
        whole = [
            {"id": f"prt_{name}_{place}", "messageID": name, "sessionID": self.info["id"]} | part
            for place, part in enumerate(parts)
        ]
        self.messages.append({"info": head, "parts": whole})
        return name

    def user(self, *parts: str | Part, agent: str = "build", **info: Any) -> str:
        """Add what the user says, each text a part."""
        model = {"providerID": "anthropic", "modelID": "claude-sonnet-4-5"}
        listed = [text_part(part) if isinstance(part, str) else part for part in parts]
        return self.add({"role": "user", "agent": agent, "model": model} | info, listed)

    def answer(self, words: str, *parts: Part, agent: str = "build", **info: Any) -> str:
        """Add an answer: a text and what follows it, between the parts that begin and end a step."""
        listed = [step_start(), *([text_part(words)] if words else []), *parts]
        finish = "tool-calls" if any(part["type"] == "tool" for part in parts) else "stop"
        return self.assistant([*listed, step_finish(finish)], agent=agent, **{"finish": finish} | info)

    def assistant(self, parts: list[Part], agent: str = "build", **info: Any) -> str:
        """Add a message of the assistant with exactly these parts."""
        facts = {
            "role": "assistant",
            "parentID": "msg_1",
            "mode": agent,
            "agent": agent,
            "modelID": "claude-sonnet-4-5",
            "providerID": "anthropic",
            "path": {"cwd": "/home/dev/garden", "root": "/home/dev/garden"},
            "cost": 0.01,
            "tokens": TOKENS if any(part["type"] == "step-finish" for part in parts) else NO_TOKENS,
        }
        return self.add(facts | info, parts)

    def compact(self, summary: str, tail: str | None = None, **info: Any) -> str:
        """Add a request for a compaction and the summary that answers it."""
        asked = self.user({"type": "compaction", "auto": True} | ({"tail_start_id": tail} if tail else {}))
        self.answer(summary, agent="compaction", summary=True, parentID=asked, **info)
        return asked

    def write(self, path: Path) -> Path:
        """Write the export."""
        path.write_text(json.dumps({"info": self.info, "messages": self.messages}, indent=2) + "\n")
        return path


TOKENS = {"total": 158, "input": 40, "output": 5, "reasoning": 3, "cache": {"read": 90, "write": 20}}
NO_TOKENS = {"input": 0, "output": 0, "reasoning": 0, "cache": {"read": 0, "write": 0}}


def step_start() -> Part:
    """Return the part that begins an answer."""
    return {"type": "step-start", "snapshot": "ab12"}


def step_finish(reason: str = "stop") -> Part:
    """Return the part that ends an answer."""
    return {"type": "step-finish", "reason": reason, "cost": 0.01, "tokens": TOKENS}


def count_opencode_file(path: Path) -> Counter[str]:
    """Count messages by role, whole answers with a text or a call, and calls in them, line of thought apart.

    An answer counts where a `step-finish` follows its `step-start` in a message that is no summary.
    """
    found: Counter[str] = Counter()
    for message in json.loads(path.read_text(encoding="utf-8"))["messages"]:
        info = message["info"]
        found[info["role"]] += 1
        if info["role"] != "assistant" or info.get("summary") is True:
            continue
        held: list[Part] | None = None
        for part in message["parts"]:
            if part["type"] == "step-start":
                held = []
            elif part["type"] == "step-finish" and held is not None:
                calls = [each for each in held if each["type"] == "tool"]
                spoken = any(each["type"] == "text" and each["text"].strip() for each in held)
                unread = any(each["tool"] == "invalid" for each in calls)
                cut = part["reason"] in ("length", "content-filter", "error")
                if (calls or spoken) and not unread and not cut:
                    found["steps"] += 1
                    found["calls"] += len(calls)
                held = None
            elif held is not None:
                held.append(part)
    return found
