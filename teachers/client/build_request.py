"""A question as the bytes of one request: the wire format, and what single families want of it.

- No `tool_choice` but `auto`: newer Claude models refuse a forced one.
- `content` is always a text, "" where a turn only calls: some refuse null.
- Reasoning of the recorded model is never sent: blocks are bound to the model that made them. DeepSeek
  wants the field all the same on turns that call tools, and gets it empty.
- Fields a model does not heed are left out: with `provider.require_parameters` nobody would answer.
- Whoever has become dearer than the list that a reservation rests on is refused by `provider.max_price`
  (https://openrouter.ai/docs/guides/routing/provider-selection).
- The beginning of a prompt is marked for the families that cache at marks only.
"""

from collections.abc import Sequence
from typing import Any

import orjson

from tracemill.records.message import Message
from tracemill.teachers.core.prompt_json import TOOLS, WRITTEN, message_to_prompt_json
from tracemill.teachers.core.question import Question, sendable_question_message
from tracemill.teachers.core.teacher_settings import CompatibleSettings, OpenRouterSettings
from tracemill.teachers.core.token_chain import Shown
from tracemill.teachers.pricing.cache_rules import LOOK_BACK_BLOCKS, cache_rule
from tracemill.teachers.pricing.model_info import ModelCard

SESSION_CHARS = 256
_MARK = {"type": "ephemeral"}


def request_body(
    settings: OpenRouterSettings | CompatibleSettings,
    question: Question,
    sample: int,
    card: ModelCard,
    before: Shown | None = None,
) -> bytes:
    """The request as it goes over the wire. `before` is the prompt of the same context that was answered
    last; it only moves cache marks. Equal arguments give equal bytes."""
    return b"".join(_parts(settings, question, sample, card, before))


def count_request_bytes(
    settings: OpenRouterSettings | CompatibleSettings,
    question: Question,
    sample: int,
    card: ModelCard,
    before: Shown | None = None,
) -> int:
    """How long `request_body` is of the same arguments; costs no copy of it."""
    return sum(map(len, _parts(settings, question, sample, card, before)))


def _parts(
    settings: OpenRouterSettings | CompatibleSettings,
    question: Question,
    sample: int,
    card: ModelCard,
    before: Shown | None,
) -> list[bytes | memoryview]:
    """The request in pieces."""
    places: list[int] = []
    if isinstance(settings, OpenRouterSettings) and cache_rule(settings.family).marked:
        places = mark_places(question.messages, before)
    written = _messages(question.messages, places, settings.family)
    rest: dict[str, Any] = {"max_tokens": card.room(settings)}
    if question.tools:
        rest |= {"tools": TOOLS.of(question), "tool_choice": "auto"}
    if settings.temperature is not None and card.heeds("temperature"):
        rest["temperature"] = settings.temperature
    if settings.logprobs is not None and card.heeds("logprobs"):
        rest |= {"logprobs": True, "top_logprobs": settings.logprobs}
    if isinstance(settings, OpenRouterSettings):
        rest |= _openrouter_fields(settings, question, sample)
        if card.priced:
            longest = sum(map(len, written)) if card.price.tiers else 0
            rest["provider"]["max_price"] = card.price.limits_usd(longest)
    head = b'{"model":' + orjson.dumps(settings.model) + b',"messages":['
    tail = orjson.dumps(rest)
    return [head, *written, b"],", tail[1:]]


def _messages(messages: Sequence[Message], places: Sequence[int], family: str) -> list[bytes | memoryview]:
    """The messages as JSON, a comma between two of them, those at `places` with a cache mark."""
    written = WRITTEN.of(messages, family)
    parts: list[bytes | memoryview] = []
    start = 0
    for place in places:
        marked = message_to_prompt_json(messages[place], family)
        text = {"type": "text", "text": marked["content"], "cache_control": _MARK}
        comma = b"," if place + 1 < len(messages) else b""
        parts += [written.part(start, place), orjson.dumps(marked | {"content": [text]}), comma]
        start = place + 1
    if start < len(messages):
        parts.append(written.part(start, len(messages))[:-1])
    return parts


def count_message_bytes(messages: Sequence[Message]) -> int:
    """Bytes of these messages in a request, marks apart."""
    return sum(len(orjson.dumps(sendable_question_message(message).to_wire())) for message in messages)


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
