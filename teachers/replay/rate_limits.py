"""How long a teacher is not asked, because it said that it is asked too often."""

import asyncio
import random
from collections import Counter

from tracemill.records.reply import FailureKind
from tracemill.teachers.core.teacher_protocol import Asked
from tracemill.teachers.core.teacher_settings import ReplaySettings

ACCOUNT = ""
"""In place of a teacher's name: the account they all share."""


class Pauses:
    """The waits of one replay, on the clock of the running loop; each holds for all calls of a teacher."""

    def __init__(self, settings: ReplaySettings) -> None:
        self._settings = settings
        self._resume_at: dict[str, float] = {}
        self._limited: Counter[str] = Counter()

    def hold(self, teacher: str, seconds: float) -> None:
        """Holds all calls of a teacher back, or of all where it is `ACCOUNT`: one burst of 429 costs one
        Retry-After."""
        until = asyncio.get_running_loop().time() + seconds
        self._resume_at[teacher] = max(until, self._resume_at.get(teacher, 0.0))

    def left_s(self, teacher: str) -> float:
        """Seconds until the next call of a teacher may go out."""
        until = max(self._resume_at.get(teacher, 0.0), self._resume_at.get(ACCOUNT, 0.0))
        return max(until - asyncio.get_running_loop().time(), 0.0)

    def cool_down(self, teacher: str, asked: Asked) -> float | None:
        """Seconds until a teacher may be asked again, where its answer says that it is asked too often and
        not for how long: all its calls wait, and longer every time that was not enough. None elsewhere."""
        if asked.reply.failure is None:
            self._limited.pop(teacher, None)
        if asked.reply.failure != FailureKind.RATE_LIMITED or asked.account:
            return None
        if not self.left_s(teacher):
            self.hold(teacher, self.backoff_s(self._limited[teacher]))
            self._limited[teacher] += 1
        return self.left_s(teacher)

    def backoff_s(self, times: int) -> float:
        """A wait that doubles with every time before it, with jitter."""
        ceiling = min(self._settings.backoff_s * 2**times, self._settings.max_backoff_s)
        return ceiling * (0.5 + random.random() / 2)
