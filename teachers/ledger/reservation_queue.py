"""Reservations of one replay: they stand in line, and wait where something in flight may free what they need.

Everything that comes up while a transaction runs goes into the next one, so that a call costs a share of
a commit. Nobody waits for a call that came home to be booked: it goes into no later transaction than the
reservation of whatever is asked because of it, and before that, so that no call goes out on an answer that
a crash could lose. The ledger works on a thread of its own; the line is kept on the event loop alone. What
another replay is asking at the moment is waited for until its answer is there, or nobody asks it any more.
"""

import asyncio
from collections import Counter, deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from typing import TypeVar

from tracemill.records.errors import LedgerError
from tracemill.teachers.ledger.claim_watch import Lookout, Wish
from tracemill.teachers.ledger.claims import Buyer
from tracemill.teachers.ledger.entries import BeingBought, Bought, Close, Denied, Grant, Intent, Reservation
from tracemill.teachers.ledger.ledger import Ledger

T = TypeVar("T")

LINGER_S = 0.004
"""How long a transaction waits for company."""

_ENOUGH = 32
"""Reservations that wait for no more company. A hundred at a time would cost a little less each, and go out
as one burst whose answers come home as one: the connections would be idle while it is booked."""


@dataclass(slots=True)
class _Home:
    close: Close
    trace_id: str


