"""Schedule checks on requests that another replay is asking."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from tracemill.teachers.ledger.claims import BEAT_S
from tracemill.teachers.ledger.entries import Grant, PlannedCall

CHECK_INTERVAL_S = 0.2
"""Seconds between checks on what other replays are asking; each is a reading transaction."""


@dataclass(slots=True)
class PendingReservation:
    """An intent and the future of its grant, None if everything stopped first."""

    intent: PlannedCall
    granted: "asyncio.Future[Grant | None]"


class ClaimWatch:
    """The reservations of one replay that wait for other replays.

    It calls `check` every `CHECK_INTERVAL_S` while any is waiting, and `BEAT_S` after the last transaction,
    so that the next one renews the heartbeat.
    """

    def __init__(self, check: Callable[[], None]) -> None:
        self.waiting: list[PendingReservation] = []
        self.due = False
        self._check = check
        self._check_timer: asyncio.TimerHandle | None = None
        self._beat_timer: asyncio.TimerHandle | None = None

    def take_due(self) -> list[PendingReservation]:
        """Return the waiting reservations when a check is due, and remove them from the waiting list."""
        if not self.due:
            return []
        taken, self.waiting = [request for request in self.waiting if not request.granted.done()], []
        return taken

    def transaction_began(self, loop: asyncio.AbstractEventLoop) -> None:
        """Record that a transaction begins, which checks and renews the heartbeat."""
        self.due = False
        if self._beat_timer is not None:
            self._beat_timer.cancel()
        self._beat_timer = loop.call_later(BEAT_S, self._mark_due)

    def transaction_ended(self, loop: asyncio.AbstractEventLoop) -> None:
        """Schedule the next check where anything is still waiting."""
        if self.waiting and self._check_timer is None:
            self._check_timer = loop.call_later(CHECK_INTERVAL_S, self._mark_due)

    def close(self) -> None:
        """Cancel the timers."""
        for timer in (self._check_timer, self._beat_timer):
            if timer is not None:
                timer.cancel()

    def _mark_due(self) -> None:
        if self._check_timer is not None:
            self._check_timer.cancel()
            self._check_timer = None
        self.due = True
        self._check()
