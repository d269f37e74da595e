"""Write tasks as Cline and Roo Code do, and count histories without the reader."""

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

START = 1_772_359_200_000
"""Time of the first message, in milliseconds."""
ENVIRONMENT = """<environment_details>
# Visual Studio Code Visible Files
beds.py

# Current Working Directory (/home/dev/garden) Files
beds.py
</environment_details>"""
ROO_ENVIRONMENT = """<environment_details>
# Current Workspace Directory (/home/dev/garden) Files
beds.py

# Current Mode
<slug>code</slug>
<name>Code</name>
<model>qwen/qwen3-coder</model>
</environment_details>"""


def tool_use(call_id: str, name: str, **arguments: Any) -> dict[str, Any]:
    """Return a block that calls a tool."""
    return {"type": "tool_use", "id": call_id, "name": name, "input": arguments}


def tool_result(call_id: str, text: Any, **fields: Any) -> dict[str, Any]:
    """Return a block with the result of a call."""
    return {"type": "tool_result", "tool_use_id": call_id, "content": text} | fields


def text_block(text: str) -> dict[str, Any]:
    """Return a block of text."""
    return {"type": "text", "text": text}


class TaskFolder:
    """A task: its history, and the messages of the view that belong to it."""

    def __init__(self, roo: bool = False) -> None:
        self.roo = roo
        self.history: list[dict[str, Any]] = []
        self.view: list[dict[str, Any]] = []
        self.files: dict[str, Any] = {}
        self.range: list[int] | None = None
        self.time = START
        self.asked: dict[str, Any] = {}
        self.tokens = 0

    def now(self) -> int:
        """Return a time behind every earlier one."""
        self.time += 1000
        return self.time

    def see(self, say: str, text: str = "", **fields: Any) -> int:
        """Add a message of the view and return its time."""
        time = self.now()
        shown = {} if self.range is None else {"conversationHistoryDeletedRange": self.range}
        index = {} if self.roo else {"conversationHistoryIndex": len(self.history) - 1}
        self.view.append({"ts": time, "type": "say", "say": say, "text": text} | index | shown | fields)
        return time

    def user(self, *blocks: dict[str, Any] | str, tokens: int = 100, **fields: Any) -> int:
        """Add what is sent, with the request of the view that goes before it; return its place."""
        self.see("api_req_started", json.dumps({"request": "..."}))
        self.asked, self.tokens = self.view[-1], tokens
        content = [text_block(block) if isinstance(block, str) else block for block in blocks]
        return self._add("user", content, **fields)

    def task(self, words: str) -> int:
        """Add the task with what is said of the environment."""
        tag = "user_message" if self.roo else "task"
        environment = ROO_ENVIRONMENT if self.roo else ENVIRONMENT
        return self.user(f"<{tag}>\n{words}\n</{tag}>", environment)

    def answer(self, *blocks: dict[str, Any] | str, **fields: Any) -> int:
        """Add an answer, which the view shows first; return its place."""
        facts = {"tokensIn": self.tokens, "tokensOut": 7, "cacheReads": 30, "cacheWrites": 5, "cost": 0.02}
        self.asked["text"] = json.dumps(facts)
        self.see("text", "...")
        content = [text_block(block) if isinstance(block, str) else block for block in blocks]
        model = {} if self.roo else {"modelInfo": {"modelId": "claude-sonnet-4-5", "providerId": "anthropic"}}
        return self._add("assistant", content, **model, **fields)

    def step(self, number: int, text: str = "") -> int:
        """Add an answer with one call, and its result with the next request; return the answer's place."""
        place = self.answer(
            *([text] if text else []), tool_use(f"c{number}", "read_file", path=f"{number}.py")
        )
        self.user(tool_result(f"c{number}", f"seen {number}"))
        return place

    def _add(self, role: str, content: Any, **fields: Any) -> int:
        time = {"ts": self.now()} if self.roo else {}
        self.history.append({"role": role, "content": content} | time | fields)
        return len(self.history) - 1

    def write(self, folder: Path, view: bool = True) -> Path:
        """Write the task and return the path of its history."""
        folder.mkdir(parents=True, exist_ok=True)
        files = self.files | ({"ui_messages.json": self.view} if view else {})
        for name, value in files.items():
            (folder / name).write_text(json.dumps(value))
        path = folder / "api_conversation_history.json"
        path.write_text(json.dumps(self.history))
        return path


def count_history(path: Path) -> Counter[str]:
    """Count answers, whole answers, calls, and texts of the user that begin as results do."""
    found: Counter[str] = Counter()
    for message in json.loads(path.read_text(encoding="utf-8")):
        content = message["content"]
        blocks = content if isinstance(content, list) else [text_block(content)]
        texts = [block["text"] for block in blocks if block["type"] == "text"]
        found[message["role"]] += 1
        if message["role"] == "assistant":
            used = sum(block["type"] == "tool_use" for block in blocks)
            whole = "\n".join(texts).strip()
            cut = re.search(r"\[Response interrupted by (?:user|API Error)\]$", whole)
            synthetic = cut or whole == "Failure: I did not provide a response."
            found["whole"] += bool((whole or used) and not synthetic)
            found["calls"] += used if not synthetic else 0
        else:
            found["results"] += sum(
                bool(re.match(r"(?s)\[[\w-]+(?: for .*?)?\] Result:|(?:Tool|Skipping tool) \[", text))
                for text in texts
            )
            found["results"] += sum(block["type"] == "tool_result" for block in blocks)
    return found
