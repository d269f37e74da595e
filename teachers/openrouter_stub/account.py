"""What the stand-in server counts and charges, in nano-USD, and when it misbehaves."""

import hashlib
import math
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from statistics import NormalDist
from typing import Any

from tracemill.teachers.core.price import nusd_to_usd, usd_down
from tracemill.teachers.offline.sim_policy import sim_policy_share
from tracemill.teachers.openrouter_stub.prompt_cache import Found
from tracemill.teachers.openrouter_stub.stub_settings import FaultSettings, WireSettings


class Account:
    """Counters and balance. A request is known by the hash of its body."""

    def __init__(self, settings: WireSettings) -> None:
        self.settings = settings
        self.charged_nusd = 0
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
        self._held_nusd = 0
        self._bills: dict[str, tuple[float, int]] = {}
        self.looks = 0

    def arrive(self, body: bytes) -> tuple[str, int]:
        """Counts a request; gives its hash and which attempt at it this is, from 0."""
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
        """The first configured fault that hits this attempt."""
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

    def covers(self, nusd: int) -> bool:
        """Whether the balance pays for a call."""
        credit = self.settings.credit_usd
        return credit is None or self.charged_nusd + nusd <= usd_down(credit)

    @contextmanager
    def hold(self, nusd: int) -> Iterator[bool]:
        """Counts a call as in flight while the block runs; False where the account may not have it so."""
        most = self.settings.in_flight_usd
        fits = most is None or not self._held_nusd or self._held_nusd + nusd <= usd_down(most)
        held = nusd if fits else 0
        self._held_nusd += held
        try:
            yield fits
        finally:
            self._held_nusd -= held

    def charge(self, key: str, model: str, nusd: int, found: Found) -> None:
        """Takes money for an answer."""
        self._cached_tokens += found.cached_tokens
        self._written_tokens += found.written_tokens
        self.charged_nusd += nusd
        self._paid[key] += 1
        self._by_model[model] += 1

    def bill(self, generation_id: str, nusd: int) -> None:
        """Notes what an answer was charged."""
        self._bills[generation_id] = (time.monotonic() + self.settings.bill_delay_s, nusd)

    def billed(self, generation_id: str) -> int | None:
        """What was charged for an answer; None where it is not known, or not yet."""
        self.looks += 1
        ready_at, nusd = self._bills.get(generation_id, (math.inf, 0))
        return nusd if time.monotonic() >= ready_at else None

    def latency_s(self, key: str, attempt: int) -> float:
        """Lognormal around the configured median; the same request, the same wait."""
        settings = self.settings
        if not settings.latency_spread:
            return settings.latency_s
        drawn = min(max(sim_policy_share(settings.seed, "latency", key, attempt), 1e-6), 1 - 1e-6)
        return settings.latency_s * math.exp(settings.latency_spread * NormalDist().inv_cdf(drawn))

    def used_usd(self) -> float:
        """What was charged in all, by others too."""
        return nusd_to_usd(self.charged_nusd + usd_down(self.settings.used_elsewhere_usd))

    def key_page(self) -> dict[str, Any]:
        """`GET /key`."""
        credit = self.settings.credit_usd
        limit = float(credit) if credit is not None else None
        used = nusd_to_usd(self.charged_nusd)
        said = {"usage": self.used_usd()} if self.settings.says_usage == "key" else {}
        return {
            "data": {
                **said,
                "label": "simulated",
                "limit": limit,
                "limit_remaining": None if limit is None else max(limit - used, 0.0),
                "is_free_tier": False,
            }
        }

    def stats(self) -> dict[str, Any]:
        """`GET /__stats`: `requests` counts all of them, `received` those for an answer, `looked_up`
        those for a price afterwards;
        `paid_twice` counts payments beyond the first for one body; the gaps are the
        seconds between two attempts at one body."""
        return {
            "requests": self.requests,
            "received": self.received,
            "distinct": len(self._attempts),
            "paid": sum(self._paid.values()),
            "paid_twice": sum(count - 1 for count in self._paid.values()),
            "looked_up": self.looks,
            "most_in_flight": self.most_in_flight,
            "charged_nusd": self.charged_nusd,
            "charged_usd": nusd_to_usd(self.charged_nusd),
            "cached_tokens": self._cached_tokens,
            "cache_write_tokens": self._written_tokens,
            "by_model": dict(self._by_model),
            "faults": dict(self._faults),
            "shortest_gap_s": min(self._gaps_s, default=None),
            "longest_gap_s": max(self._gaps_s, default=None),
        }
