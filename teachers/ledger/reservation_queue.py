"""Queue the budget reservations of one replay.

Everything that arrives while a transaction runs goes into the next one, so that a call costs a share of a
commit. A finished call is settled no later than the reservation of whatever is asked because of it, and
before that, so that no call goes out on an answer that a crash could lose. The ledger runs on a thread of its
own; the queue lives on the event loop. A request that another replay is asking waits until its answer is
there or nobody asks it any more.
"""

import asyncio
from collections import Counter, deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from typing import TypeVar

from tracemill.records.errors import LedgerError
from tracemill.teachers.ledger.claim_watch import ClaimWatch, PendingReservation
from tracemill.teachers.ledger.claims import ClaimHolder
from tracemill.teachers.ledger.entries import (
    CachedAnswer,
    DeniedReservation,
    Grant,
    InFlightElsewhere,
    PlannedCall,
    Reservation,
    Settlement,
)
from tracemill.teachers.ledger.ledger import Ledger

T = TypeVar("T")

LINGER_S = 0.004
"""Seconds that a transaction waits for more work."""

_ENOUGH = 32
"""Reservations in a full transaction, which waits no longer.
A hundred would cost a little less each, but go out and finish as one burst with idle connections between."""


@dataclass(slots=True)
class _FinishedCall:
    close: Settlement
    trace_id: str


