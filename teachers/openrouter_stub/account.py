"""Keep the stub server's account, in nano-USD, and decide when it injects faults."""

import hashlib
import math
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from statistics import NormalDist
from typing import Any

from tracemill.teachers.core.price import nanousd_to_usd, usd_down
from tracemill.teachers.offline.sim_policy import sim_policy_share
from tracemill.teachers.openrouter_stub.prompt_cache import CacheTokens
from tracemill.teachers.openrouter_stub.stub_settings import FaultSettings, StubSettings


class StubAccount:
    """Counters and balance; a request is identified by the hash of its body."""

    def __init__(self, settings: StubSettings) -> None:
        self.settings = settings
        self.charged_nanousd = 0
        self.received = 0
        self.requests = 0
        self.in_flight = 0
        self.most_in_flight = 0
        self._attempts: Counter[str] = Counter()
        self._last_at: dict[str, float] = {}
        self._gaps_s: list[float] = []
        self._paid: Counter[str] = Counter()
        self._faults: Counter[str] = Counter()
        self._by_model: Counter[str] = Counter()
        self._cached_tokens = 0
        self._written_tokens = 0
        self._held_nanousd = 0
        self._bills: dict[str, tuple[float, int]] = {}
        self.lookups = 0

    def arrive(self, body: bytes) -> tuple[str, int]:
        """Count a request; return its hash and the number of earlier attempts at it."""
        key = hashlib.blake2b(body, digest_size=12).hexdigest()
        attempt = self._attempts[key]
        self._attempts[key] += 1
        self.received += 1
        now = time.monotonic()
        if attempt:
            self._gaps_s.append(now - self._last_at[key])
        self._last_at[key] = now
        return key, attempt

    def fault(self, key: str, attempt: int, model: str) -> FaultSettings | None:
        """Return the first configured fault that hits this attempt, None for none."""
        for index, fault in enumerate(self.settings.faults):
            if self._hits(fault, index, key, attempt, model):
                self._faults[fault.kind.value] += 1
                return fault
        return None

    def _hits(self, fault: FaultSettings, index: int, key: str, attempt: int, model: str) -> bool:
        number = self.received - 1
        if fault.model is not None and fault.model != model:
            return False
        if fault.first_attempts is not None and attempt >= fault.first_attempts:
            return False
        if number < fault.after_requests:
            return False
        if fault.first_requests is not None and number >= fault.after_requests + fault.first_requests:
            return False
        return sim_policy_share(self.settings.seed, "fault", index, key, attempt) < fault.probability

    def covers(self, nanousd: int) -> bool:
        """Return whether the balance pays for a call."""
        credit = self.settings.credit_usd
        return credit is None or self.charged_nanousd + nanousd <= usd_down(credit)

    @contextmanager
    def hold(self, nanousd: int) -> Iterator[bool]:
        """Count a call as in flight during the block; yield False if the limit forbids it."""
        most = self.settings.in_flight_usd
        fits = most is None or not self._held_nanousd or self._held_nanousd + nanousd <= usd_down(most)
        held_nanousd = nanousd if fits else 0
        self._held_nanousd += held_nanousd
        try:
            yield fits
        finally:
            self._held_nanousd -= held_nanousd

    def charge(self, key: str, model: str, nanousd: int, found: CacheTokens) -> None:
        """Charge an answer."""
        self._cached_tokens += found.cached_tokens
        self._written_tokens += found.written_tokens
        self.charged_nanousd += nanousd
        self._paid[key] += 1
        self._by_model[model] += 1

    def bill(self, generation_id: str, nanousd: int) -> None:
        """Record the charge of an answer."""
        self._bills[generation_id] = (time.monotonic() + self.settings.bill_delay_s, nanousd)

    def billed(self, generation_id: str) -> int | None:
        """Return the charge of an answer, in nano-USD; None if unknown, or not yet known."""
        self.lookups += 1
        ready_at, nanousd = self._bills.get(generation_id, (math.inf, 0))
        return nanousd if time.monotonic() >= ready_at else None

    def latency_s(self, key: str, attempt: int) -> float:
        """Return a lognormal latency around the configured median; the same for the same request."""
        settings = self.settings
        if not settings.latency_spread:
            return settings.latency_s
        drawn = min(max(sim_policy_share(settings.seed, "latency", key, attempt), 1e-6), 1 - 1e-6)
        return settings.latency_s * math.exp(settings.latency_spread * NormalDist().inv_cdf(drawn))

    def used_usd(self) -> float:
        """Return the total charge, including that of other users, in USD."""
        return nanousd_to_usd(self.charged_nanousd + usd_down(self.settings.used_elsewhere_usd))

    def key_page(self) -> dict[str, Any]:
        """Return the body of `GET /key`."""
        credit = self.settings.credit_usd
        limit = float(credit) if credit is not None else None
        used = nanousd_to_usd(self.charged_nanousd)
        usage = {"usage": self.used_usd()} if self.settings.says_usage == "key" else {}
        return {
            "data": {
                **usage,
                "label": "simulated",
                "limit": limit,
                "limit_remaining": None if limit is None else max(limit - used, 0.0),
                "is_free_tier": False,
            }
        }

    def stats(self) -> dict[str, Any]:
        """Return the body of `GET /__stats`.

        `requests` counts all of them, `received` those for an answer, `looked_up` those for a price;
        `paid_twice` counts payments beyond the first for one body; gaps are seconds between two attempts at
        one body.
        """
        return {
            "requests": self.requests,
            "received": self.received,
            "distinct": len(self._attempts),
            "paid": sum(self._paid.values()),
            "paid_twice": sum(count - 1 for count in self._paid.values()),
            "looked_up": self.lookups,
            "most_in_flight": self.most_in_flight,
            "charged_nanousd": self.charged_nanousd,
            "charged_usd": nanousd_to_usd(self.charged_nanousd),
            "cached_tokens": self._cached_tokens,
            "cache_write_tokens": self._written_tokens,
            "by_model": dict(self._by_model),
            "faults": dict(self._faults),
            "shortest_gap_s": min(self._gaps_s, default=None),
            "longest_gap_s": max(self._gaps_s, default=None),
        }
