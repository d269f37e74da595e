"""The queue of reservations: who waits in what order, what frees a place, and when a denial stands."""

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator, Sequence

import pytest

from tracemill.records.errors import LedgerError
from tracemill.teachers.ledger import claim_watch
from tracemill.teachers.ledger import reservation_queue as queues
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
from tracemill.teachers.ledger.reservation_queue import ReservationQueue

pytestmark = pytest.mark.anyio
CAP = 100
NOON = 1_800_000_000.0
PATIENCE_S = 10
WAITS = "waits"
Asked = asyncio.Task[Grant | None]


class Watched(Ledger):
    """A ledger that keeps what each transaction was given: outcomes of its closes, keys of its intents.

    A transaction waits until `may_run` is set, and raises `failure` where there is one.
    """

    def __init__(self, url: str) -> None:
        super().__init__(url, lambda: self.now)
        self.now = NOON
        self.batches: list[tuple[list[str], list[str]]] = []
        self.may_run = threading.Event()
        self.may_run.set()
        self.failure: LedgerError | None = None
        self._begun = threading.Condition()

    def apply(
        self,
        closes: Sequence[Settlement] = (),
        intents: Sequence[PlannedCall] = (),
        buyer: ClaimHolder | None = None,
    ) -> tuple[list[bool | LedgerError], list[Grant | InFlightElsewhere]]:
        with self._begun:
            self.batches.append(([close.outcome for close in closes], [i.request_key for i in intents]))
            self._begun.notify_all()
        assert self.may_run.wait(PATIENCE_S)
        if self.failure is not None:
            raise self.failure
        return super().apply(closes, intents, buyer)

    def wait_for(self, batches: int) -> None:
        """Waits until so many transactions have begun."""
        with self._begun:
            assert self._begun.wait_for(lambda: len(self.batches) >= batches, PATIENCE_S)

    @property
    def money(self) -> tuple[int, int]:
        """What the run settled, and what it holds reserved."""
        spent = self.spent("run")
        return spent.settled_nanousd, spent.reserved_nanousd

    @property
    def states(self) -> list[str]:
        """What became of every call, in their order."""
        with self._engine.connect() as connection:
            return list(connection.exec_driver_sql("SELECT state FROM calls ORDER BY id").scalars())


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def ledger(ledger_url: str) -> Iterator[Watched]:
    with Watched(ledger_url) as opened:
        opened.open_run("run", CAP)
        yield opened


@pytest.fixture
async def queue(ledger: Watched) -> AsyncIterator[ReservationQueue]:
    made = ReservationQueue(ledger)
    yield made
    ledger.may_run.set()
    made.close()


@pytest.fixture
async def other(ledger: Watched) -> AsyncIterator[ReservationQueue]:
    """The queue of another replay on the same ledger."""
    made = ReservationQueue(ledger)
    yield made
    made.close()


def intent(key: str, amount: int, trace: str = "", leave: int = 0) -> PlannedCall:
    """An intent of a trace of its own where none is named."""
    return PlannedCall("run", trace or key, "step", "teacher", key, amount, leave)


def start(queue: ReservationQueue, *intents: PlannedCall) -> list[Asked]:
    return [asyncio.create_task(queue.reserve(each)) for each in intents]


async def still(queue: ReservationQueue) -> None:
    """Comes back when nothing moves any more."""
    await asyncio.sleep(0)
    async with asyncio.timeout(PATIENCE_S):
        await queue.flush()


async def ask(queue: ReservationQueue, *intents: PlannedCall) -> list[Asked]:
    """Asks in this order, and comes back when nothing moves any more."""
    asked = start(queue, *intents)
    await still(queue)
    return asked


async def turn(times: int = 5) -> None:
    """Lets everything run that waits for no clock."""
    for _ in range(times):
        await asyncio.sleep(0)


async def of(asked: Asked) -> Grant | None:
    async with asyncio.timeout(PATIENCE_S):
        return await asked