class ReservationQueue:
    """A FIFO queue of budget reservations of one replay in the ledger.

    A request denied by the cap of run or day keeps its place at the head, so that cheap calls do not starve
    expensive ones. One denied by the cap of its trace waits beside the queue until a call of that trace
    finishes.
    """

    def __init__(self, ledger: Ledger, hold_s: float = 900.0) -> None:
        """Open the queue; calls that another replay opened more than `hold_s` ago are not waited for."""
        self.ledger = ledger
        self._buyer = ClaimHolder(hold_s)
        self.most_in_flight = 0
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="ledger")
        self._queue: deque[PendingReservation] = deque()
        self._blocked_by_trace: dict[str, list[PendingReservation]] = {}
        self._claims = ClaimWatch(self._recheck_claims)
        self._finished: list[_FinishedCall] = []
        self._in_flight: Counter[str] = Counter()
        self._outstanding = 0
        self._head_denied: DeniedReservation | None = None
        self._exhausted: DeniedReservation | None = None
        self._fault: BaseException | None = None
        self._stopped = False
        self._closed = False
        self._busy = False
        self._lingering: asyncio.TimerHandle | None = None
        self._idle = asyncio.Event()
        self._idle.set()

    async def run_in_thread(self, call: Callable[..., T], *arguments: object) -> T:
        """Run a call of the ledger on its thread."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, call, *arguments)

    async def reserve(self, intent: PlannedCall) -> Grant | None:
        """Reserve an intent's amount; return None if everything stopped first.

        A denial by run or day is final when this replay has no call in flight, one by the trace when it has
        none of that trace. It waits while another live replay asks the same request. Raises LedgerError if
        an earlier call could not be booked.
        """
        if self._fault is not None:
            raise self._fault
        if self._stopped:
            return None
        if self._exhausted is not None and _wanted(intent) >= self._exhausted.wanted_nanousd:
            return self._exhausted
        request = PendingReservation(intent, asyncio.get_running_loop().create_future())
        self._queue.append(request)
        self._schedule()
        return await request.granted

    def settle(
        self,
        trace_id: str,
        reservation: Reservation,
        cost_nanousd: int | None,
        reply: str | None,
        outcome: str,
        stated_nanousd: int = 0,
        bill_id: str = "",
    ) -> None:
        """Book a finished call with the next transaction."""
        close = Settlement(
            reservation, cost_nanousd, reply, outcome, stated_nanousd=stated_nanousd, bill_id=bill_id
        )
        self._add_finished(trace_id, close)

    def cancel(self, trace_id: str, reservation: Reservation, outcome: str) -> None:
        """Return the reservation of a call that cannot have been billed."""
        self._add_finished(trace_id, Settlement(reservation, 0, None, outcome, "released"))

    def _add_finished(self, trace_id: str, close: Settlement) -> None:
        self._finished.append(_FinishedCall(close, trace_id))
        self._schedule()

    async def flush(self) -> None:
        """Wait until every finished call is booked. Raises LedgerError if one could not be."""
        while self._busy:
            await self._idle.wait()
        if self._fault is not None:
            raise self._fault

    def stop(self) -> None:
        """Grant nothing more; waiting requests get None."""
        self._stopped = True
        self._end_queue()

    def close(self) -> None:
        """Leave the ledger and end the thread; no transaction begins any more."""
        self._closed = True
        self._claims.close()
        with suppress(LedgerError):  # others see that this process is gone
            self._thread.submit(self.ledger.leave, self._buyer).result()
        self._thread.shutdown(wait=True)

    def _recheck_claims(self) -> None:
        """Check again the requests that other replays had reserved: they may be free now."""
        if self._claims.waiting:
            self._head_denied = None
        self._schedule()

    def _schedule(self) -> None:
        """Start a transaction after the running one.

        It starts at once when there is enough for it, else within `LINGER_S`.
        """
        loop = asyncio.get_running_loop()
        if not self._busy:
            self._busy = True
            self._idle.clear()
            self._linger(loop)
        elif self._lingering is not None and self._is_enough():
            self._lingering.cancel()
            self._start(loop)

    def _is_enough(self) -> bool:
        return self._head_denied is None and len(self._queue) >= _ENOUGH

    def _linger(self, loop: asyncio.AbstractEventLoop) -> None:
        if self._is_enough():
            self._start(loop)
        else:
            self._lingering = loop.call_later(LINGER_S, self._start, loop)

    def _become_idle(self) -> None:
        self._busy = False
        self._idle.set()

    def _start(self, loop: asyncio.AbstractEventLoop) -> None:
        """Send one batch to the thread, if anything can be decided now."""
        self._lingering = None
        if self._closed:
            self._become_idle()
            return
        finished, self._finished = self._finished, []
        requests = self._claims.take_due()
        if self._head_denied is None or finished:
            requests += [self._queue.popleft() for _ in range(min(_ENOUGH, len(self._queue)))]
        if not finished and not requests and not self._claims.due:
            self._become_idle()
            return
        closes, intents = [call.close for call in finished], [request.intent for request in requests]
        running = loop.run_in_executor(self._thread, self.ledger.apply, closes, intents, self._buyer)
        self._claims.transaction_began(loop)
        running.add_done_callback(lambda done: self._on_done(loop, finished, requests, done))

    def _on_done(
        self,
        loop: asyncio.AbstractEventLoop,
        finished: list[_FinishedCall],
        requests: list[PendingReservation],
        done: "asyncio.Future[tuple[list[bool | LedgerError], list[Grant | InFlightElsewhere]]]",
    ) -> None:
        error = asyncio.CancelledError() if done.cancelled() else done.exception()
        if error is not None:
            self._fail(error, requests)
        else:
            closed, grants = done.result()
            for call, kept in zip(finished, closed, strict=True):
                self._release(call)
                if isinstance(kept, LedgerError):
                    self._fail(kept, [])
            self._apply_grants(requests, grants)
        self._claims.transaction_ended(loop)
        if self._finished or self._claims.due or (self._queue and self._head_denied is None):
            self._linger(loop)
        else:
            self._become_idle()

    def _fail(self, error: BaseException, requests: list[PendingReservation]) -> None:
        """Fail all waiting requests: the ledger can no longer be trusted."""
        self._fault = self._fault or error
        for request in [*requests, *self._waiting()]:
            _refuse(request, error)
        self._clear()

    def _waiting(self) -> list[PendingReservation]:
        blocked = (request for some in self._blocked_by_trace.values() for request in some)
        return [*self._queue, *blocked, *self._claims.waiting]

    def _clear(self) -> None:
        self._queue.clear()
        self._blocked_by_trace.clear()
        self._claims.waiting.clear()

    def _release(self, call: _FinishedCall) -> None:
        self._outstanding -= 1
        self._in_flight[call.trace_id] -= 1
        if not self._in_flight[call.trace_id]:
            del self._in_flight[call.trace_id]
        self._head_denied = None
        self._queue.extendleft(reversed(self._blocked_by_trace.pop(call.trace_id, [])))

    def _apply_grants(
        self, requests: list[PendingReservation], grants: list[Grant | InFlightElsewhere]
    ) -> None:
        """Resolve the granted requests; put the others back in order."""
        back: list[PendingReservation] = []
        for request, grant in zip(requests, grants, strict=True):
            if isinstance(grant, Reservation):
                self._grant_one(request, grant)
            elif isinstance(grant, CachedAnswer):
                _give(request.granted, grant)
            elif self._fault is not None:
                _refuse(request, self._fault)
            elif self._stopped:
                _give(request.granted, None)
            elif isinstance(grant, InFlightElsewhere):
                self._claims.waiting.append(request)
            elif grant.scope != "trace":
                self._head_denied = self._head_denied or grant
                back.append(request)
            elif self._in_flight[request.intent.trace_id]:
                self._blocked_by_trace.setdefault(request.intent.trace_id, []).append(request)
            else:
                _give(request.granted, grant)
        self._queue.extendleft(reversed(back))
        self._deny_at_cap()

    def _grant_one(self, request: PendingReservation, grant: Reservation) -> None:
        self._outstanding += 1
        self._in_flight[request.intent.trace_id] += 1
        self.most_in_flight = max(self.most_in_flight, self._outstanding)
        if request.granted.cancelled():
            self._finished.append(
                _FinishedCall(Settlement(grant, 0, None, "cancelled", "released"), request.intent.trace_id)
            )
        else:
            _give(request.granted, grant)

    def _deny_at_cap(self) -> None:
        """Make the denial at the head final if no call in flight can free budget.

        It then holds for every request of at least this amount.
        """
        if self._head_denied is None or self._outstanding or self._finished or self._claims.waiting:
            return
        self._exhausted, self._head_denied = self._head_denied, None
        queue, self._queue = self._queue, deque()
        for request in queue:
            if _wanted(request.intent) >= self._exhausted.wanted_nanousd:
                _give(request.granted, self._exhausted)
            else:
                self._queue.append(request)

    def _end_queue(self) -> None:
        for request in self._waiting():
            _give(request.granted, None)
        self._clear()


def _wanted(intent: PlannedCall) -> int:
    """Return the amount that a cap of run or day must cover, in nano-USD."""
    return intent.amount_nanousd + intent.leave_nanousd


def _refuse(request: PendingReservation, error: BaseException) -> None:
    if not request.granted.done():
        request.granted.set_exception(error)


def _give(future: "asyncio.Future[T]", value: T) -> None:
    if not future.done():
        future.set_result(value)
