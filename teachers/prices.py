"""What a call may cost at most, and what it did cost, in integers of nano-USD (1e-9 USD).

Prices are kept per token as Decimal, the way OpenRouter's catalogue gives them
(https://openrouter.ai/docs/api-reference/models). Bounds round up.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from typing import Any

from teachers.settings import PriceSettings

NANO = Decimal(1_000_000_000)
MILLION = Decimal(1_000_000)
TEMPLATE_TOKENS = 1024
"""Tokens a chat template may add around messages and tools beyond the bytes of their JSON."""


def usd_up(usd: Decimal | float | str) -> int:
    """A cost in nano-USD, rounded up. A float is read as its shortest decimal text."""
    return int((Decimal(str(usd)) * NANO).to_integral_value(rounding=ROUND_CEILING))


def usd_down(usd: Decimal | float | str) -> int:
    """A cap in nano-USD, rounded down."""
    return int((Decimal(str(usd)) * NANO).to_integral_value(rounding=ROUND_FLOOR))


def nusd_to_usd(nusd: int) -> float:
    """Nano-USD as USD, for rows and tables; sums are kept in integers."""
    return float(Decimal(nusd) / NANO)


@dataclass(frozen=True, slots=True)
class Tier:
    """Prices that replace the base where the prompt is longer than `min_prompt_tokens`, or at certain
    hours (`min_prompt_tokens` 0: whether the hour applies is not looked at, so it bounds always)."""

    min_prompt_tokens: int
    prompt: Decimal
    completion: Decimal
    cache_write: Decimal


@dataclass(frozen=True, slots=True)
class Price:
    """USD per token of one model, and what its catalogue entry says it can do.

    `tools` is None where nobody said. `context_tokens` is the longest prompt and answer together.
    """

    prompt: Decimal = Decimal(0)
    completion: Decimal = Decimal(0)
    cache_read: Decimal = Decimal(0)
    cache_write: Decimal = Decimal(0)
    request: Decimal = Decimal(0)
    tiers: tuple[Tier, ...] = ()
    context_tokens: int | None = None
    tools: bool | None = None

    def bound_nusd(self, prompt_bytes: int, max_tokens: int) -> int:
        """The most a call can cost whose request is `prompt_bytes` long and answers `max_tokens`.

        A byte-level tokenizer makes no more tokens than there are bytes, and the JSON around a message
        is longer than what a chat template puts there; prompt tokens count at the dearest of the input
        and cache-write prices of every tier the prompt may fall into.
        """
        tokens = prompt_bytes + TEMPLATE_TOKENS
        tiers = [tier for tier in self.tiers if tier.min_prompt_tokens < tokens]
        prompt = max(
            self.prompt, self.cache_write, *(max(t.prompt, t.cache_write) for t in tiers), Decimal(0)
        )
        completion = max(self.completion, *(tier.completion for tier in tiers), Decimal(0))
        return usd_up(tokens * prompt + max_tokens * completion + self.request)

    def cost_nusd(self, prompt_tokens: int, completion_tokens: int, cached_tokens: int = 0) -> int:
        """What a call costs by these prices where the provider does not say: no cache discount is
        assumed beyond `cached_tokens`, and what is not read from the cache may have been written."""
        tiers = [tier for tier in self.tiers if tier.min_prompt_tokens < prompt_tokens]
        prompt = max(
            self.prompt, self.cache_write, *(max(t.prompt, t.cache_write) for t in tiers), Decimal(0)
        )
        completion = max(self.completion, *(tier.completion for tier in tiers), Decimal(0))
        fresh = max(prompt_tokens - cached_tokens, 0) * prompt + min(cached_tokens, prompt_tokens) * (
            self.cache_read if not tiers else prompt
        )
        return usd_up(fresh + completion_tokens * completion + self.request)


def price_of(settings: PriceSettings) -> Price:
    """The per-token price of a configured one; unset cache prices are the prompt price."""

    def per_token(value: Decimal | None) -> Decimal:
        return (settings.prompt_usd if value is None else value) / MILLION

    return Price(
        prompt=settings.prompt_usd / MILLION,
        completion=settings.completion_usd / MILLION,
        cache_read=per_token(settings.cache_read_usd),
        cache_write=per_token(settings.cache_write_usd),
        request=settings.request_usd,
    )


def _decimal(value: object, default: Decimal = Decimal(0)) -> Decimal:
    """A price string of the catalogue; negative ("-1": depends on the routed model) raises ValueError."""
    if value is None or value == "":
        return default
    number = Decimal(str(value))
    if not number.is_finite() or number < 0:
        raise ValueError(f"price {value!r}")
    return number


def _tier(override: Mapping[str, Any], base: Price) -> Tier:
    prompt = _decimal(override.get("prompt"), base.prompt)
    return Tier(
        min_prompt_tokens=int(override.get("min_prompt_tokens") or 0),
        prompt=prompt,
        completion=_decimal(override.get("completion"), base.completion),
        cache_write=_decimal(override.get("input_cache_write"), max(prompt, base.cache_write)),
    )


def price_of_catalogue(entry: Mapping[str, Any]) -> Price:
    """The price of one entry of `GET /models`. Raises ValueError where its prices cannot be read."""
    pricing: Mapping[str, Any] = entry.get("pricing") or {}
    try:
        prompt = _decimal(pricing.get("prompt"))
        completion = max(_decimal(pricing.get("completion")), _decimal(pricing.get("internal_reasoning")))
        base = Price(
            prompt=prompt,
            completion=completion,
            cache_read=_decimal(pricing.get("input_cache_read"), prompt),
            cache_write=_decimal(pricing.get("input_cache_write"), prompt),
            request=_decimal(pricing.get("request")),
        )
        overrides: Sequence[Mapping[str, Any]] = pricing.get("overrides") or ()
        tiers = tuple(_tier(override, base) for override in overrides)
    except ArithmeticError:
        raise ValueError("a price that is no number") from None
    parameters = entry.get("supported_parameters")
    return Price(
        prompt=base.prompt,
        completion=base.completion,
        cache_read=base.cache_read,
        cache_write=base.cache_write,
        request=base.request,
        tiers=tiers,
        context_tokens=entry.get("context_length"),
        tools="tools" in parameters if isinstance(parameters, list) else None,
    )
