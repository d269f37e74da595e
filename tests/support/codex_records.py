"""Write rollouts as Codex does, and keep what each answer was really given."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

SESSION = "019a0000-0000-7000-8000-000000000001"
BASE = "You are Codex. You work in the terminal of a developer."
Item = tuple[str, ...]


class Rollout:
    """A rollout under construction: its records, and for each step the items that were sent before it."""

    def __init__(self, session: str = SESSION, base: str | None = BASE, **meta: Any) -> None:
        self.records: list[dict[str, Any]] = []
        self.sent: list[Item] = [("system", base)] if base else []
        self.prompts: list[list[Item]] = []
        self.answer: list[Item] = []
        self.waits: list[str] = []
        self.marks: list[int] = []
        self.count = self.tokens_so_far = self.turns = 0
        self.session = session
        first = {"id": session, "timestamp": "2026-01-05T10:00:00.000Z", "cwd": "/home/dev/garden"}
        first |= {"originator": "codex-tui", "cli_version": "0.140.0", "source": "cli"}
        self.write("session_meta", {**first, "base_instructions": {"text": base} if base else None, **meta})

    def write(self, kind: str, payload: dict[str, Any]) -> None:
        self.count += 1
        minutes, seconds = divmod(self.count, 60)
        stamp = f"2026-01-05T10:{minutes:02}:{seconds:02}.000Z"
        self.records.append({"timestamp": stamp, "type": kind, "payload": payload})

    def event(self, kind: str, **more: Any) -> None:
        self.write("event_msg", {"type": kind, **more})

    def item(self, kind: str, **more: Any) -> None:
        self.write("response_item", {"type": kind, **more})

    def _close(self) -> None:
        """End the answer of the model: what follows was sent behind it."""
        if self.answer:
            self.prompts.append(list(self.sent))
            self.sent += sorted(self.answer, key=lambda each: each[0] != "says")
            self.answer = []

    def turn(self, text: str | None = None, model: str = "gpt-5.4", **settings: Any) -> None:
        """Begin a turn of the user."""
        self._close()
        self.turns += 1
        turn = f"{self.session[:-4]}{self.turns + 1:04}"
        self.event("task_started", turn_id=turn)
        context: dict[str, Any] = {"turn_id": turn, "cwd": "/home/dev/garden", "model": model}
        context["truncation_policy"] = {"mode": "tokens", "limit": 10000}
        self.write("turn_context", context | settings)
        if text is not None:
            self.marks.append(len(self.sent))
            self.say("user", text)
            self.event("user_message", message=text)

    def say(self, role: str, text: str, *parts: dict[str, Any]) -> None:
        """Add a text of the user or of Codex."""
        self._close()
        content = [{"type": "input_text", "text": text}, *parts]
        self.item("message", role=role, content=content)
        self.sent.append(("user" if role == "user" else "system", text))

    def thinks(self, *summary: str) -> None:
        texts = [{"type": "summary_text", "text": text} for text in summary]
        self.item("reasoning", summary=texts, content=None, encrypted_content="gAAA")

    def says(self, text: str) -> None:
        self.item("message", role="assistant", content=[{"type": "output_text", "text": text}])
        self.answer.append(("says", text))

    def calls(self, name: str, call_id: str, **arguments: Any) -> None:
        self.item("function_call", name=name, arguments=json.dumps(arguments), call_id=call_id)
        self.answer.append(("calls", call_id, name, json.dumps(arguments)))

    def patches(self, call_id: str, patch: str, name: str = "apply_patch") -> None:
        """Call a freeform tool."""
        self.item("custom_tool_call", status="completed", call_id=call_id, name=name, input=patch)
        self.answer.append(("calls", call_id, name, json.dumps({"input": patch})))

    def result(self, call_id: str, output: Any, kind: str = "function_call_output") -> None:
        self._close()
        self.item(kind, call_id=call_id, output=output)
        self.sent.append(("tool", call_id, output if isinstance(output, str) else ""))

    def ran(self, call_id: str, output: str, code: int = 0) -> None:
        """Answer a command."""
        text = f"Chunk ID: 1a2b3c\nWall time: 0.1 seconds\nProcess exited with code {code}\nOutput:\n{output}"
        self.result(call_id, text)

    def tokens(self, prompt: int = 1000, output: int = 50, cached: int = 400) -> None:
        """Report the tokens of an answer, with a new total."""
        self._close()
        self.tokens_so_far += prompt + output
        last = {"input_tokens": prompt, "cached_input_tokens": cached, "output_tokens": output}
        total = {"total_tokens": self.tokens_so_far}
        self.event("token_count", info={"total_token_usage": total, "last_token_usage": last})

    def done(self) -> None:
        self._close()
        self.event("task_complete", last_agent_message=None)

    def compact(self, kept: Sequence[Item], message: str = "What was done.") -> None:
        """Replace the history by texts of a role."""
        self._close()
        items = [
            {"type": "message", "role": role, "content": [{"type": "input_text", "text": text}]}
            for role, text in kept
        ]
        self.write("compacted", {"message": message, "replacement_history": items})
        system = [each for each in self.sent[:1] if each[0] == "system"]
        self.sent = [*system, *kept]
        self.marks = []

    def roll_back(self, count: int = 1) -> None:
        """Take back the last turns of the user."""
        self._close()
        self.event("thread_rolled_back", num_turns=count)
        self.sent = self.sent[: self.marks[-count]]
        self.marks = self.marks[:-count]

    def save(self, path: Path) -> Path:
        self._close()
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(json.dumps(record) + "\n" for record in self.records))
        return path