def said(asked: Asked) -> object:
    """What became of an intent, without the number of its call."""
    if not asked.done():
        return WAITS
    grant = asked.result()
    return grant.amount_nanousd if isinstance(grant, Reservation) else grant


def held(asked: Asked) -> Reservation:
    grant = asked.result()
    assert isinstance(grant, Reservation)
    return grant


@pytest.mark.parametrize(
    ("amount", "leave", "told"),
    [
        (99, 0, 99),
        (100, 0, 100),
        (101, 0, DeniedReservation("run", CAP, 0, 0, 101, 0)),
        (60, 39, 60),
        (60, 40, 60),
        (60, 41, DeniedReservation("run", CAP, 0, 0, 101, 41)),
    ],
)
async def test_the_cap_itself_is_granted_and_one_above_it_is_not(
    queue: ReservationQueue, ledger: Watched, amount: int, leave: int, told: object
) -> None:
    (asked,) = await ask(queue, intent("a", amount, leave=leave))
    assert said(asked) == told
    assert ledger.money == (0, amount if told == amount else 0)


async def test_of_two_calls_at_once_the_second_takes_what_the_first_left(
    queue: ReservationQueue, ledger: Watched
) -> None:
    first, second, third = await ask(queue, intent("a", 60), intent("b", 40), intent("c", 1))
    assert [said(first), said(second), said(third)] == [60, 40, WAITS]
    assert ledger.money == (0, CAP)
    queue.cancel("b", held(second), "not_billed")
    await still(queue)
    assert said(third) == 1
    assert ledger.money == (0, 61)


@pytest.mark.parametrize(
    ("cost", "room"),
    [(20, 80), (60, 40), (75, 25), (None, 40), ("released", 100)],
    ids=["below", "the same", "above", "worst case", "released"],
)
async def test_what_came_home_leaves_the_cap_without_its_cost(
    queue: ReservationQueue, ledger: Watched, cost: int | str | None, room: int
) -> None:
    (first,) = await ask(queue, intent("a", 60))
    if isinstance(cost, str):
        queue.cancel("a", held(first), "not_billed")
    else:
        queue.settle("a", held(first), cost, None, "answer")
    above, within = await ask(queue, intent("above", room + 1), intent("within", room))
    assert said(above) == DeniedReservation("run", CAP, CAP - room, 0, room + 1, 0)
    assert said(within) == room
    assert ledger.money == (CAP - room, room)


async def test_the_answer_of_a_settled_call_is_kept_and_given_to_who_asks_again(
    queue: ReservationQueue, ledger: Watched
) -> None:
    (first,) = await ask(queue, intent("a", 60))
    queue.settle("a", held(first), 7, '{"said":1}', "answer")
    again, other = await ask(queue, intent("a", 60), intent("b", 93))
    assert said(again) == CachedAnswer('{"said":1}')
    assert said(other) == 93
    assert ledger.outcomes(["run"]) == {"teacher": {"answer": 1}}


async def test_who_came_first_is_served_first_and_nobody_overtakes(
    queue: ReservationQueue, ledger: Watched
) -> None:
    first, dear, cheap = await ask(queue, intent("a", 60), intent("dear", 70), intent("cheap", 10))
    (late,) = await ask(queue, intent("late", 1))
    assert [said(each) for each in (first, dear, cheap, late)] == [60, WAITS, WAITS, WAITS]
    assert ledger.batches == [([], ["a", "dear", "cheap"])]  # the last is not even asked for
    queue.settle("a", held(first), 30, None, "answer")
    await still(queue)
    assert [said(each) for each in (dear, cheap, late)] == [70, WAITS, WAITS]
    queue.settle("dear", held(dear), 60, None, "answer")
    await still(queue)
    assert [said(each) for each in (cheap, late)] == [10, WAITS]
    queue.settle("cheap", held(cheap), 10, None, "answer")
    await still(queue)
    assert said(late) == DeniedReservation("run", CAP, CAP, 0, 1, 0)
    assert ledger.batches[1:] == [
        (["answer"], ["dear", "cheap", "late"]),
        (["answer"], ["cheap", "late"]),
        (["answer"], ["late"]),
    ]
    assert queue.most_in_flight == 1


