"""How fast a replay's teachers answer and how often each is needed, learnt while it runs."""

from collections.abc import Mapping

_SMOOTHING = 0.1
_PRIOR = 4
"""How many steps the assumption weighs that a teacher is asked everywhere."""


class Pace:
    """Times in seconds on the clock of the schedule."""

    def __init__(self, lifetimes_s: Mapping[str, float], latency_s: float = 8.0) -> None:
        """`lifetimes_s` is how long each teacher's cache entries live, `latency_s` how long an answer
        takes as long as none was seen."""
        self._lifetime_s = dict(lifetimes_s)
        self._latency_s = dict.fromkeys(lifetimes_s, latency_s)
        self._heard: set[str] = set()
        self._left = dict.fromkeys(lifetimes_s, 0)
        self._asked = dict.fromkeys(lifetimes_s, 0)
        self._needed = dict.fromkeys(lifetimes_s, 0)
        self._spared = dict.fromkeys(lifetimes_s, 0)

    def add(self, teacher: str, steps: int) -> None:
        """So many more steps may be asked."""
        self._left[teacher] += steps

    def asked(self, teacher: str) -> None:
        """One of them is asked."""
        self._left[teacher] -= 1
        self._asked[teacher] += 1

    def needed(self, teacher: str) -> None:
        """One of them will be asked: those before it did not settle the step."""
        self._needed[teacher] += 1

    def dropped(self, teacher: str, spared: bool) -> None:
        """One of them is not; `spared` where it is settled without this teacher."""
        self._left[teacher] -= 1
        self._spared[teacher] += spared

    def answered(self, teacher: str, seconds: float) -> None:
        """An answer took so long."""
        weight = _SMOOTHING if teacher in self._heard else 1.0
        self._heard.add(teacher)
        self._latency_s[teacher] += weight * (seconds - self._latency_s[teacher])

    def share(self, teacher: str) -> float:
        """The share of its steps at which the teacher is needed."""
        asked = max(self._asked[teacher], self._needed[teacher]) + _PRIOR
        return asked / (asked + self._spared[teacher])

    def step_s(self, teacher: str) -> float:
        """Seconds a step takes the teacher, those not needed among them."""
        return self._latency_s[teacher] * self.share(teacher)

    def work_s(self) -> float:
        """Seconds all that is left would take one after the other."""
        return sum(left * self.step_s(teacher) for teacher, left in self._left.items())

    def outlives(self, teacher: str, seconds: float) -> bool:
        """Whether a cache entry surely lives for so long."""
        return seconds * 2 <= self._lifetime_s[teacher]

    def sparse(self, leader: str, follower: str) -> bool:
        """Whether the follower's calls would lie further apart than its cache surely lives, if each went
        out as soon as the leader's answer is in."""
        return not self.outlives(follower, self._latency_s[leader] / self.share(follower))
