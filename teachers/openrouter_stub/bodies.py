"""Build bodies in OpenRouter's format (https://openrouter.ai/docs/api-reference)."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from tracemill.teachers.core.price import MILLION, nanousd_to_usd
from tracemill.teachers.core.teacher_settings import PriceSettings, PriceTierSettings
from tracemill.teachers.offline.sim_policy import SimulatedAnswer
from tracemill.teachers.openrouter_stub.prompt_cache import CacheTokens
from tracemill.teachers.openrouter_stub.stub_settings import StubSettings

PROVIDER = "simulated"
"""Tag of the default provider of a model."""

CONTEXT_TOKENS = 1_000_000


def completion_body(
    model: str, given: SimulatedAnswer, found: CacheTokens, cost_nanousd: int, provider: str, created: int
) -> dict[str, Any]:
    """Return a chat completion with its usage and cost."""
    cost = nanousd_to_usd(cost_nanousd)
    cached: dict[str, int] = {"cached_tokens": found.cached_tokens}
    if found.written_tokens:
        cached["cache_write_tokens"] = found.written_tokens
    return {
        "id": f"gen-{created}-{given.call_id}",
        "object": "chat.completion",
        "created": created,
        "model": model,
        "provider": provider,
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
            "prompt_tokens_details": cached,
            "completion_tokens_details": {"reasoning_tokens": 0},
        },
    }


def _per_token(usd_per_million: Decimal | None) -> str | None:
    return None if usd_per_million is None else format(usd_per_million / MILLION, "f")


def stub_context_tokens(settings: StubSettings, model: str) -> int:
    """Return the longest prompt and answer together of a model."""
    return settings.contexts.get(model, CONTEXT_TOKENS)


_HEEDED = ("max_tokens", "temperature", "reasoning", "logprobs", "top_logprobs", "tools", "tool_choice")


def ignored_body_fields(settings: StubSettings, model: str) -> set[str]:
    """Return the request fields that a model does not support."""
    tools = ("tools", "tool_choice") if model in settings.without_tools else ()
    return {*settings.unlisted.get(model, ()), *tools}


def models_body(settings: StubSettings) -> dict[str, Any]:
    """Return the body of `GET /models`."""
    data = [_model_entry(settings, model) for model in settings.models]
    return {"data": data, "total_count": len(data), "links": {"next": None}}


def _model_entry(settings: StubSettings, model: str) -> dict[str, Any]:
    without = ignored_body_fields(settings, model)
    return {
        "id": model,
        "canonical_slug": model,
        "name": model,
        "context_length": stub_context_tokens(settings, model),
        "pricing": _pricing(settings.models[model]),
        "supported_parameters": [name for name in _HEEDED if name not in without],
        "top_provider": {"max_completion_tokens": 64_000},
    }


def _pricing(price: PriceSettings) -> dict[str, Any]:
    """Return prices as in the catalogue: strings of USD a token, with overrides for long prompts."""
    overrides = [_given(tier) | {"min_prompt_tokens": tier.above_tokens} for tier in price.tiers]
    base = _given(price) | {"request": format(price.request_usd, "f")}
    return base | ({"overrides": overrides} if overrides else {})


def _given(price: PriceSettings | PriceTierSettings) -> dict[str, Any]:
    found = {
        "prompt": _per_token(price.prompt_usd),
        "completion": _per_token(price.completion_usd),
        "input_cache_read": _per_token(price.cache_read_usd),
        "input_cache_write": _per_token(price.cache_write_usd),
    }
    return {key: value for key, value in found.items() if value is not None}


def endpoints_body(settings: StubSettings, model: str) -> dict[str, Any]:
    """Return the body of `GET /models/{author}/{slug}/endpoints`."""
    entry = _model_entry(settings, model)
    endpoints = [
        {
            "name": f"{tag} | {model}",
            "tag": tag,
            "provider_name": tag.partition("/")[0],
            "context_length": entry["context_length"],
            "max_completion_tokens": entry["top_provider"]["max_completion_tokens"],
            "supported_parameters": entry["supported_parameters"],
            "supports_implicit_caching": True,
            "pricing": _pricing(prices),
        }
        for tag, prices in stub_body_providers(settings, model).items()
    ]
    return {"data": {"id": model, "name": model, "endpoints": endpoints}}


def stub_body_providers(settings: StubSettings, model: str) -> Mapping[str, PriceSettings]:
    """Return the prices of the providers that serve a model, by tag."""
    return settings.endpoints.get(model) or {PROVIDER: settings.models[model]}