async def test_a_denial_stands_once_nothing_in_flight_can_free_any_more(
    queue: ReservationQueue, ledger: Watched
) -> None:
    """It holds for whoever wants as much as the head of the line; who wants less is asked for again."""
    one, two = await ask(queue, intent("one", 50), intent("two", 50))
    amounts = {"head": 40, "same": 40, "less": 39, "more": 41, "fits": 35}
    waiting = await ask(queue, *(intent(key, amount) for key, amount in amounts.items()))
    assert [said(each) for each in waiting] == [WAITS] * 5
    queue.settle("one", held(one), 50, None, "answer")
    await still(queue)
    assert [said(each) for each in waiting] == [WAITS] * 5
    queue.settle("two", held(two), 15, None, "answer")
    await still(queue)
    stands, next_stands = (
        DeniedReservation("run", CAP, 65, 0, 40, 0),
        DeniedReservation("run", CAP, 65, 0, 39, 0),
    )
    assert [said(each) for each in waiting] == [stands, stands, next_stands, stands, 35]
    assert ledger.batches[-3:] == [
        (["answer"], list(amounts)),
        ([], ["less", "fits"]),
        ([], ["fits"]),
    ]


async def test_after_a_denial_that_stands_nobody_who_wants_as_much_is_asked_for(
    queue: ReservationQueue, ledger: Watched
) -> None:
    (denied,) = await ask(queue, intent("denied", 99, leave=2))
    stands = DeniedReservation("run", CAP, 0, 0, 101, 2)
    assert said(denied) == stands
    later = [intent("same", 101), intent("kept", 1, leave=100), intent("more", 102)]
    assert [said(each) for each in await ask(queue, *later)] == [stands] * 3
    assert ledger.batches == [([], ["denied"])]
    (less,) = await ask(queue, intent("less", 90, leave=10))
    assert said(less) == 90
    assert ledger.batches[1:] == [([], ["less"])]


async def test_the_denial_of_who_stands_at_the_head_is_the_one_that_stands(queue: ReservationQueue) -> None:
    """Not that of who came behind it and was denied in the same transaction."""
    (first,) = await ask(queue, intent("first", 50))
    head, behind = await ask(queue, intent("head", 60), intent("behind", 55))
    queue.settle("first", held(first), 50, None, "answer")
    await still(queue)
    assert said(head) == DeniedReservation("run", CAP, 50, 0, 60, 0)
    assert said(behind) == DeniedReservation("run", CAP, 50, 0, 55, 0)
    (between,) = await ask(queue, intent("between", 54))
    assert said(between) == DeniedReservation("run", CAP, 50, 0, 54, 0)


async def test_who_is_denied_by_the_cap_of_the_day_waits_in_the_line_too(
    queue: ReservationQueue, ledger: Watched
) -> None:
    ledger.open_run("run", 1000, max_day_nanousd=CAP)
    first, second, third = await ask(queue, intent("a", 60), intent("b", 41), intent("c", 40))
    assert [said(each) for each in (first, second, third)] == [60, WAITS, WAITS]
    queue.settle("a", held(first), 60, None, "answer")
    await still(queue)
    assert said(second) == DeniedReservation("day", CAP, 60, 0, 41, 0)
    assert said(third) == 40


