"""Stop asking a teacher or a server that keeps failing: a circuit breaker.

After several failures in a row attempts go out one at a time, with growing waits, and then no more.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from tracemill.records.reply import FINAL_FAILURES, FailureKind
from tracemill.teachers.core.teacher_protocol import AttemptResult

FAILURES = 5
"""Failures in a row after which attempts go out one at a time."""
TRIALS = 5
"""Failed single attempts before nothing more goes out."""
_FIRST_DOUBLINGS = 3
"""Doublings of the wait before the first single attempt: a server that restarts needs some seconds."""
_QUESTION_FAILURES = FINAL_FAILURES | {FailureKind.NOT_RECORDED}
"""Failures that say nothing about the next question."""


@dataclass(slots=True)
class _Circuit:
    """The consecutive failures of one teacher or server, and its trial attempts.

    A failure counts if its attempt began after the last answered one began: a slow failure says nothing
    about later requests.
    """

    failed_at: list[float] = field(default_factory=list[float])
    """Start times of the failures in the row."""
    answered_at: float = float("-inf")
    """Start time of the last answered attempt."""
    trials: int = 0
    resume_at: float = 0.0
    trial_teacher: str = ""
    """The teacher whose single attempt is in flight."""
    last: str = ""

    @property
    def open(self) -> bool:
        return len(self.failed_at) >= FAILURES

    @property
    def given_up(self) -> bool:
        return self.trials >= TRIALS

    def answered(self, began: float) -> None:
        self.answered_at = max(self.answered_at, began)
        self.failed_at = [each for each in self.failed_at if each > self.answered_at]
        if not self.open:
            self.trials, self.resume_at = 0, 0.0

    def failed(self, began: float, why: str, alone: bool) -> None:
        if began > self.answered_at:
            self.trials += alone and self.open
            self.failed_at.append(began)
            self.last = why


class FinishedAttempt(NamedTuple):
    """A finished attempt: when it began and ended, and whether it went out alone."""

    began: float
    ended: float
    alone: bool


class CircuitBreaker:
    """A circuit breaker that stops calls to failing teachers and servers for the rest of a run.

    `servers` names the server of each teacher; teachers of one server fail together. Times are seconds of
    the event loop.
    """

    def __init__(self, servers: Mapping[str, str | None] | None = None) -> None:
        self._servers = dict(servers or {})
        self._circuits: dict[tuple[str, str], _Circuit] = {}

    def _of(self, teacher: str) -> list[_Circuit]:
        names = [("teacher", teacher)]
        if server := self._servers.setdefault(teacher, None):
            names.append(("server", server))
        return [self._circuits.setdefault(name, _Circuit()) for name in names]

    def outage_reason(self, teacher: str) -> str:
        """Return why a teacher is no longer asked, "" if it may be asked."""
        for circuit, what in zip(self._of(teacher), ("it", "its server"), strict=False):
            if circuit.given_up:
                return f"{what} failed {len(circuit.failed_at)} times in a row (the last {circuit.last})"
        return ""

    def outages(self) -> dict[str, str]:
        """Return the teachers that are no longer asked, each with the reason."""
        return {name: why for name in sorted(self._servers) if (why := self.outage_reason(name))}

    def wait_s(self, teacher: str, now: float) -> float | None:
        """Return the seconds until an attempt may start; None while a trial attempt is in flight."""
        held = [circuit for circuit in self._of(teacher) if circuit.open]
        if any(circuit.trial_teacher for circuit in held):
            return None
        return max([0.0, *(circuit.resume_at - now for circuit in held)])

    def begin_attempt(self, teacher: str) -> bool:
        """Record the start of an attempt, and return whether it is a trial without others."""
        circuits = self._of(teacher)
        for circuit in circuits:
            if circuit.open:
                circuit.trial_teacher = teacher
        return any(circuit.open for circuit in circuits)

    def end_trial(self, teacher: str) -> None:
        """Record that a single attempt ended, or was not made."""
        for circuit in self._of(teacher):
            if circuit.trial_teacher == teacher:
                circuit.trial_teacher = ""

    def record(
        self, teacher: str, asked: AttemptResult, attempt: FinishedAttempt, wait_s: Callable[[int], float]
    ) -> None:
        """Record the result of an attempt.

        After a failure the next attempt waits for `wait_s` of the number of waits before it.
        """
        failure = asked.reply.failure
        for circuit in self._of(teacher):
            if failure is None or failure in _QUESTION_FAILURES:
                circuit.answered(attempt.began)
                continue
            circuit.failed(attempt.began, asked.why or f"answers with a fault ({failure})", attempt.alone)
            if circuit.open:
                circuit.resume_at = max(
                    circuit.resume_at, attempt.ended + wait_s(circuit.trials + _FIRST_DOUBLINGS)
                )


def list_outages(out: Mapping[str, str]) -> str:
    """Return in one line the teachers that are no longer asked and why, grouped by reason."""
    names: dict[str, list[str]] = {}
    for name, why in out.items():
        names.setdefault(why, []).append(name)
    return "; ".join(f"{', '.join(each)}: {why}" for why, each in names.items())
