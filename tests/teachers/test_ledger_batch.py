"""Group commit: a batch is what its parts would have been one by one, in one transaction."""

import asyncio
from collections.abc import Iterator

import pytest
from sqlalchemy import event

from tracemill.records.errors import LedgerError
from tracemill.teachers.ledger.entries import (
    CachedAnswer,
    DeniedReservation,
    PlannedCall,
    Reservation,
    Settlement,
)
from tracemill.teachers.ledger.ledger import Ledger
from tracemill.teachers.ledger.reservation_queue import ReservationQueue


@pytest.fixture
def ledger(ledger_url: str) -> Iterator[Ledger]:
    with Ledger(ledger_url) as opened:
        yield opened


def intent(key: str, amount: int, trace: str = "trace") -> PlannedCall:
    return PlannedCall("run", trace, f"{trace}:0:0", "teacher", key, amount)


def test_one_transaction_settles_frees_grants_and_denies(ledger: Ledger) -> None:
    ledger.open_run("run", 130, max_trace_nanousd=70)
    (first, second) = ledger.apply(intents=[intent("a", 60), intent("b", 40, "other")])[1]
    assert isinstance(first, Reservation)
    assert isinstance(second, Reservation)
    wishes = [intent("a", 60), intent("c", 31), intent("d", 30), intent("e", 30, "other"), intent("f", 1)]
    closed, grants = ledger.apply(
        [Settlement(first, 40, '{"a":1}'), Settlement(Reservation(99, 1), 1)], wishes
    )
    assert closed[0] is True
    assert isinstance(closed[1], LedgerError)
    assert grants[0] == CachedAnswer('{"a":1}')  # bought in this very transaction
    assert grants[1] == DeniedReservation("trace", 70, 40, 0, 31)
    assert isinstance(grants[2], Reservation)
    assert grants[3] == DeniedReservation("run", 130, 40, 70, 30)
    assert grants[4] == DeniedReservation("run", 130, 40, 70, 1)  # would fit, but does not overtake
    spent = ledger.spent("run")
    assert (spent.settled_nanousd, spent.reserved_nanousd, spent.calls, spent.open_calls) == (40, 70, 3, 2)


def test_a_batch_with_an_unknown_run_books_nothing(ledger: Ledger) -> None:
    ledger.open_run("run", 100)
    (call,) = ledger.apply(intents=[intent("a", 60)])[1]
    assert isinstance(call, Reservation)
    with pytest.raises(LedgerError, match="is not in the ledger"):
        ledger.apply([Settlement(call, 1)], [PlannedCall("no run", "t", "t:0:0", "x", "b", 1)])
    assert (ledger.spent("run").settled_nanousd, ledger.spent("run").reserved_nanousd) == (0, 60)


def test_a_burst_of_calls_shares_transactions(ledger: Ledger) -> None:
    begun = 0

    def count(_connection: object) -> None:
        nonlocal begun
        begun += 1

    ledger.open_run("run", 10_000)
    event.listen(ledger._engine, "begin", count)

    async def call(queue: ReservationQueue, number: int) -> None:
        grant = await queue.reserve(intent(f"k{number}", 10, f"t{number % 5}"))
        assert isinstance(grant, Reservation)
        queue.settle(f"t{number % 5}", grant, 7, "{}", "answer")

    async def all_of_them() -> int:
        queue = ReservationQueue(ledger)
        await asyncio.gather(*(call(queue, number) for number in range(200)))
        await queue.flush()
        queue.close()
        return queue.most_in_flight

    assert 32 <= asyncio.run(all_of_them()) <= 200
    assert ledger.spent("run").settled_nanousd == 1400
    assert begun <= 12  # 400 bookings


def test_who_waits_is_served_in_order_and_the_rest_is_told_when_it_runs_dry(ledger: Ledger) -> None:
    """A cap of 100: a dear call waits for one in flight, and cheap ones behind it do not overtake."""
    ledger.open_run("run", 100)
    served: list[str] = []

    async def call(queue: ReservationQueue, key: str, amount: int, cost: int) -> None:
        grant = await queue.reserve(intent(key, amount, key))
        if isinstance(grant, Reservation):
            served.append(key)
            await asyncio.sleep(0.03)
            queue.settle(key, grant, cost, None, "answer")
        else:
            assert isinstance(grant, DeniedReservation)
            served.append(f"no {key}")

    async def scene() -> None:
        queue = ReservationQueue(ledger)
        calls = [("a", 60, 30), ("dear", 70, 20), ("cheap", 10, 10), ("too dear", 60, 0), ("last", 5, 5)]
        await asyncio.gather(*(call(queue, *each) for each in calls))
        await queue.flush()
        queue.close()

    asyncio.run(scene())
    assert served == ["a", "dear", "cheap", "no too dear", "last"]
    assert ledger.spent("run").settled_nanousd == 65


def test_what_came_home_is_booked_with_the_reservation_of_what_follows_and_never_after_it(
    ledger: Ledger,
) -> None:
    """Each of these calls fits under the cap only once the one before it is booked."""
    ledger.open_run("run", 10)
    begun: list[object] = []
    event.listen(ledger._engine, "begin", begun.append)

    async def scene() -> None:
        queue = ReservationQueue(ledger)
        for number in range(5):
            grant = await queue.reserve(intent(f"k{number}", 10))
            assert isinstance(grant, Reservation)
            queue.settle("trace", grant, 0, f"{number}", "answer")
        await queue.flush()
        assert len(begun) == 6  # five that also reserve, and the last
        queue.close()

    asyncio.run(scene())
    assert list(ledger.answers_to([f"k{n}" for n in range(5)]).values()) == list("01234")


def test_what_cannot_be_booked_ends_the_line_and_is_raised(ledger: Ledger) -> None:
    ledger.open_run("run", 10)

    async def scene() -> None:
        queue = ReservationQueue(ledger)
        held = await queue.reserve(intent("held", 10))
        assert isinstance(held, Reservation)
        waiting = asyncio.create_task(queue.reserve(intent("next", 10, "other")))
        await asyncio.sleep(0.05)
        queue.cancel("trace", Reservation(held.call_id + 1, 10), "unknown")
        with pytest.raises(LedgerError, match="is not in the ledger"):
            await queue.flush()
        for late in (waiting, queue.reserve(intent("later", 1))):
            with pytest.raises(LedgerError, match="is not in the ledger"):
                await late
        queue.close()

    asyncio.run(scene())


def test_a_stop_wakes_everyone_in_the_line(ledger: Ledger) -> None:
    ledger.open_run("run", 10)

    async def scene() -> list[object]:
        queue = ReservationQueue(ledger)
        held = await queue.reserve(intent("held", 10))
        waiting = [asyncio.create_task(queue.reserve(intent(f"k{n}", 5, f"t{n}"))) for n in range(3)]
        await asyncio.sleep(0.05)
        assert not any(task.done() for task in waiting)
        queue.stop()
        got: list[object] = await asyncio.gather(*waiting)
        assert isinstance(held, Reservation)
        queue.cancel("trace", held, "stopped")
        await queue.flush()
        queue.close()
        return got

    assert asyncio.run(scene()) == [None, None, None]
    assert ledger.spent("run").reserved_nanousd == 0