async def test_who_is_denied_by_its_trace_steps_aside_until_a_call_of_the_trace_comes_home(
    queue: ReservationQueue, ledger: Watched
) -> None:
    ledger.open_run("run", 1000, max_trace_nanousd=50)
    wishes = [intent("a", 50, "t"), intent("b", 10, "t"), intent("c", 10, "u"), intent("d", 20, "t")]
    a, b, c, d = await ask(queue, *wishes)
    assert [said(each) for each in (a, b, c, d)] == [50, WAITS, 10, WAITS]
    queue.settle("u", held(c), 10, None, "answer")
    await still(queue)
    assert [said(b), said(d)] == [WAITS, WAITS]
    queue.settle("t", held(a), 25, None, "answer")
    await still(queue)
    assert [said(b), said(d)] == [10, WAITS]
    queue.settle("t", held(b), 10, None, "answer")
    await still(queue)
    assert said(d) == DeniedReservation("trace", 50, 35, 0, 20, 0)
    exact, above = await ask(queue, intent("e", 15, "t"), intent("f", 50, "v"))
    assert [said(exact), said(above)] == [15, 50]
    assert ledger.batches == [
        ([], ["a", "b", "c", "d"]),
        (["answer"], []),
        (["answer"], []),
        ([], ["b", "d"]),
        (["answer"], []),
        ([], ["d"]),
        ([], ["e", "f"]),
    ]


async def test_a_denial_by_the_trace_stands_at_once_where_nothing_of_the_trace_is_in_flight(
    queue: ReservationQueue, ledger: Watched
) -> None:
    ledger.open_run("run", 1000, max_trace_nanousd=50)
    elsewhere, above, later = await ask(
        queue, intent("a", 10, "u"), intent("b", 51, "t"), intent("c", 50, "t")
    )
    assert said(elsewhere) == 10
    assert said(above) == DeniedReservation("trace", 50, 0, 0, 51, 0)
    assert said(later) == 50


async def test_two_calls_of_a_trace_are_in_flight_until_both_are_home(
    queue: ReservationQueue, ledger: Watched
) -> None:
    ledger.open_run("run", 1000, max_trace_nanousd=50)
    a, b, c = await ask(queue, *(intent(key, 25, "t") for key in "abc"))
    queue.settle("t", held(a), 25, None, "answer")
    await still(queue)
    assert said(c) == WAITS
    queue.settle("t", held(b), 24, None, "answer")
    await still(queue)
    assert said(c) == DeniedReservation("trace", 50, 49, 0, 25, 0)


async def test_who_stepped_aside_comes_back_behind_who_was_asked_for_and_before_the_rest(
    queue: ReservationQueue, ledger: Watched
) -> None:
    ledger.open_run("run", CAP, max_trace_nanousd=50)
    first, other, aside, second_aside = await ask(
        queue,
        intent("a", 50, "t"),
        intent("x", 40, "u"),
        intent("b1", 1, "t"),
        intent("b2", 1, "t"),
    )
    line = [f"p{n:02}" for n in range(32)]
    waiting = await ask(queue, *(intent(key, 20) for key in line), intent("rest", 1))
    queue.settle("t", held(first), 45, None, "answer")
    await still(queue)
    assert {said(each) for each in (aside, second_aside, *waiting)} == {WAITS}
    queue.settle("u", held(other), 40, None, "answer")
    await still(queue)
    assert ledger.batches == [
        ([], ["a", "x", "b1", "b2"]),
        ([], line),
        (["answer"], line),
        (["answer"], line),
        ([], ["b1", "b2", "rest"]),
    ]
    denied = DeniedReservation("run", CAP, 85, 0, 20, 0)
    assert [said(each) for each in (aside, second_aside)] == [1, 1]
    assert [said(each) for each in waiting] == [*[denied] * 32, 1]


async def test_a_waiter_that_is_cancelled_gives_back_what_it_was_granted(
    queue: ReservationQueue, ledger: Watched
) -> None:
    first, gone, next_one = await ask(queue, intent("a", 100), intent("gone", 50), intent("next", 60))
    gone.cancel()
    queue.cancel("a", held(first), "not_billed")
    await still(queue)
    assert gone.cancelled()
    assert said(next_one) == 60
    assert ledger.money == (0, 60)
    assert ledger.outcomes(["run"]) == {"teacher": {"not_billed": 1, "cancelled": 1}}
    assert ledger.batches[1:] == [(["not_billed"], ["gone", "next"]), (["cancelled"], ["next"])]
    assert ledger.states == ["released", "released", "open"]


