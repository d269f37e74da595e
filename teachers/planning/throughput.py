"""Learn during a replay how fast teachers answer and how often each is needed."""

from collections.abc import Mapping

_SMOOTHING = 0.1
_PRIOR = 4
"""Weight, in steps, of the prior that a teacher is asked everywhere."""


class TeacherPace:
    """The pace of each teacher, in seconds on the schedule's clock."""

    def __init__(self, lifetimes_s: Mapping[str, float], latency_s: float = 8.0) -> None:
        """Start from assumptions.

        `lifetimes_s` has the lifetime of each teacher's cache entries, `latency_s` the latency assumed
        before any answer.
        """
        self._lifetime_s = dict(lifetimes_s)
        self._latency_s = dict.fromkeys(lifetimes_s, latency_s)
        self._answered: set[str] = set()
        self._left = dict.fromkeys(lifetimes_s, 0)
        self._asked = dict.fromkeys(lifetimes_s, 0)
        self._needed = dict.fromkeys(lifetimes_s, 0)
        self._skipped = dict.fromkeys(lifetimes_s, 0)

    def add(self, teacher: str, steps: int) -> None:
        """Add steps at which the teacher may be asked."""
        self._left[teacher] += steps

    def asked(self, teacher: str) -> None:
        """Record that one of them is asked."""
        self._left[teacher] -= 1
        self._asked[teacher] += 1

    def needed(self, teacher: str) -> None:
        """Record that one of them will be asked: the teachers before did not decide it."""
        self._needed[teacher] += 1

    def dropped(self, teacher: str, skipped: bool) -> None:
        """Record that one of them is not asked; `skipped` if the step was decided without it."""
        self._left[teacher] -= 1
        self._skipped[teacher] += skipped

    def answered(self, teacher: str, seconds: float) -> None:
        """Record the latency of an answer."""
        weight = _SMOOTHING if teacher in self._answered else 1.0
        self._answered.add(teacher)
        self._latency_s[teacher] += weight * (seconds - self._latency_s[teacher])

    def share(self, teacher: str) -> float:
        """Return the share of its steps at which the teacher is needed."""
        asked = max(self._asked[teacher], self._needed[teacher]) + _PRIOR
        return asked / (asked + self._skipped[teacher])

    def step_s(self, teacher: str) -> float:
        """Return the seconds that a step takes the teacher on average, skipped ones included."""
        return self._latency_s[teacher] * self.share(teacher)

    def work_s(self) -> float:
        """Return the seconds that all remaining questions would take one after the other."""
        return sum(left * self.step_s(teacher) for teacher, left in self._left.items())

    def outlives(self, teacher: str, seconds: float) -> bool:
        """Return whether a cache entry surely lives this long."""
        return seconds * 2 <= self._lifetime_s[teacher]

    def sparse(self, leader: str, follower: str) -> bool:
        """Return whether one call per answer of the leader is too seldom for the follower's cache."""
        return not self.outlives(follower, self._latency_s[leader] / self.share(follower))