class Purse:
    """The ledger as one replay uses it.

    Who is denied by the cap of run or day keeps its place at the head of the line, so that dear calls are
    not starved by cheap ones and the teachers of a step keep pace. Who is denied by the cap of its trace
    steps aside until a call of that trace comes home.
    """

    def __init__(self, ledger: Ledger, hold_s: float = 900.0) -> None:
        """A call that another replay opened `hold_s` ago or earlier is waited for no longer."""
        self.ledger = ledger
        self._buyer = Buyer(hold_s)
        self.most_in_flight = 0
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="ledger")
        self._line: deque[Wish] = deque()
        self._aside: dict[str, list[Wish]] = {}
        self._elsewhere = Lookout(self._look)
        self._homes: list[_Home] = []
        self._in_flight: Counter[str] = Counter()
        self._out = 0
        self._head_denied: Denied | None = None
        self._dry: Denied | None = None
        self._fault: BaseException | None = None
        self._stopped = False
        self._busy = False
        self._lingering: asyncio.TimerHandle | None = None
        self._idle = asyncio.Event()
        self._idle.set()

    async def book(self, call: Callable[..., T], *arguments: object) -> T:
        """Runs a call of the ledger on its thread."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, call, *arguments)

    async def take(self, intent: Intent) -> Grant | None:
        """Reserves; None where everything stopped meanwhile. A denial by run or day stands when nothing
        of ours is in flight, one by the trace when nothing of the trace is. Raises LedgerError where
        anything before could not be booked. It waits while somebody else who lives asks the same."""
        if self._fault is not None:
            raise self._fault
        if self._stopped:
            return None
        if self._dry is not None and _wanted(intent) >= self._dry.wanted_nusd:
            return self._dry
        wish = Wish(intent, asyncio.get_running_loop().create_future())
        self._line.append(wish)
        self._soon()
        return await wish.granted

    def settle(
        self,
        trace_id: str,
        reservation: Reservation,
        cost_nusd: int | None,
        reply: str | None,
        outcome: str,
        stated_nusd: int = 0,
        bill_id: str = "",
    ) -> None:
        """A call came home and is booked with the next transaction."""
        close = Close(reservation, cost_nusd, reply, outcome, stated_nusd=stated_nusd, bill_id=bill_id)
        self._come_home(trace_id, close)

    def release(self, trace_id: str, reservation: Reservation, outcome: str) -> None:
        """The same for what cannot have been billed: it is given back."""
        self._come_home(trace_id, Close(reservation, 0, None, outcome, "released"))

    def _come_home(self, trace_id: str, close: Close) -> None:
        self._homes.append(_Home(close, trace_id))
        self._soon()

    async def booked(self) -> None:
        """Waits until everything that came home is booked. Raises LedgerError where it could not be."""
        while self._busy:
            await self._idle.wait()
        if self._fault is not None:
            raise self._fault

    def stop(self) -> None:
        """Nothing more is granted; who waits gets None."""
        self._stopped = True
        self._end_line()

    def close(self) -> None:
        """Leaves the ledger and ends the thread."""
        self._elsewhere.close()
        with suppress(LedgerError):  # its process will be gone soon enough
            self._thread.submit(self.ledger.leave, self._buyer).result()
        self._thread.shutdown(wait=True)

    def _look(self) -> None:
        """What others had reserved may be free by now too."""
        if self._elsewhere.waiting:
            self._head_denied = None
        self._soon()

    def _soon(self) -> None:
        """Has what waits decided: at once where it is enough for a transaction, else with what comes
        within `LINGER_S`; behind the one that is running."""
        loop = asyncio.get_running_loop()
        if not self._busy:
            self._busy = True
            self._idle.clear()
            self._linger(loop)
        elif self._lingering is not None and self._is_enough():
            self._lingering.cancel()
            self._start(loop)

    def _is_enough(self) -> bool:
        return self._head_denied is None and len(self._line) >= _ENOUGH

    def _linger(self, loop: asyncio.AbstractEventLoop) -> None:
        if self._is_enough():
            self._start(loop)
        else:
            self._lingering = loop.call_later(LINGER_S, self._start, loop)

    def _rest(self) -> None:
        self._busy = False
        self._idle.set()

    def _start(self, loop: asyncio.AbstractEventLoop) -> None:
        """Sends one batch to the thread, where there is anything that can be decided now."""
        self._lingering = None
        homes, self._homes = self._homes, []
        wishes = self._elsewhere.take()
        if self._head_denied is None or homes:
            wishes += [self._line.popleft() for _ in range(min(_ENOUGH, len(self._line)))]
        if not homes and not wishes and not self._elsewhere.due:
            self._rest()
            return
        closes, intents = [home.close for home in homes], [wish.intent for wish in wishes]
        running = loop.run_in_executor(self._thread, self.ledger.apply, closes, intents, self._buyer)
        self._elsewhere.began(loop)
        running.add_done_callback(lambda done: self._done(loop, homes, wishes, done))

    def _done(
        self,
        loop: asyncio.AbstractEventLoop,
        homes: list[_Home],
        wishes: list[Wish],
        done: "asyncio.Future[tuple[list[bool | LedgerError], list[Grant | BeingBought]]]",
    ) -> None:
        error = asyncio.CancelledError() if done.cancelled() else done.exception()
        if error is not None:
            self._fail(error, wishes)
        else:
            closed, grants = done.result()
            for home, kept in zip(homes, closed, strict=True):
                self._settled(home)
                if isinstance(kept, LedgerError):
                    self._fail(kept, [])
            self._granted(wishes, grants)
        self._elsewhere.ended(loop)
        if self._homes or self._elsewhere.due or (self._line and self._head_denied is None):
            self._linger(loop)
        else:
            self._rest()

    def _fail(self, error: BaseException, wishes: list[Wish]) -> None:
        """The book can no longer be trusted: nothing more is granted."""
        self._fault = self._fault or error
        for wish in [*wishes, *self._waiting()]:
            _refuse(wish, error)
        self._clear()

    def _waiting(self) -> list[Wish]:
        aside = (wish for some in self._aside.values() for wish in some)
        return [*self._line, *aside, *self._elsewhere.waiting]

    def _clear(self) -> None:
        self._line.clear()
        self._aside.clear()
        self._elsewhere.waiting.clear()

    def _settled(self, home: _Home) -> None:
        self._out -= 1
        self._in_flight[home.trace_id] -= 1
        if not self._in_flight[home.trace_id]:
            del self._in_flight[home.trace_id]
        self._head_denied = None
        self._line.extendleft(reversed(self._aside.pop(home.trace_id, [])))

    def _granted(self, wishes: list[Wish], grants: list[Grant | BeingBought]) -> None:
        """Hands out what was granted; puts back, in their order, those who must wait."""
        back: list[Wish] = []
        for wish, grant in zip(wishes, grants, strict=True):
            if isinstance(grant, Reservation):
                self._fly(wish, grant)
            elif isinstance(grant, Bought):
                _give(wish.granted, grant)
            elif self._fault is not None:
                _refuse(wish, self._fault)
            elif self._stopped:
                _give(wish.granted, None)
            elif isinstance(grant, BeingBought):
                self._elsewhere.waiting.append(wish)
            elif grant.scope != "trace":
                self._head_denied = self._head_denied or grant
                back.append(wish)
            elif self._in_flight[wish.intent.trace_id]:
                self._aside.setdefault(wish.intent.trace_id, []).append(wish)
            else:
                _give(wish.granted, grant)
        self._line.extendleft(reversed(back))
        self._run_dry()

    def _fly(self, wish: Wish, grant: Reservation) -> None:
        self._out += 1
        self._in_flight[wish.intent.trace_id] += 1
        self.most_in_flight = max(self.most_in_flight, self._out)
        if wish.granted.cancelled():
            self._homes.append(_Home(Close(grant, 0, None, "cancelled", "released"), wish.intent.trace_id))
        else:
            _give(wish.granted, grant)

    def _run_dry(self) -> None:
        """Where nothing in flight, here or elsewhere, can free any more, the denial at the head stands, with
        that of everyone who wants as much."""
        if self._head_denied is None or self._out or self._homes or self._elsewhere.waiting:
            return
        self._dry, self._head_denied = self._head_denied, None
        line, self._line = self._line, deque()
        for wish in line:
            if _wanted(wish.intent) >= self._dry.wanted_nusd:
                _give(wish.granted, self._dry)
            else:
                self._line.append(wish)

    def _end_line(self) -> None:
        for wish in self._waiting():
            _give(wish.granted, None)
        self._clear()


def _wanted(intent: Intent) -> int:
    """What a cap of run or day must cover."""
    return intent.amount_nusd + intent.leave_nusd


def _refuse(wish: Wish, error: BaseException) -> None:
    if not wish.granted.done():
        wish.granted.set_exception(error)


def _give(future: "asyncio.Future[T]", value: T) -> None:
    if not future.done():
        future.set_result(value)
