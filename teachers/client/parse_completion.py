"""Parse the body of a chat completion into an action, a usage and a cost."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson

from tracemill.records.message import Action, ToolCall
from tracemill.records.reply import FailureKind, TeacherUsage
from tracemill.teachers.client.error_policy import CallFault, fault_of_error_body
from tracemill.teachers.client.transport import GENERATION_HEADER
from tracemill.teachers.core.price import Price, usd_up
from tracemill.teachers.pricing.model_info import as_mapping

_RAW_FAILURE_CHARS = 2_000
_TEXT_PARTS = frozenset({"text", "output_text"})
_SILENT_PARTS = frozenset({"reasoning", "thinking", "redacted_thinking", "refusal"})
"""Parts of a message that are not shown to the user."""


@dataclass(frozen=True, slots=True)
class Completion:
    """Content of a response body (HTTP 200): an action, or the fault in its place.

    `cost_nanousd` is None if unknown; `cost_said` is False if it is tokens times price. `claimed_nanousd`
    is the cost that the body states, even if it is not trusted.
    """

    action: Action | None = None
    fault: CallFault | None = None
    model: str | None = None
    provider: str | None = None
    generation_id: str | None = None
    finish_reason: str | None = None
    usage: TeacherUsage = field(default_factory=TeacherUsage)
    cost_nanousd: int | None = None
    cost_said: bool = False
    claimed_nanousd: int | None = None
    raw: str = ""


def redact_json(value: Any, redact: Callable[[str], str]) -> Any:
    """Return the JSON value with every text except keys redacted."""
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, list):
        return [redact_json(item, redact) for item in value]
    if isinstance(value, dict):
        return {key: redact_json(item, redact) for key, item in value.items()}
    return value


def parse_json(text: str) -> object:
    """Return the JSON value of a body, None if it is not JSON."""
    try:
        return orjson.loads(text)
    except ValueError:
        return None


def raw_failed_completion(body: object, text: str, redact: Callable[[str], str]) -> str:
    """Return the first characters of a failed body, redacted."""
    redacted = redact(text) if body is None else orjson.dumps(redact_json(body, redact)).decode()
    return redacted[:_RAW_FAILURE_CHARS]


def _count(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def parse_completion_usage(body: Mapping[str, Any]) -> TeacherUsage:
    """Return the tokens counted by the provider; 0 if they are missing."""
    usage = as_mapping(body.get("usage"))
    prompt, answer = (
        as_mapping(usage.get("prompt_tokens_details")),
        as_mapping(usage.get("completion_tokens_details")),
    )
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


def stated_cost_nanousd(body: Mapping[str, Any]) -> int | None:
    """Return the cost that a completion states, in nano-USD; None if it states none."""
    usage = as_mapping(body.get("usage"))
    upstream = as_mapping(usage.get("cost_details")).get("upstream_inference_cost")
    return _charge_nanousd(usage.get("cost"), upstream, usage.get("is_byok") is True)


def _charge_nanousd(cost: object, upstream: object, is_byok: bool) -> int | None:
    """Return a charge in nano-USD; with one's own provider key the provider's charge is added."""
    charged, by_provider = _amount(cost), _amount(upstream)
    if charged is None:
        return None
    return usd_up(charged) + (usd_up(by_provider) if is_byok and by_provider else 0)


def counted_cost_nanousd(usage: TeacherUsage, price: Price) -> int | None:
    """Return tokens times price in nano-USD, None where tokens were not counted."""
    if not usage.prompt_tokens:
        return None
    return price.cost_nanousd(usage.prompt_tokens, usage.completion_tokens, usage.cached_tokens)


def billed_cost_nanousd(text: str) -> int | None:
    """Return the charge on OpenRouter's page on an answer (`GET /generation`), in nano-USD."""
    page = as_mapping(as_mapping(parse_json(text)).get("data"))
    upstream = page.get("upstream_inference_cost")
    return _charge_nanousd(page.get("total_cost"), upstream, page.get("is_byok") is True)


def _message_text(content: object) -> str:
    """Return the text of a message or of its text parts. Raises ValueError for anything else."""
    if content is None or isinstance(content, str):
        return content or ""
    parts = content if isinstance(content, list) else [content]
    texts: list[str] = []
    for part in parts:
        text = part if isinstance(part, str) else as_mapping(part).get("text")
        if isinstance(text, str) and (isinstance(part, str) or as_mapping(part).get("type") in _TEXT_PARTS):
            texts.append(text)
        elif as_mapping(part).get("type") not in _SILENT_PARTS:
            raise ValueError("a content part is not a text")
    return "".join(texts)


