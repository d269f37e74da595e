"""Bodies in OpenRouter's wire format (https://openrouter.ai/docs/api-reference)."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from teachers.prices import MILLION, nusd_to_usd
from teachers.settings import PriceSettings
from teachers.sim_policy import Answer
from teachers.wire_settings import FaultKind

ERROR_TYPES = {
    400: "invalid_request",
    401: "authentication",
    402: "payment_required",
    403: "permission_denied",
    404: "not_found",
    429: "rate_limit_exceeded",
    500: "server",
    502: "provider_unavailable",
    503: "provider_overloaded",
}


def error_body(code: int, message: str, **metadata: Any) -> dict[str, Any]:
    """An error as OpenRouter writes it."""
    return {
        "error": {"code": code, "message": message, "metadata": {"error_type": ERROR_TYPES[code], **metadata}}
    }


def completion_body(model: str, given: Answer, cost_nusd: int, created: int) -> dict[str, Any]:
    """A chat completion with its usage and what it cost."""
    cost = nusd_to_usd(cost_nusd)
    return {
        "id": f"gen-{created}-{given.call_id}",
        "object": "chat.completion",
        "created": created,
        "model": model,
        "provider": "simulated",
        "choices": [
            {
                "index": 0,
                "finish_reason": "tool_calls" if given.calls else "stop",
                "native_finish_reason": "stop",
                "logprobs": None,
                "message": given.wire_message(),
            }
        ],
        "usage": {
            "prompt_tokens": given.prompt_tokens,
            "completion_tokens": given.completion_tokens,
            "total_tokens": given.prompt_tokens + given.completion_tokens,
            "cost": cost,
            "is_byok": False,
            "cost_details": {"upstream_inference_cost": cost},
            "prompt_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
            "completion_tokens_details": {"reasoning_tokens": 0},
        },
    }


def spoiled(kind: FaultKind, body: dict[str, Any]) -> dict[str, Any]:
    """A completion turned into one of the useless answers that come with HTTP 200."""
    if kind is FaultKind.ERROR_IN_200:
        return {"id": body["id"], **error_body(502, "Provider returned error")}
    if kind is FaultKind.EMPTY_CHOICES:
        return {**body, "choices": []}
    choice = dict(body["choices"][0])
    if kind is FaultKind.LENGTH:
        choice["finish_reason"] = "length"
    if kind is FaultKind.FINISH_ERROR:
        choice["finish_reason"] = "error"
        return {**body, "choices": [choice], "usage": {**body["usage"], "cost": 0}}
    return {**body, "choices": [choice]}


def _per_token(usd_per_million: Decimal | None) -> str | None:
    return None if usd_per_million is None else format(usd_per_million / MILLION, "f")


def models_body(models: Mapping[str, PriceSettings], without_tools: tuple[str, ...]) -> dict[str, Any]:
    """`GET /models`."""
    data = [_model_entry(name, price, name not in without_tools) for name, price in models.items()]
    return {"data": data, "total_count": len(data), "links": {"next": None}}


def _model_entry(name: str, price: PriceSettings, tools: bool) -> dict[str, Any]:
    pricing = {
        "prompt": _per_token(price.prompt_usd),
        "completion": _per_token(price.completion_usd),
        "request": format(price.request_usd, "f"),
        "input_cache_read": _per_token(price.cache_read_usd),
        "input_cache_write": _per_token(price.cache_write_usd),
    }
    parameters = ["max_tokens", "temperature", "reasoning", *(["tools", "tool_choice"] if tools else [])]
    return {
        "id": name,
        "name": name,
        "context_length": 1_000_000,
        "pricing": {key: value for key, value in pricing.items() if value is not None},
        "supported_parameters": parameters,
        "top_provider": {"max_completion_tokens": 64_000},
    }
