"""A question as the bytes of one request: the wire format, and what single families want of it.

- No `tool_choice` but `auto`: newer Claude models refuse a forced one.
- `content` is always a text, "" where a turn only calls: some refuse null.
- Reasoning of the recorded model is never sent: blocks are bound to the model that made them. DeepSeek
  wants the field all the same on turns that call tools, and gets it empty.
- Fields a model does not heed are left out: with `provider.require_parameters` nobody would answer.
- The beginning of a prompt is marked for the families that cache at marks only.
"""

from collections.abc import Sequence
from typing import Any

import orjson

from records.message import Message
from teachers.caching import LOOK_BACK_BLOCKS, cache_rule
from teachers.chain import Shown
from teachers.model_card import ModelCard
from teachers.question import Question, sendable
from teachers.settings import CompatibleSettings, OpenRouterSettings

SESSION_CHARS = 256
_MARK = {"type": "ephemeral"}
_KEPT_BYTES = 24_000_000


def request_body(
    settings: OpenRouterSettings | CompatibleSettings,
    question: Question,
    sample: int,
    card: ModelCard,
    before: Shown | None = None,
) -> bytes:
    """The request as it goes over the wire. `before` is the prompt of the same context that was answered
    last; it only moves cache marks. Equal arguments give equal bytes."""
    messages: list[Any] = [_WRITTEN.of(message, settings.family) for message in question.messages]
    if isinstance(settings, OpenRouterSettings) and cache_rule(settings.family).marked:
        for place in mark_places(question.messages, before):
            marked = _wire(question.messages[place], settings.family)
            text = {"type": "text", "text": marked["content"], "cache_control": _MARK}
            messages[place] = marked | {"content": [text]}
    body: dict[str, Any] = {
        "model": settings.model,
        "messages": messages,
        "max_tokens": settings.max_tokens,
    }
    if question.tools:
        body |= {"tools": question.wire_tools(), "tool_choice": "auto"}
    if settings.temperature is not None and card.heeds("temperature"):
        body["temperature"] = settings.temperature
    if settings.logprobs is not None and card.heeds("logprobs"):
        body |= {"logprobs": True, "top_logprobs": settings.logprobs}
    if isinstance(settings, OpenRouterSettings):
        body |= _openrouter_fields(settings, question, sample)
    return orjson.dumps(body)


def _wire(message: Message, family: str) -> dict[str, Any]:
    wire = sendable(message).to_wire()
    if family == "deepseek" and message.tool_calls:
        wire["reasoning_content"] = ""
    return wire


class _Written:
    """Messages as JSON. Every prompt of a session holds those of the one before, and each teacher is sent
    them, so each is written once, until more than `_KEPT_BYTES` are kept."""

    def __init__(self) -> None:
        self._kept: dict[tuple[Message, bool], orjson.Fragment] = {}
        self._bytes = 0

    def of(self, message: Message, family: str) -> orjson.Fragment:
        """A message as a family is sent it."""
        place = (message, family == "deepseek")
        found = self._kept.get(place)
        if found is None:
            written = orjson.dumps(_wire(message, family))
            self._bytes += len(written)
            if self._bytes > _KEPT_BYTES:
                self._kept.clear()
                self._bytes = len(written)
            found = self._kept[place] = orjson.Fragment(written)
        return found


_WRITTEN = _Written()


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