def _refusal(message: Mapping[str, Any]) -> bool:
    """Return whether the message refuses, in a field of its own or a part."""
    parts = message.get("content")
    some = parts if isinstance(parts, list) else ()
    return bool(message.get("refusal")) or any(as_mapping(part).get("type") == "refusal" for part in some)


def _arguments(value: object) -> str:
    """Return the arguments of a call as JSON text. Raises ValueError for anything else."""
    if isinstance(value, dict):
        return orjson.dumps(value).decode()
    if not isinstance(value, str | None):
        raise ValueError("arguments that are neither a text nor an object")
    return value or "{}"


def _calls(message: Mapping[str, Any]) -> tuple[ToolCall, ...]:
    """Return the calls as emitted.

    Raises ValueError if one has no name or unreadable arguments.
    """
    found: list[ToolCall] = []
    for index, call in enumerate(message.get("tool_calls") or ()):
        function = as_mapping(as_mapping(call).get("function"))
        name = _text(function.get("name"))
        if not name:
            raise ValueError("a call without a name")
        arguments = _arguments(function.get("arguments"))
        found.append(ToolCall(_text(as_mapping(call).get("id")) or f"call_{index}", name, arguments))
    return tuple(found)


def _first(body: Mapping[str, Any]) -> Any:
    """Return the first choice of a body, an empty one where there is none."""
    choices = body.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    return first if isinstance(first, dict) else {}


def _judge(body: Mapping[str, Any], headers: Mapping[str, str]) -> Action | CallFault:
    """Return the action of a body, or its fault."""
    if body.get("error"):
        return fault_of_error_body(body["error"], headers)
    choices = body.get("choices")
    if not isinstance(choices, list) or not choices:
        return CallFault(FailureKind.EMPTY, retry=True, billed=True)
    choice = as_mapping(choices[0])
    finish, message = choice.get("finish_reason"), as_mapping(choice.get("message"))
    if choice.get("error"):
        return fault_of_error_body(choice["error"], headers)
    if finish == "error":
        return CallFault(FailureKind.PROVIDER_ERROR, retry=True, billed=True)
    if finish == "length":
        return CallFault(FailureKind.TRUNCATED, billed=True)
    if finish == "content_filter":
        return CallFault(FailureKind.REFUSED, billed=True)
    try:
        action = Action(_message_text(message.get("content")), _calls(message))
    except (TypeError, ValueError):
        return CallFault(FailureKind.MALFORMED, retry=True, billed=True)
    if action.text.strip() or action.tool_calls:
        return action
    refused = _refusal(message)
    return CallFault(FailureKind.REFUSED if refused else FailureKind.EMPTY, retry=not refused, billed=True)


def read_completion(
    text: str, headers: Mapping[str, str], price: Price, redact: Callable[[str], str]
) -> Completion:
    """Parse a body of HTTP 200; every text in it is redacted first.

    The generation's id is in a header too, also of unusable answers, whose cost can be looked up.
    """
    parsed, named = parse_json(text), headers.get(GENERATION_HEADER)
    if not isinstance(parsed, dict):
        fault = CallFault(FailureKind.MALFORMED, retry=True, billed=True)
        return Completion(fault=fault, generation_id=named, raw=raw_failed_completion(None, text, redact))
    body: dict[str, Any] = redact_json(parsed, redact)
    usage, stated = parse_completion_usage(body), stated_cost_nanousd(body)
    judged = _judge(body, headers)
    choice = _first(body)
    if choice.get("logprobs") and choice.get("message") != _first(parsed).get("message"):
        choice["logprobs"] = None  # its tokens spell out what was redacted in the message
    return Completion(
        action=judged if isinstance(judged, Action) else None,
        fault=judged if isinstance(judged, CallFault) else None,
        model=_text(parsed.get("model")),
        provider=_text(parsed.get("provider")),
        generation_id=_text(parsed.get("id")) or named,
        finish_reason=_text(choice.get("finish_reason")),
        usage=usage,
        cost_nanousd=counted_cost_nanousd(usage, price) if stated is None else stated,
        cost_said=stated is not None,
        claimed_nanousd=stated,
        raw=orjson.dumps(body).decode()
        if isinstance(judged, Action)
        else raw_failed_completion(parsed, text, redact),
    )
