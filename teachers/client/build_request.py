"""Serialise a question as the bytes of one request, with what single vendor families need.

- `tool_choice` is only ever `auto`: newer Claude models refuse a forced one.
- `content` is always a text, "" if a turn only calls: some refuse null.
- Reasoning of the recorded model is never sent, since blocks are bound to the model that made them.
  DeepSeek requires the field on turns that call tools, and gets it empty.
- Fields that a model does not support are left out: with `provider.require_parameters` nobody would answer.
- `provider.max_price` refuses providers dearer than the prices that a reservation rests on
  (https://openrouter.ai/docs/guides/routing/provider-selection).
- Prompts are marked for the families that cache at marks only.
"""

from collections.abc import Sequence
from typing import Any

import orjson

from tracemill.records.message import Message
from tracemill.teachers.core.question import Question, sendable_question_message
from tracemill.teachers.core.teacher_settings import CompatibleTeacherSettings, OpenRouterTeacherSettings
from tracemill.teachers.core.token_chain import AnsweredPrompt
from tracemill.teachers.pricing.cache_rules import LOOK_BACK_BLOCKS, cache_rule
from tracemill.teachers.pricing.model_info import ModelCard

SESSION_CHARS = 256
_MARK = {"type": "ephemeral"}


def request_body(
    settings: OpenRouterTeacherSettings | CompatibleTeacherSettings,
    question: Question,
    sample: int,
    card: ModelCard,
    before: AnsweredPrompt | None = None,
) -> bytes:
    """Return the request as bytes; equal arguments give equal bytes.

    `before` is the last answered prompt of the same context; it only affects cache marks.
    """
    wire = [_wire_message(message, settings.family) for message in question.messages]
    if isinstance(settings, OpenRouterTeacherSettings) and cache_rule(settings.family).marked:
        for place in mark_places(question.messages, before):
            text = {"type": "text", "text": wire[place]["content"], "cache_control": _MARK}
            wire[place]["content"] = [text]
    messages = orjson.dumps(wire)
    body: dict[str, Any] = {"model": settings.model, "messages": orjson.Fragment(messages)}
    body["max_tokens"] = card.room(settings)
    if question.tools:
        body |= {"tools": question.wire_tools(), "tool_choice": "auto"}
    if settings.temperature is not None and card.supports_field("temperature"):
        body["temperature"] = settings.temperature
    if settings.logprobs is not None and card.supports_field("logprobs"):
        body |= {"logprobs": True, "top_logprobs": settings.logprobs}
    if isinstance(settings, OpenRouterTeacherSettings):
        body |= _openrouter_fields(settings, question, sample)
        if card.priced:
            body["provider"]["max_price"] = card.price.limits_usd(
                len(messages) - 2 if card.price.tiers else 0
            )
    return orjson.dumps(body)


def _wire_message(message: Message, family: str) -> dict[str, Any]:
    """Return a message in the format for a vendor family."""
    wire = sendable_question_message(message).to_wire()
    if family == "deepseek" and message.tool_calls:
        wire["reasoning_content"] = ""
    return wire


def count_message_bytes(messages: Sequence[Message]) -> int:
    """Return the bytes of these messages in a request, without cache marks."""
    return sum(len(orjson.dumps(sendable_question_message(message).to_wire())) for message in messages)


def _blocks(message: Message) -> int:
    """Return the number of content blocks that a provider makes of a message."""
    return max(1, bool(message.content) + len(message.tool_calls))


def mark_places(messages: Sequence[Message], before: AnsweredPrompt | None) -> list[int]:
    """Return the indices of the messages that get a cache mark.

    One is the last message, so that the next step finds all of this prompt. Another is the end of the
    earlier prompt, if more blocks are new than a cache searches. An empty text cannot get a mark, so the
    nearest message before it does.
    """
    places = {_markable(messages, len(messages))}
    if before is not None and sum(map(_blocks, messages[before.messages :])) > LOOK_BACK_BLOCKS:
        places.add(_markable(messages, before.messages))
    return sorted(place for place in places if place >= 0)


def _markable(messages: Sequence[Message], end: int) -> int:
    """Return the last message before `end` that can get a mark; -1 if none can."""
    found = (at for at in range(end - 1, -1, -1) if messages[at].content and not messages[at].tool_calls)
    return next(found, -1)


def _openrouter_fields(
    settings: OpenRouterTeacherSettings, question: Question, sample: int
) -> dict[str, Any]:
    """Return OpenRouter's own fields: routing, data policy, reasoning, and the trace as session.

    The session keeps a trace's calls at one provider's cache
    (https://openrouter.ai/docs/guides/best-practices/prompt-caching).
    """
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
