"""A question as the bytes of one request: the wire format, and what single families want of it.

- No `tool_choice` but `auto`: newer Claude models refuse a forced one.
- `content` is always a text, "" where a turn only calls: some refuse null.
- Reasoning of the recorded model is never sent: blocks are bound to the model that made them. DeepSeek
  wants the field all the same on turns that call tools, and gets it empty.
- Fields a model does not heed are left out: with `provider.require_parameters` nobody would answer.
- The beginning of a prompt is marked for the families that cache at marks only.
"""

from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

import orjson

from records.message import Message
from records.state import MessageView
from teachers.caching import LOOK_BACK_BLOCKS, cache_rule
from teachers.chain import Shown
from teachers.model_card import ModelCard
from teachers.question import Question, sendable
from teachers.settings import CompatibleSettings, OpenRouterSettings

SESSION_CHARS = 256
_MARK = {"type": "ephemeral"}
_KEPT_BYTES = 24_000_000
_KEPT_TOOLS = 256


def request_body(
    settings: OpenRouterSettings | CompatibleSettings,
    question: Question,
    sample: int,
    card: ModelCard,
    before: Shown | None = None,
) -> bytes:
    """The request as it goes over the wire. `before` is the prompt of the same context that was answered
    last; it only moves cache marks. Equal arguments give equal bytes."""
    places: list[int] = []
    if isinstance(settings, OpenRouterSettings) and cache_rule(settings.family).marked:
        places = mark_places(question.messages, before)
    rest: dict[str, Any] = {"max_tokens": settings.max_tokens}
    if question.tools:
        rest |= {"tools": _TOOLS.of(question), "tool_choice": "auto"}
    if settings.temperature is not None and card.heeds("temperature"):
        rest["temperature"] = settings.temperature
    if settings.logprobs is not None and card.heeds("logprobs"):
        rest |= {"logprobs": True, "top_logprobs": settings.logprobs}
    if isinstance(settings, OpenRouterSettings):
        rest |= _openrouter_fields(settings, question, sample)
    head = b'{"model":' + orjson.dumps(settings.model) + b',"messages":['
    tail = orjson.dumps(rest)
    return b"".join([head, *_messages(question.messages, places, settings.family), b"],", tail[1:]])


def _messages(messages: Sequence[Message], places: Sequence[int], family: str) -> list[bytes]:
    """The messages as JSON, a comma between two of them, those at `places` with a cache mark."""
    written = _WRITTEN.of(messages, family)
    parts: list[bytes] = []
    start = 0
    for place in places:
        marked = _wire(messages[place], family)
        text = {"type": "text", "text": marked["content"], "cache_control": _MARK}
        comma = b"," if place + 1 < len(messages) else b""
        parts += [written.part(start, place), orjson.dumps(marked | {"content": [text]}), comma]
        start = place + 1
    last = len(messages) - 1
    if start <= last:
        parts.append(written.part(start, last))
        parts.append(written.part(last, last + 1)[:-1])
    return parts


def _wire(message: Message, family: str) -> dict[str, Any]:
    wire = sendable(message).to_wire()
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
            self._bytes += orjson.dumps(_wire(message, self._family)) + b","
            self._ends.append(len(self._bytes))
        return len(self._bytes) - before

    def part(self, start: int, end: int) -> bytes:
        """The messages from `start` to before `end`, each followed by a comma."""
        return bytes(memoryview(self._bytes)[self._ends[start] : self._ends[end]])

    def __len__(self) -> int:
        return len(self._bytes)


class _Written:
    """Contexts as JSON. Every prompt of a session begins with the one before, and each teacher is sent
    them, so each message is written once; what was not used for longest goes where more than `_KEPT_BYTES`
    are kept."""

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[int, bool], _Prefix] = OrderedDict()
        self._bytes = 0

    def of(self, messages: Sequence[Message], family: str) -> _Prefix:
        """A prompt as a family is sent it. A context is told by the object it is, which is kept with it."""
        whole = messages.whole if isinstance(messages, MessageView) else messages
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


_WRITTEN = _Written()
_TOOLS = _Tools()


def message_bytes(messages: Sequence[Message]) -> int:
    """Bytes of these messages in a request, marks apart."""
    return sum(len(orjson.dumps(sendable(message).to_wire())) for message in messages)


def _blocks(message: Message) -> int:
    """Content blocks a provider makes of a message."""
    return max(1, bool(message.content) + len(message.tool_calls))


def mark_places(messages: Sequence[Message], before: Shown | None) -> list[int]:
    """Which messages carry a cache mark: the last, so that the next step finds all of this prompt; and
    where more blocks are new than a cache looks back, the one the earlier prompt ended with. A text that
    is empty cannot carry one, so the nearest before it does."""
    places = {_markable(messages, len(messages))}
    if before is not None and sum(map(_blocks, messages[before.messages :])) > LOOK_BACK_BLOCKS:
        places.add(_markable(messages, before.messages))
    return sorted(place for place in places if place >= 0)


def _markable(messages: Sequence[Message], end: int) -> int:
    """The last message before `end` that can carry a mark; -1 where none can."""
    found = (at for at in range(end - 1, -1, -1) if messages[at].content and not messages[at].tool_calls)
    return next(found, -1)


def _openrouter_fields(settings: OpenRouterSettings, question: Question, sample: int) -> dict[str, Any]:
    """OpenRouter's own fields: routing and data policy, reasoning, and the trace as its session, which
    keeps its calls at one provider's cache
    (https://openrouter.ai/docs/guides/best-practices/prompt-caching)."""
    provider: dict[str, Any] = {
        "data_collection": settings.data_collection,
        "require_parameters": settings.require_parameters,
    }
    if settings.provider:
        provider["only"] = [settings.provider]
    if settings.enforce_distillable_text:
        provider["enforce_distillable_text"] = True
    extra: dict[str, Any] = {"provider": provider, "session_id": question.trace_id[:SESSION_CHARS]}
    if settings.reasoning.to_wire():
        extra["reasoning"] = settings.reasoning.to_wire()
    if sample:
        extra["metadata"] = {"sample": str(sample)}
    return extra
