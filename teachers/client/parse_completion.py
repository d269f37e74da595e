"""From the body of a chat completion to an action, a usage and a cost."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson

from tracemill.records.message import Action, ToolCall
from tracemill.records.reply import FailureKind, TeacherUsage
from tracemill.teachers.client.error_policy import Fault, fault_of_error_body
from tracemill.teachers.client.transport import GENERATION_HEADER
from tracemill.teachers.core.price import Price, usd_up

_RAW_FAILURE_CHARS = 2_000
_TEXT_PARTS = frozenset({"text", "output_text"})
_SILENT_PARTS = frozenset({"reasoning", "thinking", "redacted_thinking", "refusal"})
"""Parts of a message that say nothing to the user."""


@dataclass(frozen=True, slots=True)
class Completion:
    """What a body of HTTP 200 holds: an action, or the fault in its place. `cost_nusd` None: unknown;
    `cost_said` is False where it is what the tokens come to at the known price. `claimed_nusd` is the cost
    that the body states, believed or not."""

    action: Action | None = None
    fault: Fault | None = None
    model: str | None = None
    provider: str | None = None
    generation_id: str | None = None
    finish_reason: str | None = None
    usage: TeacherUsage = field(default_factory=TeacherUsage)
    cost_nusd: int | None = None
    cost_said: bool = False
    claimed_nusd: int | None = None
    raw: str = ""


def redact_leaves(value: Any, redact: Callable[[str], str]) -> Any:
    """The same JSON value with every text in it (keys apart) redacted."""
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, list):
        return [redact_leaves(item, redact) for item in value]
    if isinstance(value, dict):
        return {key: redact_leaves(item, redact) for key, item in value.items()}
    return value


def parse_json(text: str) -> object:
    """The JSON value of a body, None where it is none."""
    try:
        return orjson.loads(text)
    except ValueError:
        return None


def raw_failed_completion(body: object, text: str, redact: Callable[[str], str]) -> str:
    """A failed body as kept in the row: redacted, its first characters."""
    shown = redact(text) if body is None else orjson.dumps(redact_leaves(body, redact)).decode()
    return shown[:_RAW_FAILURE_CHARS]


def _count(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0


def _dict(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def parse_completion_usage(body: Mapping[str, Any]) -> TeacherUsage:
    """Tokens as counted by the provider; 0 where it does not say."""
    usage = _dict(body.get("usage"))
    prompt, answer = _dict(usage.get("prompt_tokens_details")), _dict(usage.get("completion_tokens_details"))
    return TeacherUsage(
        prompt_tokens=_count(usage.get("prompt_tokens")),
        completion_tokens=_count(usage.get("completion_tokens")),
        cached_tokens=_count(prompt.get("cached_tokens")),
        cache_write_tokens=_count(prompt.get("cache_write_tokens")),
        reasoning_tokens=_count(answer.get("reasoning_tokens")),
    )


def _amount(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if math.isfinite(value) and value >= 0 else None


def stated_cost_nusd(body: Mapping[str, Any]) -> int | None:
    """`usage.cost`, what the account was charged; with a key of one's own at the provider (`is_byok`)
    what the provider charges comes on top. None where the body does not say."""
    usage = _dict(body.get("usage"))
    cost = _amount(usage.get("cost"))
    if cost is None:
        return None
    upstream = _amount(_dict(usage.get("cost_details")).get("upstream_inference_cost"))
    return usd_up(cost) + (usd_up(upstream) if usage.get("is_byok") is True and upstream else 0)


def counted_cost_nusd(usage: TeacherUsage, price: Price) -> int | None:
    """What the tokens come to at the known price, None where they were not counted."""
    if not usage.prompt_tokens:
        return None
    return price.cost_nusd(usage.prompt_tokens, usage.completion_tokens, usage.cached_tokens)


def billed_cost_nusd(text: str) -> int | None:
    """What OpenRouter's page on an answer (`GET /generation`) says was charged for it, as
    `stated_cost_nusd`; None where it does not say."""
    page = _dict(_dict(parse_json(text)).get("data"))
    cost = _amount(page.get("total_cost"))
    if cost is None:
        return None
    upstream = _amount(page.get("upstream_inference_cost"))
    return usd_up(cost) + (usd_up(upstream) if page.get("is_byok") is True and upstream else 0)


def _said(content: object) -> str:
    """The text of a message: a text, or the texts among its parts; parts of reasoning are none. Raises
    ValueError for anything else."""
    if content is None or isinstance(content, str):
        return content or ""
    parts = content if isinstance(content, list) else [content]
    texts: list[str] = []
    for part in parts:
        text = part if isinstance(part, str) else _dict(part).get("text")
        if isinstance(text, str) and (isinstance(part, str) or _dict(part).get("type") in _TEXT_PARTS):
            texts.append(text)
        elif _dict(part).get("type") not in _SILENT_PARTS:
            raise ValueError("a part that is no text")
    return "".join(texts)


def _refusal(message: Mapping[str, Any]) -> bool:
    """Whether the message refuses, in a field of its own or a part."""
    parts = message.get("content")
    some = parts if isinstance(parts, list) else ()
    return bool(message.get("refusal")) or any(_dict(part).get("type") == "refusal" for part in some)


def _arguments(value: object) -> str:
    """The arguments of a call as a text, an object written as JSON. Raises ValueError for anything else."""
    if isinstance(value, dict):
        return orjson.dumps(value).decode()
    if not isinstance(value, str | None):
        raise ValueError("arguments that are neither a text nor an object")
    return value or "{}"


def _calls(message: Mapping[str, Any]) -> tuple[ToolCall, ...]:
    """The calls as emitted. Raises ValueError where one has no name or arguments that cannot be read."""
    found: list[ToolCall] = []
    for index, call in enumerate(message.get("tool_calls") or ()):
        function = _dict(_dict(call).get("function"))
        name = _text(function.get("name"))
        if not name:
            raise ValueError("a call without a name")
        arguments = _arguments(function.get("arguments"))
        found.append(ToolCall(_text(_dict(call).get("id")) or f"call_{index}", name, arguments))
    return tuple(found)


def _first(body: Mapping[str, Any]) -> Any:
    """The first choice of a body, an empty one where there is none."""
    choices = body.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    return first if isinstance(first, dict) else {}


def _judge(body: Mapping[str, Any], headers: Mapping[str, str]) -> Action | Fault:
    """The action of a body, or the fault it is."""
    if body.get("error"):
        return fault_of_error_body(body["error"], headers)
    choices = body.get("choices")
    if not isinstance(choices, list) or not choices:
        return Fault(FailureKind.EMPTY, retry=True, billed=True)
    choice = _dict(choices[0])
    finish, message = choice.get("finish_reason"), _dict(choice.get("message"))
    if choice.get("error"):
        return fault_of_error_body(choice["error"], headers)
    if finish == "error":
        return Fault(FailureKind.PROVIDER_ERROR, retry=True, billed=True)
    if finish == "length":
        return Fault(FailureKind.TRUNCATED, billed=True)
    if finish == "content_filter":
        return Fault(FailureKind.REFUSED, billed=True)
    try:
        action = Action(_said(message.get("content")), _calls(message))
    except (TypeError, ValueError):
        return Fault(FailureKind.MALFORMED, retry=True, billed=True)
    if action.text.strip() or action.tool_calls:
        return action
    refused = _refusal(message)
    return Fault(FailureKind.REFUSED if refused else FailureKind.EMPTY, retry=not refused, billed=True)


def read_completion(
    text: str, headers: Mapping[str, str], price: Price, redact: Callable[[str], str]
) -> Completion:
    """Reads a body of HTTP 200; every text in it is redacted before anything else is done with it. The
    generation's id is in a header too, also of answers that are of no use: their cost can be looked up."""
    parsed, named = parse_json(text), headers.get(GENERATION_HEADER)
    if not isinstance(parsed, dict):
        fault = Fault(FailureKind.MALFORMED, retry=True, billed=True)
        return Completion(fault=fault, generation_id=named, raw=raw_failed_completion(None, text, redact))
    body: dict[str, Any] = redact_leaves(parsed, redact)
    usage, stated = parse_completion_usage(body), stated_cost_nusd(body)
    judged = _judge(body, headers)
    choice = _first(body)
    if choice.get("logprobs") and choice.get("message") != _first(parsed).get("message"):
        choice["logprobs"] = None  # token by token it spells out what redaction took out of the message
    return Completion(
        action=judged if isinstance(judged, Action) else None,
        fault=judged if isinstance(judged, Fault) else None,
        model=_text(parsed.get("model")),
        provider=_text(parsed.get("provider")),
        generation_id=_text(parsed.get("id")) or named,
        finish_reason=_text(choice.get("finish_reason")),
        usage=usage,
        cost_nusd=counted_cost_nusd(usage, price) if stated is None else stated,
        cost_said=stated is not None,
        claimed_nusd=stated,
        raw=orjson.dumps(body).decode()
        if isinstance(judged, Action)
        else raw_failed_completion(parsed, text, redact),
    )
