"""Who waits for what another replay is asking, and when it is looked for."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from tracemill.teachers.ledger.claims import BEAT_S
from tracemill.teachers.ledger.entries import Grant, Intent

LOOK_S = 0.2
"""How often a replay looks for what others are asking: a transaction that reads."""


@dataclass(slots=True)
class Wish:
    """An intent, and who waits for what becomes of it; None where everything stopped meanwhile."""

    intent: Intent
    granted: "asyncio.Future[Grant | None]"


class Lookout:
    """Those of one replay who wait for others. It calls `look` every `LOOK_S` while anybody does, and
    `BEAT_S` after the last transaction, which says that this replay is there."""

    def __init__(self, look: Callable[[], None]) -> None:
        self.waiting: list[Wish] = []
        self.due = False
        self._look = look
        self._looking: asyncio.TimerHandle | None = None
        self._beating: asyncio.TimerHandle | None = None

    def take(self) -> list[Wish]:
        """Those who wait, where it is time to look; they are waiting no longer."""
        if not self.due:
            return []
        taken, self.waiting = [wish for wish in self.waiting if not wish.granted.done()], []
        return taken

    def began(self, loop: asyncio.AbstractEventLoop) -> None:
        """A transaction begins: it looks, and it is a beat."""
        self.due = False
        if self._beating is not None:
            self._beating.cancel()
        self._beating = loop.call_later(BEAT_S, self._time_to_look)

    def ended(self, loop: asyncio.AbstractEventLoop) -> None:
        """A transaction ended, and told who must wait."""
        if self.waiting and self._looking is None:
            self._looking = loop.call_later(LOOK_S, self._time_to_look)

    def close(self) -> None:
        """Looks no more."""
        for timer in (self._looking, self._beating):
            if timer is not None:
                timer.cancel()

    def _time_to_look(self) -> None:
        if self._looking is not None:
            self._looking.cancel()
            self._looking = None
        self.due = True
        self._look()
