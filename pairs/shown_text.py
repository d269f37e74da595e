"""Search the text that a context has shown up to a step."""

import json
import posixpath
import re
from collections.abc import Iterator, Sequence
from typing import Any

from tracemill.records.message import Message

_LINE_NUMBER = re.compile(r"^[ \t]*\d+(?:\u2192|\t|: ?)", re.MULTILINE)
_TRAILING = re.compile(r"[ \t]+$", re.MULTILINE)
_SHORTEST_NAME = 3


class ShownText:
    """The texts of a context's messages: contents, and the values of call arguments.

    Line numbers that tools print are removed once per message, on first use.
    """

    def __init__(self, messages: Sequence[Message]) -> None:
        self._messages = messages
        self._plain: dict[int, tuple[str, ...]] = {}

    def holds(self, text: str, cut: int) -> bool:
        """Return whether one of the first `cut` messages holds the text, as lines of a file would."""
        return self.last_place(text, cut) is not None

    def last_place(self, text: str, cut: int) -> int | None:
        """Return the index of the last of the first `cut` messages that holds the text; None if none does."""
        wanted = _TRAILING.sub("", text).strip("\n")
        if not wanted.strip():
            return None
        places = (index for index in reversed(range(cut)) if any(wanted in t for t in self._texts(index)))
        return next(places, None)

    def mentions(self, path: str, cut: int) -> bool:
        """Return whether a path was named before, in full or by its name and its folder's."""
        path = path.rstrip("/")
        if self._names(path, cut):
            return True
        folder, name = posixpath.split(posixpath.normpath(path))
        if len(name) < _SHORTEST_NAME or not self._names(name, cut):
            return False
        parent = posixpath.basename(folder)
        return not parent or parent == ".." or self._names(parent, cut)

    def _names(self, word: str, cut: int) -> bool:
        pattern = re.compile(rf"(?<![\w.-]){re.escape(word)}(?![\w-])")
        return any(
            word in shown and pattern.search(shown) for index in range(cut) for shown in self._texts(index)
        )

    def _texts(self, index: int) -> tuple[str, ...]:
        found = self._plain.get(index)
        if found is None:
            found = tuple(_TRAILING.sub("", text) for text in _texts_of(self._messages[index]) if text)
            self._plain[index] = found
        return found


def _texts_of(message: Message) -> Iterator[str]:
    yield message.content
    if message.role == "tool":
        yield _LINE_NUMBER.sub("", message.content)
    for call in message.tool_calls:
        try:
            yield from _strings(json.loads(call.arguments))
        except ValueError:
            yield call.arguments


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from _strings(item)
    elif isinstance(value, list):
        for item in value:
            yield from _strings(item)
