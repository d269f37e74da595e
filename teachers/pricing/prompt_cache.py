"""Simulate a provider's prompt cache, and price calls by it.

The prompt of an answered call is a cache entry: a later prompt that begins with it reads those tokens at the
read price and writes the rest. `teachers.pricing.cache_rules` has the rules of each vendor.
"""

from dataclasses import dataclass, field

from tracemill.teachers.core.price import Price
from tracemill.teachers.pricing.cache_rules import CacheRule


@dataclass(frozen=True, slots=True)
class TokenCosts:
    """USD per token: `fresh_usd` for uncached input, `read_usd` for cached input, `answer_usd`."""

    fresh_usd: float
    read_usd: float
    answer_usd: float

    @classmethod
    def of(cls, price: Price) -> "TokenCosts":
        """Return the costs of a price; a new token costs the higher of input and cache write."""
        fresh = max(float(price.prompt), float(price.cache_write))
        return cls(fresh, float(price.cache_read), float(price.completion))

    def call_usd(self, prompt_tokens: int, cached_tokens: int, answer_tokens: int) -> float:
        """Return the cost of a call in USD whose first `cached_tokens` are read from the cache."""
        fresh = (prompt_tokens - cached_tokens) * self.fresh_usd
        return fresh + cached_tokens * self.read_usd + answer_tokens * self.answer_usd


@dataclass(slots=True)
class PromptCache:
    """The cache of one teacher, on the caller's clock.

    A `chain` names prompts that each begin with the shorter ones of the chain.
    """

    rule: CacheRule
    _entries: dict[str, dict[int, float]] = field(default_factory=dict[str, dict[int, float]])

    def read(self, chain: str, tokens: int, now: float) -> int:
        """Return how many of a prompt's tokens are cached at `now`, in seconds, and renew them."""
        entries = self._entries.get(chain, {})
        best = 0
        for size, used in entries.items():
            if now - used > self.rule.lifetime_s or (self.rule.marked and size > tokens):
                continue
            best = max(best, min(size, tokens))
        for size, used in entries.items():
            if size <= best and now - used <= self.rule.lifetime_s:
                entries[size] = now
        return best

    def answered(self, chain: str, tokens: int, now: float) -> None:
        """Cache a prompt whose answer began at `now`."""
        if self.rule.lifetime_s > 0 and tokens >= self.rule.min_tokens:
            entries = self._entries.setdefault(chain, {})
            entries[tokens] = now
