"""Build contexts from the prompts of a run, where every step has its recorded prompt.

A prompt that begins with all messages of the context continues it. Any other starts a new context: the
harness shortened older messages (`microcompaction`), or an answer was discarded (`rewind`).
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tracemill.ingesters.common.chat_messages import PairedMessages
from tracemill.ingesters.common.growing_context import StepMetadata
from tracemill.records.message import Message
from tracemill.records.trace import Context, ContextStart, Fidelity, Step

Read = Callable[[Mapping[str, Any]], Message | None]


@dataclass(slots=True)
class Turn:
    """One step of a run, with messages as the source holds them.

    `prompt` is the prompt shown, `action` the answer, `results` the results of its calls. `exact` is False
    if the prompt is rebuilt and may have been shown shortened.
    """

    prompt: list[Any]
    action: Mapping[str, Any]
    results: Sequence[Any]
    exact: bool
    metadata: StepMetadata


class PromptContexts:
    """Builder of contexts from turns.

    `read` parses an object of the source as a message, None if it is not one.
    """

    def __init__(self, read: Read) -> None:
        self._read = read
        self._contexts: list[Context] = []
        self._dropped: Counter[str] = Counter()
        self._loose: Counter[str] = Counter()
        self._begin("start")

    def _begin(self, start: ContextStart) -> None:
        self._start: ContextStart = start
        self._raw: list[Any] = []
        self._plain: list[Message | None] = []
        self._paired = PairedMessages()
        self._steps: list[Step] = []
        self._results: Sequence[Any] = ()
        self._exact = True

    def add(self, turn: Turn) -> None:
        """Add the next turn."""
        prompt, held_count = turn.prompt, len(self._raw)
        if prompt[:held_count] != self._raw:
            plain = self._parse_prompt(prompt)
            if len(plain) < held_count or plain[:held_count] != self._plain:
                start = self._context_start(plain)
                self._close()
                self._begin(start)
                held_count = 0
            for item, message in zip(prompt[held_count:], plain[held_count:], strict=True):
                self._append(item, message)
        else:
            for item in prompt[held_count:]:
                self._append(item, self._message(item))
        self._exact = self._exact and turn.exact
        self._steps.append(turn.metadata.step(len(self._steps), len(self._paired.messages)))
        self._append(turn.action, self._message(turn.action) or Message("assistant"))
        self._results = turn.results

    def finish(self) -> tuple[Context, ...]:
        """Return the contexts, each with a step. They have no tools: no run of this kind records them."""
        self._close()
        return tuple(self._contexts)

    @property
    def dropped(self) -> Counter[str]:
        """Return counts of messages left out, by reason; one that several contexts hold counts once."""
        return self._dropped

    @property
    def loose(self) -> Counter[str]:
        """Return counts of results kept without their call, by reason."""
        return self._loose

    def _parse_prompt(self, prompt: Sequence[Any]) -> list[Message | None]:
        """Return the prompt's messages; those that the context holds already are not parsed again."""
        raw, plain = self._raw, self._plain
        held_count = len(raw)
        return [
            plain[place]
            if place < held_count and (item is raw[place] or item == raw[place])
            else self._message(item)
            for place, item in enumerate(prompt)
        ]

    def _message(self, item: Any) -> Message | None:
        return self._read(item) if isinstance(item, dict) else None

    def _append(self, item: Any, message: Message | None) -> None:
        self._raw.append(item)
        self._plain.append(message)
        if message is not None:
            self._paired.add(message)

    def _context_start(self, plain: Sequence[Message | None]) -> ContextStart:
        """Return why a prompt starts a context; if the last answer is in place, older messages changed."""
        place = len(self._plain) - 1
        if place < 0:
            return "start"
        kept = len(plain) > place and plain[place] == self._plain[place]
        return "microcompaction" if kept else "rewind"

    def _close(self) -> None:
        if not self._steps:
            return
        for item in self._results:
            self._append(item, self._message(item))
        messages = tuple(self._paired.messages)
        has_user = any(message.role == "user" for message in messages[: self._steps[0].cut])
        fidelity = Fidelity(
            system="recorded" if messages[0].role == "system" and messages[0].content else "absent",
            context="lost" if not has_user else "complete" if self._exact else "approximate",
        )
        index = len(self._contexts)
        self._contexts.append(Context(index, messages, tuple(self._steps), self._start, (), fidelity))
        self._dropped |= self._paired.dropped
        self._loose |= self._paired.loose
