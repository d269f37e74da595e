"""Write sessions as Gemini CLI does, and count session files without the reader."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

HEAD = {"sessionId": "7e11-garden", "projectHash": "ab12", "startTime": "2026-03-01T10:00:00.000Z"}


def gemini_call(
    call_id: str, name: str, output: str | None, status: str = "success", **args: Any
) -> dict[str, Any]:
    """A call with its result beside it; without an output it has none."""
    key = "output" if status == "success" else "error"
    answer = {"functionResponse": {"id": call_id, "name": name, "response": {key: output}}}
    return {
        "id": call_id,
        "name": name,
        "args": args,
        "status": status,
        "result": None if output is None else [answer],
    }


class GeminiFile:
    """A session as lines, each a change; `as_object` gives its messages as early versions write them."""

    def __init__(self, **head: Any) -> None:
        self.lines: list[dict[str, Any]] = [HEAD | head]
        self.count = 0

    def add(self, kind: str, content: Any, **fields: Any) -> str:
        """Add a message and return its id."""
        self.count += 1
        name = f"m{self.count}"
        stamp = f"2026-03-01T10:00:{self.count:02}.000Z"
        self.lines.append({"id": name, "timestamp": stamp, "type": kind, "content": content} | fields)
        return name

    def user(self, words: str) -> str:
        """Add what the user says."""
        return self.add("user", [{"text": words}])

    def answer(self, words: str, *calls: dict[str, Any], tokens: int = 100, **fields: Any) -> str:
        """Add an answer, first as it came and then with its calls and tokens."""
        used = {"input": tokens, "output": 5, "cached": 80, "thoughts": 3, "tool": 0, "total": tokens + 8}
        name = self.add("gemini", words, model="gemini-2.5-pro", thoughts=[], tokens=None, **fields)
        whole = self.lines[-1] | {"tokens": used}
        self.lines.append(whole | ({"toolCalls": list(calls)} if calls else {}))
        return name

    def change(self, **line: Any) -> None:
        """Add another line: `set=` or `rewind_to=`."""
        self.lines.append(
            {{"set": "$set", "rewind_to": "$rewindTo"}[key]: each for key, each in line.items()}
        )

    def messages(self) -> list[dict[str, Any]]:
        """Return the messages as they are at the end, where nothing was taken back."""
        return list({line["id"]: line for line in self.lines if "id" in line}.values())

    def write(self, path: Path) -> Path:
        """Write the lines, or one indented object where the name ends with `.json`."""
        if path.suffix == ".json":
            path.write_text(json.dumps(self.lines[0] | {"messages": self.messages()}, indent=2))
        else:
            path.write_text("".join(json.dumps(line) + "\n" for line in self.lines))
        return path


def count_gemini_file(path: Path) -> Counter[str]:
    """Count messages by type, calls, and answers that follow an answer without calls and have no tokens."""
    found: Counter[str] = Counter()
    before: dict[str, Any] | None = None
    for message in json.loads(path.read_text(encoding="utf-8"))["messages"]:
        found[message["type"]] += 1
        found["calls"] += len(message.get("toolCalls") or ())
        if message["type"] == "gemini":
            unspent = not (message.get("tokens") or {}).get("input")
            found["second"] += before is not None and not before.get("toolCalls") and unspent
        before = message if message["type"] == "gemini" else None if message["type"] == "user" else before
    return found
