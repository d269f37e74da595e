"""Compute what a call may cost at most, and what it did cost, in integers of nano-USD (1e-9 USD).

Prices are Decimals per token, the way OpenRouter's catalogue gives them
(https://openrouter.ai/docs/api-reference/models). Bounds round up.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from typing import Any

from tracemill.teachers.core.teacher_settings import PriceSettings, PriceTierSettings

NANO = Decimal(1_000_000_000)
MILLION = Decimal(1_000_000)
_ROUNDING_MARGIN = Decimal("1.000000001")
TEMPLATE_TOKENS = 1024
"""Tokens a chat template may add around messages and tools beyond the bytes of their JSON."""


def usd_up(usd: Decimal | float | str) -> int:
    """Return a cost in nano-USD, rounded up; a float is read as its shortest decimal text."""
    return int((Decimal(str(usd)) * NANO).to_integral_value(rounding=ROUND_CEILING))


def usd_down(usd: Decimal | float | str) -> int:
    """Return a cap in nano-USD, rounded down."""
    return int((Decimal(str(usd)) * NANO).to_integral_value(rounding=ROUND_FLOOR))


def nanousd_to_usd(nanousd: int) -> float:
    """Return nano-USD as USD, for rows and tables; sums are kept in integers."""
    return float(Decimal(nanousd) / NANO)


@dataclass(frozen=True, slots=True)
class PriceTier:
    """Prices that replace the base where the prompt is longer than `min_prompt_tokens`.

    `timed` is True for prices of certain hours; the hour is not checked, so such a tier always bounds.
    """

    min_prompt_tokens: int
    prompt: Decimal
    completion: Decimal
    cache_read: Decimal
    cache_write: Decimal
    timed: bool = False


@dataclass(frozen=True, slots=True)
class Price:
    """USD per token of one model, and per request."""

    prompt: Decimal = Decimal(0)
    completion: Decimal = Decimal(0)
    cache_read: Decimal = Decimal(0)
    cache_write: Decimal = Decimal(0)
    request: Decimal = Decimal(0)
    tiers: tuple[PriceTier, ...] = ()

    def _within(self, prompt_tokens: int) -> "Iterator[Price | PriceTier]":
        """Yield the prices that may be charged for a prompt of at most this many tokens."""
        yield self
        yield from (tier for tier in self.tiers if tier.min_prompt_tokens < prompt_tokens)

    def bound_nanousd(self, prompt_tokens: int, max_tokens: int) -> int:
        """Return the most that a call can cost, in nano-USD.

        Messages and tools have at most `prompt_tokens` tokens, or bytes, since a byte-level tokenizer makes
        no more tokens than bytes. Prompt tokens count at the highest input or cache-write price of every tier
        the prompt may reach.
        """
        tokens = prompt_tokens + TEMPLATE_TOKENS
        prompt = max(max(p.prompt, p.cache_write) for p in self._within(tokens))
        completion = max(p.completion for p in self._within(tokens))
        return usd_up(tokens * prompt + max_tokens * completion + self.request)

    def cost_nanousd(self, prompt_tokens: int, completion_tokens: int, cached_tokens: int = 0) -> int:
        """Return the cost of a call, in nano-USD, for a provider that states none.

        Only `cached_tokens` get the cache discount, and the others may have been written to the cache.
        """
        some = list(self._within(prompt_tokens))
        cached = min(cached_tokens, prompt_tokens)
        usd = (prompt_tokens - cached) * max(max(p.prompt, p.cache_write) for p in some)
        usd += cached * max(p.cache_read for p in some)
        return usd_up(usd + completion_tokens * max(p.completion for p in some) + self.request)

    def least_nanousd(
        self, prompt_tokens: int, completion_tokens: int, cached_tokens: int, written: int
    ) -> int:
        """Return the lowest possible charge of a provider with these prices, in nano-USD.

        Every token counts at its lowest price in any tier.
        """
        every = [self, *self.tiers]
        cached = min(cached_tokens, prompt_tokens)
        fresh = min(p.prompt for p in every)
        put = min(written, prompt_tokens - cached)
        usd = (prompt_tokens - cached - put) * fresh
        usd += put * min(fresh, *(p.cache_write for p in every))
        usd += cached * min(p.cache_read for p in every)
        usd += completion_tokens * min(p.completion for p in every)
        return usd_down(usd)

    def limits_usd(self, prompt_tokens: int) -> dict[str, float]:
        """Return the highest prices of a prompt of at most this many tokens, in USD per million.

        They have the shape of OpenRouter's `provider.max_price`, plus a margin for its rounding.
        """
        some = list(self._within(prompt_tokens + TEMPLATE_TOKENS))
        prices = {"prompt": max(p.prompt for p in some), "completion": max(p.completion for p in some)}
        found = {name: float(price * MILLION * _ROUNDING_MARGIN) for name, price in prices.items()}
        return found | ({"request": float(self.request * _ROUNDING_MARGIN)} if self.request else {})

    def charge_nanousd(
        self, prompt_tokens: int, completion_tokens: int, cached_tokens: int, written_tokens: int
    ) -> int:
        """Return the charge of a provider with these prices for a call, in nano-USD.

        Cached and written tokens have their own prices. Prices of certain hours are left out; the last tier
        that fits the prompt applies.
        """
        *_, p = (p for p in self._within(prompt_tokens) if not (isinstance(p, PriceTier) and p.timed))
        plain = prompt_tokens - cached_tokens - written_tokens
        usd = plain * p.prompt + cached_tokens * p.cache_read + written_tokens * p.cache_write
        return usd_up(usd + completion_tokens * p.completion + self.request)


def highest_price(prices: Sequence[Price]) -> Price:
    """Return a price that is at least each of these."""
    return Price(
        prompt=max(p.prompt for p in prices),
        completion=max(p.completion for p in prices),
        cache_read=max(p.cache_read for p in prices),
        cache_write=max(p.cache_write for p in prices),
        request=max(p.request for p in prices),
        tiers=tuple(tier for p in prices for tier in p.tiers),
    )


def _per_token(usd: Decimal | None, default: Decimal) -> Decimal:
    return default if usd is None else usd / MILLION


def price_of(settings: PriceSettings) -> Price:
    """Return the per-token price of configured prices; unset cache prices are the prompt price."""
    prompt = settings.prompt_usd / MILLION
    base = Price(
        prompt=prompt,
        completion=settings.completion_usd / MILLION,
        cache_read=_per_token(settings.cache_read_usd, prompt),
        cache_write=_per_token(settings.cache_write_usd, prompt),
        request=settings.request_usd,
    )
    return replace(base, tiers=tuple(_configured_tier(tier, base) for tier in settings.tiers))


def _configured_tier(tier: PriceTierSettings, base: Price) -> PriceTier:
    prompt = _per_token(tier.prompt_usd, base.prompt)
    return PriceTier(
        min_prompt_tokens=tier.above_tokens,
        prompt=prompt,
        completion=_per_token(tier.completion_usd, base.completion),
        cache_read=_per_token(tier.cache_read_usd, base.cache_read),
        cache_write=_per_token(tier.cache_write_usd, max(prompt, base.cache_write)),
    )


def _decimal(value: object, default: Decimal = Decimal(0)) -> Decimal:
    """Parse a price of the catalogue; raise ValueError for a negative one (it depends on routing)."""
    if value is None or value == "":
        return default
    number = Decimal(str(value))
    if not number.is_finite() or number < 0:
        raise ValueError(f"price {value!r}")
    return number


def _tier(override: Mapping[str, Any], base: Price) -> PriceTier:
    prompt = _decimal(override.get("prompt"), base.prompt)
    return PriceTier(
        min_prompt_tokens=int(override.get("min_prompt_tokens") or 0),
        prompt=prompt,
        completion=_decimal(override.get("completion"), base.completion),
        cache_read=_decimal(override.get("input_cache_read"), base.cache_read),
        cache_write=_decimal(override.get("input_cache_write"), max(prompt, base.cache_write)),
        timed="utc_start" in override or "utc_end" in override,
    )


def price_of_catalogue(entry: Mapping[str, Any]) -> Price:
    """Return the price of an entry of `GET /models`, or of one endpoint of a model.

    Raises ValueError if it cannot be read.
    """
    pricing: Mapping[str, Any] = entry.get("pricing") or {}
    try:
        prompt = _decimal(pricing.get("prompt"))
        base = Price(
            prompt=prompt,
            completion=max(_decimal(pricing.get("completion")), _decimal(pricing.get("internal_reasoning"))),
            cache_read=_decimal(pricing.get("input_cache_read"), prompt),
            cache_write=_decimal(pricing.get("input_cache_write"), prompt),
            request=_decimal(pricing.get("request")),
        )
        overrides: Sequence[Mapping[str, Any]] = pricing.get("overrides") or ()
        return replace(base, tiers=tuple(_tier(override, base) for override in overrides))
    except ArithmeticError:
        raise ValueError("a price is not a number") from None
