"""Hold what is known at a step: working folder, file texts, words shown, tool schemas.

A context is replayed once. Every message leaves its events under its own number, so that all environments of
a context share one history and T steps cost O(T).
"""

import re
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from tracemill.agreement.files.edits import TextChange
from tracemill.agreement.files.file_text import FilePiece, FileText
from tracemill.records.message import Message, ToolSpec

_PART = re.compile(r"[a-z0-9]+")
_ENDING = re.compile(r"(?:ies|es|s|y|e)$")

Event = tuple[int, FilePiece | None, tuple[TextChange, ...], int | None]
"""(message, piece shown, changes, total): a piece, changes, or neither where the text became unknown."""


@dataclass(slots=True)
class ContextHistory:
    """The messages of a context, one by one; `files` has the events of each path in order."""

    messages: Sequence[Message] = ()
    files: dict[str, list[Event]] = field(default_factory=dict)
    opened: list[tuple[int, str]] = field(default_factory=list)
    _stems: dict[str, int] = field(default_factory=dict)
    _counted: int = 0
    _replayed: dict[str, tuple[int, FileText | None]] = field(default_factory=dict)

    def stem_shown(self, stem: str) -> int | None:
        """Return the number of the first message that contains a word of that stem, in lower case."""
        self._count()
        return self._stems.get(stem)

    def text_of(self, path: str, cut: int) -> FileText | None:
        """Return the text of a file after the first `cut` messages; None if nothing of it is known."""
        events = self.files.get(path)
        if not events:
            return None
        wanted = bisect_left(events, cut, key=lambda event: event[0])
        done, state = self._replayed.get(path, (0, None))
        if done > wanted:
            done, state = 0, None
        for event in events[done:wanted]:
            state = _after(state, event)
        self._replayed[path] = (wanted, state)
        return state

    def _count(self) -> None:
        for number in range(self._counted, len(self.messages)):
            message = self.messages[number]
            texts = [message.content, *(call.arguments for call in message.tool_calls)]
            for text in texts:
                self._add(text, number)
        self._counted = len(self.messages)

    def _add(self, text: str, number: int) -> None:
        for part in set(_PART.findall(text.lower())):
            self._stems.setdefault(_ENDING.sub("", part), number)


def _after(state: FileText | None, event: Event) -> FileText | None:
    _, piece, changes, total = event
    if piece is not None:
        return (state or FileText()).seen(piece, total)
    return state.changed(changes) if state is not None and changes else None


@dataclass(frozen=True, slots=True)
class EnvironmentState:
    """The known state of files and commands before one step.

    `record` is the context's history, of which the first `cut` messages count. `after` has files that
    earlier calls of the same action changed.
    """

    harness: str = ""
    cwd: str | None = None
    tools: tuple[ToolSpec, ...] = ()
    record: ContextHistory = field(default_factory=ContextHistory, compare=False)
    cut: int = 0
    after: Mapping[str, FileText | None] = field(default_factory=dict)

    def text_of(self, path: str) -> FileText | None:
        """Return the known text of a file, None if nothing is known."""
        if path in self.after:
            return self.after[path]
        return self.record.text_of(path, self.cut)

    @property
    def open_file(self) -> str | None:
        """Return the open file, in harnesses that have one."""
        at = bisect_left(self.record.opened, self.cut, key=lambda each: each[0])
        return self.record.opened[at - 1][1] if at else None

    def has_shown(self, names: Iterable[str]) -> bool:
        """Return whether every part of every name occurs in the messages so far, ignoring inflection.

        `dog_kennels` has the parts dog and kennel.
        """
        stems = (_ENDING.sub("", part) for name in names for part in _PART.findall(name.lower()))
        return all((first := self.record.stem_shown(stem)) is not None and first < self.cut for stem in stems)
