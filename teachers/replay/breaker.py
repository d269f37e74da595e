"""When a teacher is asked no more: the failures in a row of each teacher and of each server.

A server that died, a request that is refused every time: what failed so often without one answer in between
fails for the next question too. So it is tried alone, at longer and longer intervals, and then given up.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from tracemill.records.reply import FINAL_FAILURES, FailureKind
from tracemill.teachers.core.teacher_protocol import Asked

FAILURES = 5
"""Failures in a row after which attempts go out one at a time."""
TRIALS = 5
"""Such attempts that fail before nothing more goes out."""
_FIRST_WAIT = 3
"""How many times the first of them has doubled its wait: a server that restarts needs some seconds."""
_OF_THE_QUESTION = FINAL_FAILURES | {FailureKind.NOT_RECORDED}
"""Failures that say nothing of the next question."""


@dataclass(slots=True)
class _Fuse:
    """The failures in a row of one teacher or server, and what became of trying it alone.

    A row is of attempts that began after the last one that was answered had begun: an answer that took long
    says nothing of what was sent since.
    """

    failed_at: list[float] = field(default_factory=list[float])
    """When the failures of the row had begun."""
    answered_at: float = float("-inf")
    """When the last of those had begun that were answered."""
    trials: int = 0
    resume_at: float = 0.0
    trying: str = ""
    """The teacher whose attempt is out alone."""
    last: str = ""

    @property
    def open(self) -> bool:
        return len(self.failed_at) >= FAILURES

    @property
    def blown(self) -> bool:
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


class Attempt(NamedTuple):
    """An attempt that came home: when it began and ended, and whether it went out alone."""

    began: float
    ended: float
    alone: bool


class Breaker:
    """What keeps a run from asking what does not answer; it lasts as long as the run.

    `servers` names the server of each teacher; teachers of one server fail together. Times are those of the
    event loop, in seconds.
    """

    def __init__(self, servers: Mapping[str, str | None] | None = None) -> None:
        self._servers = dict(servers or {})
        self._fuses: dict[tuple[str, str], _Fuse] = {}

    def _of(self, teacher: str) -> list[_Fuse]:
        names = [("teacher", teacher)]
        if server := self._servers.setdefault(teacher, None):
            names.append(("server", server))
        return [self._fuses.setdefault(name, _Fuse()) for name in names]

    def why_out(self, teacher: str) -> str:
        """Return why nothing more is asked of a teacher, "" where it is."""
        for fuse, what in zip(self._of(teacher), ("it", "its server"), strict=False):
            if fuse.blown:
                return f"{what} failed {len(fuse.failed_at)} times in a row (the last {fuse.last})"
        return ""

    def out(self) -> dict[str, str]:
        """Return the teachers of whom nothing more is asked, and why."""
        return {name: why for name in sorted(self._servers) if (why := self.why_out(name))}

    def wait_s(self, teacher: str, now: float) -> float | None:
        """Return the seconds until an attempt may go out; None where another one has to come home first."""
        held = [fuse for fuse in self._of(teacher) if fuse.open]
        if any(fuse.trying for fuse in held):
            return None
        return max([0.0, *(fuse.resume_at - now for fuse in held)])

    def begin(self, teacher: str) -> bool:
        """Take note that an attempt goes out; return whether it is one that goes out alone."""
        fuses = self._of(teacher)
        for fuse in fuses:
            if fuse.open:
                fuse.trying = teacher
        return any(fuse.open for fuse in fuses)

    def end(self, teacher: str) -> None:
        """Take note that an attempt that went out alone came home, or was not made."""
        for fuse in self._of(teacher):
            if fuse.trying == teacher:
                fuse.trying = ""

    def hear(self, teacher: str, asked: Asked, attempt: Attempt, wait_s: Callable[[int], float]) -> None:
        """Take note of what came of an attempt. Where it failed, the next one waits for as long as `wait_s`
        says of the number of waits before it."""
        failure = asked.reply.failure
        for fuse in self._of(teacher):
            if failure is None or failure in _OF_THE_QUESTION:
                fuse.answered(attempt.began)
                continue
            fuse.failed(attempt.began, asked.why or f"answers with a fault ({failure})", attempt.alone)
            if fuse.open:
                fuse.resume_at = max(fuse.resume_at, attempt.ended + wait_s(fuse.trials + _FIRST_WAIT))


def list_outages(out: Mapping[str, str]) -> str:
    """Return in one line which teachers are asked no more and why, those of one reason together."""
    names: dict[str, list[str]] = {}
    for name, why in out.items():
        names.setdefault(why, []).append(name)
    return "; ".join(f"{', '.join(each)}: {why}" for why, each in names.items())
