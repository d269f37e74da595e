"""What a call may cost at most, and what it did cost, in integers of nano-USD (1e-9 USD).

Prices are kept per token as Decimal, the way OpenRouter's catalogue gives them
(https://openrouter.ai/docs/api-reference/models). Bounds round up.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from typing import Any

from tracemill.teachers.core.teacher_settings import PriceSettings, PriceTierSettings

NANO = Decimal(1_000_000_000)
MILLION = Decimal(1_000_000)
_HAIR = Decimal("1.000000001")
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
    """Prices that replace the base where the prompt is longer than `min_prompt_tokens`. `timed` is True
    for one of certain hours: which hour it is is not looked at, so that it bounds always."""

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
    tiers: tuple[Tier, ...] = ()

    def _within(self, prompt_tokens: int) -> "Iterator[Price | Tier]":
        """The prices a prompt of at most so many tokens may be charged."""
        yield self
        yield from (tier for tier in self.tiers if tier.min_prompt_tokens < prompt_tokens)

    def bound_nusd(self, prompt_tokens: int, max_tokens: int) -> int:
        """The most a call can cost whose messages and tools are at most `prompt_tokens` (or so many bytes:
        a byte-level tokenizer makes no more tokens than there are bytes) and that answers `max_tokens`.

        Prompt tokens count at the dearest of the input and cache-write prices of every tier the prompt may
        fall into.
        """
        tokens = prompt_tokens + TEMPLATE_TOKENS
        prompt = max(max(p.prompt, p.cache_write) for p in self._within(tokens))
        completion = max(p.completion for p in self._within(tokens))
        return usd_up(tokens * prompt + max_tokens * completion + self.request)

    def cost_nusd(self, prompt_tokens: int, completion_tokens: int, cached_tokens: int = 0) -> int:
        """What a call costs by these prices where the provider does not say: no cache discount is
        assumed beyond `cached_tokens`, and what is not read from the cache may have been written."""
        some = list(self._within(prompt_tokens))
        cached = min(cached_tokens, prompt_tokens)
        usd = (prompt_tokens - cached) * max(max(p.prompt, p.cache_write) for p in some)
        usd += cached * max(p.cache_read for p in some)
        return usd_up(usd + completion_tokens * max(p.completion for p in some) + self.request)

    def least_nusd(self, prompt_tokens: int, completion_tokens: int, cached_tokens: int, written: int) -> int:
        """Return the least that a provider with this list can charge: every token at the lowest price that
        it has in any tier."""
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
        """Return the dearest prices that a prompt of at most so many tokens may be charged, in USD per
        million tokens, as OpenRouter's `provider.max_price` has them; a hair above, since a price per token
        times a million is compared with them."""
        some = list(self._within(prompt_tokens + TEMPLATE_TOKENS))
        prices = {"prompt": max(p.prompt for p in some), "completion": max(p.completion for p in some)}
        found = {name: float(price * MILLION * _HAIR) for name, price in prices.items()}
        return found | ({"request": float(self.request * _HAIR)} if self.request else {})

    def charge_nusd(
        self, prompt_tokens: int, completion_tokens: int, cached_tokens: int, written_tokens: int
    ) -> int:
        """What a provider with this list charges: of the prompt, what was read from its cache and what was
        written to it, at their prices; the rest at the input price. Prices of certain hours are left out;
        of the tiers that fit, the last holds."""
        *_, p = (p for p in self._within(prompt_tokens) if not (isinstance(p, Tier) and p.timed))
        plain = prompt_tokens - cached_tokens - written_tokens
        usd = plain * p.prompt + cached_tokens * p.cache_read + written_tokens * p.cache_write
        return usd_up(usd + completion_tokens * p.completion + self.request)


def dearest(prices: Sequence[Price]) -> Price:
    """A price that bounds each of these."""
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
    """The per-token price of a configured one; unset cache prices are the prompt price."""
    prompt = settings.prompt_usd / MILLION
    base = Price(
        prompt=prompt,
        completion=settings.completion_usd / MILLION,
        cache_read=_per_token(settings.cache_read_usd, prompt),
        cache_write=_per_token(settings.cache_write_usd, prompt),
        request=settings.request_usd,
    )
    return replace(base, tiers=tuple(_configured_tier(tier, base) for tier in settings.tiers))


def _configured_tier(tier: PriceTierSettings, base: Price) -> Tier:
    prompt = _per_token(tier.prompt_usd, base.prompt)
    return Tier(
        min_prompt_tokens=tier.above_tokens,
        prompt=prompt,
        completion=_per_token(tier.completion_usd, base.completion),
        cache_read=_per_token(tier.cache_read_usd, base.cache_read),
        cache_write=_per_token(tier.cache_write_usd, max(prompt, base.cache_write)),
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
        cache_read=_decimal(override.get("input_cache_read"), base.cache_read),
        cache_write=_decimal(override.get("input_cache_write"), max(prompt, base.cache_write)),
        timed="utc_start" in override or "utc_end" in override,
    )


def price_of_catalogue(entry: Mapping[str, Any]) -> Price:
    """The price of one entry of `GET /models`, or of one endpoint of a model. Raises ValueError where its
    prices cannot be read."""
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
        raise ValueError("a price that is no number") from None
