"""Reservations of one replay: they queue, and wait where something in flight may free what they need."""

import asyncio
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from teachers.ledger import Ledger
from teachers.ledger_entries import Bought, Denied, Intent, Reservation

T = TypeVar("T")
Grant = Reservation | Denied | Bought


class Purse:
    """The ledger as one replay uses it: off the event loop, on one thread of its own.

    Who is denied by the cap of run or day keeps its place in the line, so that dear calls are not
    starved by cheap ones and the teachers of a step keep pace.
    """

    def __init__(self, ledger: Ledger, stopped: Callable[[], bool]) -> None:
        """`stopped` says that nothing more is wanted; `wake` makes everyone ask it again."""
        self.ledger = ledger
        self.most_in_flight = 0
        self._stopped = stopped
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="ledger")
        self._line = asyncio.Lock()
        self._changed = asyncio.Condition()
        self._in_flight: Counter[str] = Counter()
        self._freed = 0
        self._dry: Denied | None = None

    async def book(self, call: Callable[..., T], *arguments: object) -> T:
        """Runs a call of the ledger on its thread."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, call, *arguments)

    async def take(self, intent: Intent) -> Grant:
        """Reserves. A denial by run or day stands when nothing of ours is in flight, one by the trace
        when nothing of the trace is."""
        while True:
            async with self._line:
                freed, grant = await self._take_in_line(intent)
            if not isinstance(grant, Denied) or grant.scope != "trace" or self._stopped():
                return grant
            if not await self._something_freed(freed, intent.trace_id):
                return grant

    async def _take_in_line(self, intent: Intent) -> tuple[int, Grant]:
        """The grant, and how much had been freed before it was asked for."""
        while True:
            freed = self._freed
            if self._dry is not None and intent.amount_nusd >= self._dry.wanted_nusd:
                return freed, self._dry
            grant = await self.book(self.ledger.reserve, intent)
            if isinstance(grant, Reservation):
                self._in_flight[intent.trace_id] += 1
                self.most_in_flight = max(self.most_in_flight, self._in_flight.total())
            if not isinstance(grant, Denied) or grant.scope == "trace" or self._stopped():
                return freed, grant
            if not await self._something_freed(freed, None):
                self._dry = None if self._stopped() else grant
                return freed, grant

    async def _something_freed(self, freed: int, trace_id: str | None) -> bool:
        """Waits; False where nothing in flight (of a trace, or at all) can free any more."""

        def idle() -> bool:
            return not (self._in_flight.total() if trace_id is None else self._in_flight[trace_id])

        async with self._changed:
            await self._changed.wait_for(lambda: self._freed != freed or idle() or self._stopped())
        return self._freed != freed and not self._stopped()

    async def settle(
        self,
        intent_trace: str,
        reservation: Reservation,
        cost_nusd: int | None,
        reply: str | None,
        outcome: str,
    ) -> bool:
        """Books a call; False where it cost more than was reserved."""
        try:
            return await self.book(self.ledger.settle, reservation, cost_nusd, reply, outcome)
        finally:
            await self._come_home(intent_trace)

    async def release(self, intent_trace: str, reservation: Reservation, outcome: str) -> None:
        """Gives back what cannot have been billed."""
        try:
            await self.book(self.ledger.release, reservation, outcome)
        finally:
            await self._come_home(intent_trace)

    async def _come_home(self, trace_id: str) -> None:
        self._in_flight[trace_id] -= 1
        if not self._in_flight[trace_id]:
            del self._in_flight[trace_id]
        self._freed += 1
        await self.wake()

    async def wake(self) -> None:
        """Lets everyone who waits look again."""
        async with self._changed:
            self._changed.notify_all()

    def close(self) -> None:
        """Ends the thread."""
        self._thread.shutdown(wait=True)