async def test_a_waiter_that_is_cancelled_while_its_transaction_runs_gives_back_too(
    queue: ReservationQueue, ledger: Watched
) -> None:
    ledger.may_run.clear()
    (gone,) = start(queue, intent("gone", CAP))
    await asyncio.to_thread(ledger.wait_for, 1)
    gone.cancel()
    await asyncio.sleep(0)
    ledger.may_run.set()
    (next_one,) = await ask(queue, intent("next", CAP))
    assert said(next_one) == CAP
    assert ledger.money == (0, CAP)


async def test_a_cancelled_waiter_of_a_trace_leaves_nothing_of_it_in_flight(
    queue: ReservationQueue, ledger: Watched
) -> None:
    ledger.open_run("run", 1000, max_trace_nanousd=50)
    first, gone = await ask(queue, intent("a", 50, "t"), intent("gone", 30, "t"))
    gone.cancel()
    queue.settle("t", held(first), 20, None, "answer")
    await still(queue)
    (above,) = await ask(queue, intent("b", 31, "t"))
    assert said(above) == DeniedReservation("trace", 50, 20, 0, 31, 0)
    assert ledger.money == (20, 0)


async def test_a_cancelled_head_lets_the_denial_stand_for_those_behind_it(queue: ReservationQueue) -> None:
    first, gone, behind, fits = await ask(
        queue, intent("a", CAP), intent("gone", 80), intent("behind", 90), intent("fits", 70)
    )
    gone.cancel()
    queue.settle("a", held(first), 30, None, "answer")
    await still(queue)
    assert gone.cancelled()
    assert said(behind) == DeniedReservation("run", CAP, 30, 0, 80, 0)
    assert said(fits) == 70


async def test_most_in_flight_is_the_peak_and_falls_no_more(queue: ReservationQueue) -> None:
    assert queue.most_in_flight == 0
    calls = await ask(queue, *(intent(key, 10) for key in "abc"))
    assert queue.most_in_flight == 3
    for key, call in zip("abc", calls, strict=True):
        queue.settle(key, held(call), 10, None, "answer")
    await ask(queue, intent("d", 10), intent("e", 10))
    assert queue.most_in_flight == 3
    await ask(queue, intent("f", 10), intent("g", 10))
    assert queue.most_in_flight == 4


async def test_a_stop_gives_nothing_to_who_waits_in_the_line_aside_or_for_others(
    queue: ReservationQueue, other: ReservationQueue, ledger: Watched
) -> None:
    ledger.open_run("run", CAP, max_trace_nanousd=50)
    await ask(other, intent("asked elsewhere", 10))
    calls = await ask(queue, intent("a", 50, "t"), intent("aside", 1, "t"), intent("asked elsewhere", 10))
    waiting = [*calls[1:], *await ask(queue, intent("line", 41), intent("last", 41))]
    assert [said(each) for each in waiting] == [WAITS] * 4
    begun = len(ledger.batches)
    queue.stop()
    assert [await of(each) for each in waiting] == [None] * 4
    (late,) = await ask(queue, intent("late", 1))
    assert said(late) is None
    assert late.done()
    assert len(ledger.batches) == begun
    queue.settle("t", held(calls[0]), 30, None, "answer")
    await still(queue)
    assert ledger.batches[begun:] == [(["answer"], [])]
    assert ledger.money == (30, 10)


