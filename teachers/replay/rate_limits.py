"""Pause teachers that report a rate limit."""

import asyncio
import random
from collections import Counter

from tracemill.records.reply import FailureKind
from tracemill.teachers.core.teacher_protocol import AttemptResult
from tracemill.teachers.core.teacher_settings import ReplaySettings

ACCOUNT = ""
"""Stands for the account that all teachers share, in place of a teacher's name."""


class RateLimitPauses:
    """The pauses of one replay, on the running loop's clock; each holds for all calls of a teacher."""

    def __init__(self, settings: ReplaySettings) -> None:
        self._settings = settings
        self._resume_at: dict[str, float] = {}
        self._limited: Counter[str] = Counter()

    def hold(self, teacher: str, seconds: float) -> None:
        """Hold back all calls of a teacher, or of all teachers for `ACCOUNT`.

        A burst of HTTP 429 then costs one Retry-After.
        """
        until = asyncio.get_running_loop().time() + seconds
        self._resume_at[teacher] = max(until, self._resume_at.get(teacher, 0.0))

    def left_s(self, teacher: str) -> float:
        """Return the seconds until the next call of a teacher may start."""
        until = max(self._resume_at.get(teacher, 0.0), self._resume_at.get(ACCOUNT, 0.0))
        return max(until - asyncio.get_running_loop().time(), 0.0)

    def cool_down(self, teacher: str, asked: AttemptResult) -> float | None:
        """Return the pause of a teacher that is rate limited without a Retry-After, in seconds.

        The pause holds for all its calls and doubles each time it was not enough. Return None for other
        replies.
        """
        if asked.reply.failure is None:
            self._limited.pop(teacher, None)
        if asked.reply.failure != FailureKind.RATE_LIMITED or asked.account:
            return None
        if not self.left_s(teacher):
            self.hold(teacher, self.backoff_s(self._limited[teacher]))
            self._limited[teacher] += 1
        return self.left_s(teacher)

    def backoff_s(self, times: int) -> float:
        """Return a wait that doubles with every earlier wait, with jitter, in seconds."""
        ceiling = min(self._settings.backoff_s * 2**times, self._settings.max_backoff_s)
        return ceiling * (0.5 + random.random() / 2)
