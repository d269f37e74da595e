"""Messages and tools as JSON, written once and kept while they are asked about.

Every prompt of a session begins with the one before, and each teacher is sent them. What nobody will be
asked about again is not kept.
"""

from collections import Counter, OrderedDict
from collections.abc import Iterable, Sequence
from typing import Any

import orjson

from tracemill.records.message import Message
from tracemill.records.trace import MessageView
from tracemill.teachers.core.question import Question, sendable_question_message

_KEPT_BYTES = 24_000_000
_KEPT_TOOLS = 256


def message_to_prompt_json(message: Message, family: str) -> dict[str, Any]:
    """A message in the shape a family is sent."""
    wire = sendable_question_message(message).to_wire()
    if family == "deepseek" and message.tool_calls:
        wire["reasoning_content"] = ""
    return wire


class _Prefix:
    """The messages of one context as JSON, each followed by a comma, as far as they were asked for."""

    def __init__(self, whole: Sequence[Message], family: str) -> None:
        self._whole = whole
        self._family = family
        self._bytes = bytearray()
        self._ends = [0]

    def write(self, count: int) -> int:
        """Writes the first `count` messages, where that was not done; gives how many bytes came to it."""
        before = len(self._bytes)
        for message in self._whole[len(self._ends) - 1 : count]:
            self._bytes += orjson.dumps(message_to_prompt_json(message, self._family)) + b","
            self._ends.append(len(self._bytes))
        return len(self._bytes) - before

    def part(self, start: int, end: int) -> memoryview:
        """The messages from `start` to before `end`, each followed by a comma. Nothing can be written as
        long as it is held."""
        return memoryview(self._bytes)[self._ends[start] : self._ends[end]]

    def __len__(self) -> int:
        return len(self._bytes)


class _Written:
    """Contexts as JSON; what was not used for longest goes where more than `_KEPT_BYTES` are kept."""

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[int, bool], _Prefix] = OrderedDict()
        self._bytes = 0

    def of(self, messages: Sequence[Message], family: str) -> _Prefix:
        """A prompt as a family is sent it. A context is told by the object it is, which is kept with it."""
        whole = _whole(messages)
        place = (id(whole), family == "deepseek")
        found = self._kept.pop(place, None) or _Prefix(whole, family)
        if not isinstance(whole, tuple):
            found.write(len(messages))
            return found
        self._kept[place] = found
        self._bytes += found.write(len(messages))
        while self._bytes > _KEPT_BYTES and len(self._kept) > 1:
            self._bytes -= len(self._kept.popitem(last=False)[1])
        return found

    def forget(self, messages: Sequence[Message]) -> None:
        """Keeps nothing of a prompt's context any more."""
        for plain in (False, True):
            if found := self._kept.pop((id(_whole(messages)), plain), None):
                self._bytes -= len(found)

    def __len__(self) -> int:
        return self._bytes


class _Tools:
    """Tools as JSON: the same along a trace, and for all teachers."""

    def __init__(self) -> None:
        self._kept: OrderedDict[int, tuple[object, orjson.Fragment]] = OrderedDict()

    def of(self, question: Question) -> orjson.Fragment:
        """The tools of a question."""
        found = self._kept.pop(id(question.tools), None)
        if found is None:
            found = (question.tools, orjson.Fragment(orjson.dumps(question.wire_tools())))
        self._kept[id(question.tools)] = found
        if len(self._kept) > _KEPT_TOOLS:
            self._kept.popitem(last=False)
        return found[1]


def _whole(messages: Sequence[Message]) -> Sequence[Message]:
    """The context that a prompt is a beginning of."""
    return messages.whole if isinstance(messages, MessageView) else messages


WRITTEN = _Written()
TOOLS = _Tools()


class StillAsked:
    """Which contexts a replay still asks about; of the others nothing is kept."""

    def __init__(self, questions: Iterable[Question]) -> None:
        """`questions` has each as often as it is asked."""
        self._left = Counter(id(_whole(question.messages)) for question in questions)

    def once_less(self, question: Question) -> None:
        """It was asked, or will not be."""
        context = id(_whole(question.messages))
        self._left[context] -= 1
        if not self._left[context]:
            del self._left[context]
            WRITTEN.forget(question.messages)