async def test_a_stop_during_a_transaction_leaves_what_it_grants_and_makes_nobody_wait(
    queue: ReservationQueue, other: ReservationQueue, ledger: Watched
) -> None:
    ledger.open_run("run", CAP, max_trace_nanousd=50)
    (first,) = await ask(queue, intent("bought", 20, "t"))
    queue.settle("t", held(first), 20, "{}", "answer")
    await queue.flush()
    await ask(other, intent("asked elsewhere", 10))
    ledger.may_run.clear()
    begun = len(ledger.batches)
    wishes = [
        intent("granted", 30, "t"),
        intent("bought", 20, "t"),
        intent("denied by its trace", 1, "t"),
        intent("asked elsewhere", 10),
        intent("denied", 41),
    ]
    asked = start(queue, *wishes)
    await asyncio.to_thread(ledger.wait_for, begun + 1)
    queue.stop()
    ledger.may_run.set()
    await still(queue)
    assert [said(each) for each in asked] == [30, CachedAnswer("{}"), None, None, None]
    assert len(ledger.batches) == begun + 1


async def test_a_transaction_that_fails_is_raised_to_everyone_who_waits_and_who_comes_later(
    queue: ReservationQueue, other: ReservationQueue, ledger: Watched
) -> None:
    ledger.open_run("run", CAP, max_trace_nanousd=50)
    await ask(other, intent("asked elsewhere", 10))
    calls = await ask(queue, intent("a", 50, "t"), intent("aside", 1, "t"), intent("asked elsewhere", 10))
    waiting = [*calls[1:], *await ask(queue, intent("line", 41), intent("last", 41))]
    ledger.failure = LedgerError("the disk is full")
    queue.settle("t", held(calls[0]), 30, None, "answer")
    with pytest.raises(LedgerError, match="the disk is full"):
        await still(queue)
    ledger.failure, begun = None, len(ledger.batches)
    for each in (*waiting, *start(queue, intent("late", 1))):
        with pytest.raises(LedgerError, match="the disk is full"):
            await of(each)
    with pytest.raises(LedgerError, match="the disk is full"):
        await queue.flush()
    assert len(ledger.batches) == begun


async def test_a_close_that_cannot_be_booked_ends_the_line_and_spoils_no_grant(
    queue: ReservationQueue, ledger: Watched
) -> None:
    """What was granted or bought in the same transaction is there; the first fault is the one raised."""
    ledger.open_run("run", CAP, max_trace_nanousd=50)
    first, flying, aside = await ask(
        queue, intent("bought", 20, "t"), intent("flying", 50, "u"), intent("aside", 1, "u")
    )
    queue.settle("t", held(first), 20, "{}", "answer")
    await still(queue)
    ledger.may_run.clear()
    begun = len(ledger.batches)
    queue.cancel("t", Reservation(97, 1), "unknown")
    queue.cancel("t", Reservation(98, 1), "unknown")
    fits, again, denied = start(
        queue, intent("fits", 30, "t"), intent("bought", 20, "t"), intent("denied", 1)
    )
    await asyncio.to_thread(ledger.wait_for, begun + 1)
    ledger.may_run.set()
    assert isinstance(await of(fits), Reservation)
    assert await of(again) == CachedAnswer("{}")
    for each in (aside, denied):
        with pytest.raises(LedgerError, match="call 97 is not in the ledger"):
            await of(each)
    with pytest.raises(LedgerError, match="call 97 is not in the ledger"):
        await still(queue)
    assert ledger.money == (20, 80)
    assert held(flying).amount_nanousd == 50


async def test_a_transaction_that_never_began_is_a_fault_too(
    ledger: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue, gate = ReservationQueue(ledger), threading.Event()
    monkeypatch.setattr(queues, "LINGER_S", 0.0)
    busy = asyncio.create_task(queue.run_in_thread(gate.wait, PATIENCE_S))
    (waiting,) = start(queue, intent("a", 1))
    await turn()
    queue._thread.shutdown(wait=False, cancel_futures=True)
    gate.set()
    with pytest.raises(asyncio.CancelledError):
        await of(waiting)
    with pytest.raises(asyncio.CancelledError):
        await queue.reserve(intent("b", 1))
    assert await busy is True
    assert ledger.batches == []


async def test_what_comes_home_during_a_transaction_is_booked_with_the_next(
    queue: ReservationQueue, ledger: Watched
) -> None:
    (first,) = await ask(queue, intent("a", 60))
    ledger.may_run.clear()
    (second,) = start(queue, intent("b", 40))
    await asyncio.to_thread(ledger.wait_for, 2)
    queue.settle("a", held(first), 60, None, "answer")
    ledger.may_run.set()
    await still(queue)
    assert said(second) == 40
    assert ledger.batches == [([], ["a"]), ([], ["b"]), (["answer"], [])]
    assert ledger.money == (60, 40)


async def test_a_transaction_waits_for_company_until_there_are_32(
    queue: ReservationQueue, ledger: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queues, "LINGER_S", 3600.0)
    keys = [f"k{n:02}" for n in range(64)]
    few = start(queue, *(intent(key, 1) for key in keys[:31]))
    await turn()
    await queue.run_in_thread(int)
    assert ledger.batches == []
    more = start(queue, *(intent(key, 1) for key in keys[31:]))
    async with asyncio.timeout(PATIENCE_S):
        await asyncio.gather(*few, *more)
    (last,) = start(queue, intent("last", 1))
    await turn()
    await queue.run_in_thread(int)
    assert ledger.batches == [([], keys[:32]), ([], keys[32:])]
    assert said(last) == WAITS


async def test_behind_a_head_that_was_denied_even_32_wait_for_what_comes_home(
    queue: ReservationQueue, ledger: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    (first,) = await ask(queue, intent("a", CAP))
    await ask(queue, intent("head", 1))
    begun = len(ledger.batches)
    monkeypatch.setattr(queues, "LINGER_S", 3600.0)
    waiting = start(queue, *(intent(f"k{n}", 1) for n in range(40)))
    await turn()
    queue.settle("a", held(first), 0, None, "answer")
    await turn()
    await queue.run_in_thread(int)
    assert len(ledger.batches) == begun
    assert {said(each) for each in waiting} == {WAITS}


async def test_who_waits_for_another_replay_is_given_its_answer(
    queue: ReservationQueue, other: ReservationQueue, ledger: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who is denied meanwhile waits as well: what the other holds may come free."""
    monkeypatch.setattr(claim_watch, "CHECK_INTERVAL_S", 0.01)
    (theirs,) = await ask(other, intent("same", 60))
    same, head = await ask(queue, intent("same", 60), intent("head", 50))
    assert [said(same), said(head)] == [WAITS, WAITS]
    other.settle("same", held(theirs), 50, "{}", "answer")
    assert await of(same) == CachedAnswer("{}")
    await of(head)
    assert said(head) == 50
    assert ledger.money == (50, 50)


async def test_a_denial_stands_once_nobody_elsewhere_is_waited_for_any_more(
    queue: ReservationQueue, other: ReservationQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(claim_watch, "CHECK_INTERVAL_S", 0.01)
    (theirs,) = await ask(other, intent("same", 60))
    same, head = await ask(queue, intent("same", 60), intent("head", 50))
    assert [said(same), said(head)] == [WAITS, WAITS]
    other.settle("same", held(theirs), 51, "{}", "answer")
    assert await of(same) == CachedAnswer("{}")
    assert await of(head) == DeniedReservation("run", CAP, 51, 0, 50, 0)


async def test_who_waits_for_others_goes_before_the_line(
    queue: ReservationQueue, other: ReservationQueue, ledger: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(claim_watch, "CHECK_INTERVAL_S", 0.01)
    (theirs,) = await ask(other, intent("same", 60))
    same, head = await ask(queue, intent("same", 60), intent("head", 50))
    other.cancel("same", held(theirs), "not_billed")
    assert isinstance(await of(same), Reservation)
    assert said(head) == WAITS
    queue.cancel("same", held(same), "not_billed")
    assert isinstance(await of(head), Reservation)
    assert ledger.money == (0, 50)


@pytest.mark.parametrize(("age_s", "told"), [(899.0, WAITS), (900.0, 60)])
async def test_a_call_that_another_opened_long_ago_is_waited_for_no_longer(
    queue: ReservationQueue, other: ReservationQueue, ledger: Watched, age_s: float, told: object
) -> None:
    ledger.open_run("run", 1000)
    await ask(other, intent("same", 60))
    ledger.now += age_s
    (same,) = await ask(queue, intent("same", 60))
    assert said(same) == told


async def test_a_beat_says_that_the_queue_is_there_and_asks_for_nobody_again(
    queue: ReservationQueue, ledger: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(claim_watch, "BEAT_S", 0.01)
    _, waiting = await ask(queue, intent("a", 60), intent("b", 41))
    await asyncio.to_thread(ledger.wait_for, 4)
    assert ledger.batches[:4] == [([], ["a", "b"]), ([], []), ([], []), ([], [])]
    assert said(waiting) == WAITS


async def test_a_beat_that_falls_into_a_transaction_comes_behind_it(
    queue: ReservationQueue, ledger: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(claim_watch, "BEAT_S", 0.01)
    ledger.may_run.clear()
    (asked,) = start(queue, intent("a", 60))
    await asyncio.to_thread(ledger.wait_for, 1)
    await asyncio.sleep(0.05)
    monkeypatch.setattr(claim_watch, "BEAT_S", 3600.0)
    ledger.may_run.set()
    await still(queue)
    assert said(asked) == 60
    assert ledger.batches == [([], ["a"]), ([], [])]


async def test_a_queue_that_is_closed_between_two_transactions_begins_no_other(ledger: Watched) -> None:
    """What a closed queue does in the loop raises where the test ends."""
    made = ReservationQueue(ledger)
    (asked,) = start(made, intent("a", 60))
    await asyncio.to_thread(ledger.wait_for, 1)
    await asyncio.sleep(0)
    assert said(asked) in (60, WAITS)
    start(made, intent("b", 20))
    await asyncio.sleep(0)  # the second request is queued, its transaction is to begin in a moment
    made.close()
    await asyncio.wait_for(made.flush(), PATIENCE_S)
    assert ledger.batches == [([], ["a"])]


async def test_calls_of_the_ledger_run_on_the_thread_of_the_queue(
    queue: ReservationQueue, ledger: Watched
) -> None:
    assert await queue.run_in_thread(ledger.spent, "run") == ledger.spent("run")
    name = await queue.run_in_thread(lambda: threading.current_thread().name)
    assert name.startswith("ledger")
    assert await queue.run_in_thread(lambda: threading.current_thread().name) == name


@pytest.mark.parametrize("failing", [False, True])
async def test_a_queue_that_is_closed_leaves_the_ledger_and_its_thread(
    ledger: Watched, failing: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(claim_watch, "BEAT_S", 0.05)
    queue, errors = ReservationQueue(ledger), list[object]()
    asyncio.get_running_loop().set_exception_handler(lambda _loop, context: errors.append(context))
    (first,) = await ask(queue, intent("a", 60))
    queue.cancel("a", held(first), "not_billed")
    await still(queue)

    def buyers() -> int:
        with ledger._engine.connect() as connection:
            return connection.exec_driver_sql("SELECT count(*) FROM buyers").scalar_one()

    def refuse(_buyer: ClaimHolder) -> None:
        raise LedgerError("the disk is full")

    assert buyers() == 1
    if failing:
        monkeypatch.setattr(ledger, "leave", refuse)
    queue.close()
    assert buyers() == (1 if failing else 0)
    with pytest.raises(RuntimeError, match="shutdown"):
        await queue.run_in_thread(int)
    await asyncio.sleep(0.1)  # no beat comes any more
    assert errors == []
