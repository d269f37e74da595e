"""Laws of the ledger under random schedules of faults: several processes, crashes, write-offs, late and
useless answers, costs above their bound, caps that change, clocks that are wrong, buyers that come and go.

The machine drives real ledgers and keeps a plain account of its own; both must always agree.
"""

import os
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, seed, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from postgres_server import Server
from sqlalchemy import select

from tracemill.records.errors import LedgerError
from tracemill.teachers.ledger.claims import LEASE_S, ClaimHolder
from tracemill.teachers.ledger.claims import Process as Place
from tracemill.teachers.ledger.entries import (
    CachedAnswer,
    DeniedReservation,
    Grant,
    InFlightElsewhere,
    PlannedCall,
    Reservation,
    Settlement,
)
from tracemill.teachers.ledger.ledger import Ledger, sqlite_url
from tracemill.teachers.ledger.schema import answers, budgets, calls, open_database

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC).timestamp()
HOUR_S = 3600.0
HOLD_S = 1.5 * HOUR_S
RUNS, TRACES, PROCESSES = ("one", "two"), ("t0", "t1", "t2"), 2
UNCAPPED = 2**62
IN_MEMORY = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
"""Where each schedule has its file: no law is about power cuts, and every commit waits for the disk."""


@dataclass
class Known:
    """A call as the machine knows it."""

    run: str
    trace: str
    day: str
    key: str
    amount: int
    opened_at: float
    buyer: str
    state: str = "open"
    cost: int = 0

    def scopes(self) -> list[str]:
        return [f"day:{self.day}", f"run:{self.run}", f"trace:{self.trace}"]


class Process:
    """A process on the ledger with a clock of its own, and the reservations it holds."""

    def __init__(self, url: str, schedule: "Schedule", ahead_s: float) -> None:
        self.ahead_s = ahead_s
        self.clock = lambda: schedule.now + self.ahead_s
        elsewhere = Place(f"machine {len(schedule.beaten)}", 1, "")
        self.buyer = ClaimHolder(HOLD_S, elsewhere, lambda: schedule.elapsed_s)
        schedule.beaten.add(self.buyer.name)
        self.ledger = Ledger(url, self.clock)
        self.held: list[int] = []

    def day(self) -> str:
        return datetime.fromtimestamp(self.clock(), UTC).date().isoformat()


WHO = st.integers(0, PROCESSES - 1)
WISH = st.tuples(
    st.sampled_from(RUNS), st.sampled_from(TRACES), st.integers(0, 60), st.integers(0, 5).map(str)
)
# which of the held calls, what it cost in percent of what was reserved (None: nobody says), what came
HOME = st.tuples(
    st.integers(0, 9), st.sampled_from([0, 30, 100, 170, None]), st.sampled_from(["answer", "useless"])
)
CAPS = st.tuples(st.integers(0, 200), st.none() | st.integers(0, 150), st.none() | st.integers(0, 90))


class Schedule(RuleBasedStateMachine):
    """A random schedule over one new ledger at `url`."""

    def __init__(self, url: str) -> None:
        super().__init__()
        self.url, self.now, self.elapsed_s = url, NOON, 0.0
        self.beaten: set[str] = set()
        self.waited_s: dict[tuple[str, str], float] = {}
        self.known: dict[int, Known] = {}
        self.answers: dict[str, str] = {}
        self.ceiling: dict[str, int] = {}
        self.caps = dict.fromkeys(RUNS, (120, 150, 70))
        self.processes = [Process(url, self, 0.0) for _ in range(PROCESSES)]
        for run, caps in self.caps.items():
            self.processes[0].ledger.open_run(run, *caps)
        self.book = open_database(url)

    def teardown(self) -> None:
        for process in self.processes:
            process.ledger.close()
        self.book.dispose()

    def total(self, scope: str) -> tuple[int, int]:
        """Settled and reserved of a scope, by the machine's own account."""
        inside = [call for call in self.known.values() if scope in call.scopes()]
        reserved = sum(call.amount for call in inside if call.state == "open")
        return sum(call.cost for call in inside if call.state != "open"), reserved

    @rule(who=WHO, home=st.lists(HOME, max_size=4), wishes=st.lists(WISH, max_size=5))
    def a_batch(self, who: int, home: list[tuple[int, int | None, str]], wishes: list[Any]) -> None:
        process = self.processes[who]
        closes: list[tuple[int, Settlement]] = []
        for place, percent, what in home:
            if process.held:
                number = process.held.pop(place % len(process.held))
                closes.append((number, self._close(number, percent, what)))
        intents = [
            PlannedCall(run, trace, f"{trace}:0:0", "x", key, amount) for run, trace, amount, key in wishes
        ]
        closed, grants = process.ledger.apply([close for _, close in closes], intents, process.buyer)
        assert closed == [
            (close.cost_nanousd or 0) <= close.reservation.amount_nanousd for _, close in closes
        ]
        for number, close in closes:
            self._settled(number, close)
        self._granted(process, intents, grants)

    def _close(self, number: int, percent: int | None, what: str) -> Settlement:
        amount = self.known[number].amount
        cost = None if percent is None else amount * percent // 100
        reply = f'{{"of":{number}}}' if what == "answer" else None
        return Settlement(Reservation(number, amount), cost, reply, what)

    def _settled(self, number: int, close: Settlement) -> None:
        call = self.known[number]
        call.state, call.cost = "settled", call.amount if close.cost_nanousd is None else close.cost_nanousd
        if close.reply is not None:
            self.answers.setdefault(call.key, close.reply)

    def _granted(
        self, process: Process, intents: list[PlannedCall], grants: list[Grant | InFlightElsewhere]
    ) -> None:
        """A grant fits under every cap; a denial names one that it does not fit under, or stands behind such
        a denial of its run; what was bought, or is being bought by one who lives, is never sold again."""
        asking = self._asked_elsewhere(process)
        full: set[str] = set()
        for intent, grant in zip(intents, grants, strict=True):
            wanted = Known(
                intent.run_id,
                intent.trace_id,
                process.day(),
                intent.request_key,
                intent.amount_nanousd,
                process.clock(),
                process.buyer.name,
            )
            total, day, trace = (UNCAPPED if c is None else c for c in self.caps[intent.run_id])
            limits = dict(zip(wanted.scopes(), (day, total, trace), strict=True))
            over = {
                scope.partition(":")[0]: sum(self.total(scope)) + wanted.amount > cap
                for scope, cap in limits.items()
            }
            if isinstance(grant, InFlightElsewhere):
                assert wanted.key not in self.answers
                assert self._is_worth_waiting(process, asking[wanted.key])
            elif isinstance(grant, CachedAnswer):
                assert grant == CachedAnswer(self.answers[wanted.key])
            else:
                assert not asking.get(wanted.key, set()) & self.alive()
            if isinstance(grant, Reservation):
                assert not any(over.values())
                assert wanted.key not in self.answers
                self.known[grant.call_id] = wanted
                process.held.append(grant.call_id)
                for scope, cap in limits.items():
                    self.ceiling[scope] = max(self.ceiling.get(scope, 0), cap)
            elif isinstance(grant, DeniedReservation):
                assert over[grant.scope] or intent.run_id in full
                if grant.scope != "trace":
                    full.add(intent.run_id)

    def alive(self) -> set[str]:
        """The buyers that are there and heard of."""
        return {process.buyer.name for process in self.processes}

    def _asked_elsewhere(self, process: Process) -> dict[str, set[str]]:
        """Who else asks a question, by its key, and not for too long."""
        asking: dict[str, set[str]] = {}
        for call in self.known.values():
            elsewhere = call.state == "open" and call.buyer in self.beaten - {process.buyer.name}
            if elsewhere and process.clock() - call.opened_at < HOLD_S:
                asking.setdefault(call.key, set()).add(call.buyer)
        return asking

    def _is_worth_waiting(self, process: Process, buyers: set[str]) -> bool:
        """Whether one of them lives, or was lately taken to: nobody waits for the dead beyond a lease."""
        began = [self.waited_s.setdefault((process.buyer.name, each), self.elapsed_s) for each in buyers]
        return bool(buyers & self.alive()) or self.elapsed_s - max(began) < LEASE_S

    @precondition(lambda self: any(process.held for process in self.processes))
    @rule(who=WHO)
    def a_call_that_was_not_billed(self, who: int) -> None:
        process = self.processes[who]
        if process.held:
            number = process.held.pop()
            process.ledger.release(Reservation(number, self.known[number].amount))
            self.known[number].state, self.known[number].cost = "settled", 0

    @precondition(lambda self: any(call.state == "settled" for call in self.known.values()))
    @rule(who=WHO, which=st.integers(0, 50))
    def a_call_booked_twice(self, who: int, which: int) -> None:
        closed = [number for number, call in self.known.items() if call.state == "settled"]
        number = closed[which % len(closed)]
        with pytest.raises(LedgerError, match="closed already"):
            self.processes[who].ledger.settle(Reservation(number, self.known[number].amount), 1, "{}")

    @rule(who=WHO, leaves=st.booleans())
    def a_crash(self, who: int, leaves: bool) -> None:
        """The process is gone; what it held stays reserved. Another one takes its place. One that `leaves`
        says so: nobody waits for it."""
        gone = self.processes[who]
        if leaves:
            gone.ledger.leave(gone.buyer)
            self.beaten.discard(gone.buyer.name)
        gone.ledger.close()
        self.waited_s = {pair: at for pair, at in self.waited_s.items() if gone.buyer.name not in pair}
        self.processes[who] = Process(self.url, self, gone.ahead_s)

    @rule(who=WHO, older_than_s=st.sampled_from([0.5, HOUR_S, 24 * HOUR_S]))
    def a_write_off(self, who: int, older_than_s: float) -> None:
        process = self.processes[who]
        before = process.clock() - older_than_s
        late = [c for c in self.known.values() if c.state == "open" and c.opened_at < before]
        assert process.ledger.write_off_stale(older_than_s) == len(late)
        for call in late:
            call.state, call.cost = "written_off", call.amount

    @rule(who=WHO, run=st.sampled_from(RUNS), caps=CAPS)
    def caps_that_change(self, who: int, run: str, caps: Any) -> None:
        self.processes[who].ledger.open_run(run, *caps)
        self.caps[run] = caps

    @rule(seconds=st.sampled_from([1.0, LEASE_S, HOUR_S, 13 * HOUR_S, 25 * HOUR_S, -HOUR_S]))
    def time_that_passes(self, seconds: float) -> None:
        """Clocks may be set back. Who lives is heard of."""
        self.now += seconds + 0.001
        self.elapsed_s += abs(seconds)
        for process in self.processes:
            process.ledger.apply(buyer=process.buyer)

    @rule(who=WHO, ahead_s=st.sampled_from([0.0, -14 * HOUR_S, 14 * HOUR_S]))
    def a_clock_that_is_wrong(self, who: int, ahead_s: float) -> None:
        self.processes[who].ahead_s = ahead_s

    @invariant()
    def the_book_agrees_and_no_cap_is_passed(self) -> None:
        with self.book.execution_options(ledger_read=True).begin() as connection:
            rows = {row.scope: row for row in connection.execute(select(budgets))}
            booked = {row.id: row for row in connection.execute(select(calls))}
            kept = {row.request_key: row.reply for row in connection.execute(select(answers))}
        for scope, row in rows.items():
            assert (row.settled_nusd, row.reserved_nusd) == self.total(scope)
            above = sum(
                max(call.cost - call.amount, 0) for call in self.known.values() if scope in call.scopes()
            )
            assert row.settled_nusd + row.reserved_nusd <= self.ceiling.get(scope, 0) + above
        assert {scope for call in self.known.values() for scope in call.scopes()} <= rows.keys()
        assert booked.keys() == self.known.keys()
        for number, call in self.known.items():
            ended = ("released", "unproven")
            state = "settled" if booked[number].state in ended else booked[number].state
            assert (state, booked[number].cost_nusd or 0) == (call.state, call.cost)
            assert booked[number].day == call.day
        assert kept == self.answers


def check(new_url: Callable[[], str], schedules: int, part: int = 0) -> None:
    """So many schedules of up to 25 events, each on a ledger of its own; `part` is their seed."""
    quiet = (HealthCheck.too_slow, HealthCheck.filter_too_much)
    how = settings(
        max_examples=schedules,
        stateful_step_count=25,
        deadline=None,
        database=None,
        suppress_health_check=quiet,
    )

    @seed(part)
    def schedule() -> Schedule:
        return Schedule(new_url())

    run_state_machine_as_test(schedule, settings=how)


@pytest.mark.parametrize(
    ("part", "schedules"),
    [
        (0, 15),
        pytest.param(1, 60, marks=pytest.mark.slow),
        *(pytest.param(part, 250, marks=[pytest.mark.slow, pytest.mark.long]) for part in range(1, 5)),
    ],
)
def test_no_schedule_of_faults_passes_a_cap_or_loses_what_was_settled(part: int, schedules: int) -> None:
    folders: list[Path] = []

    def new_url() -> str:
        while folders:
            shutil.rmtree(folders.pop())
        folders.append(Path(tempfile.mkdtemp(prefix="tracemill-law-", dir=IN_MEMORY)))
        return sqlite_url(folders[-1] / "l.db")

    try:
        check(new_url, schedules, part)
    finally:
        for folder in folders:
            shutil.rmtree(folder)


@pytest.mark.slow
@pytest.mark.long
def test_the_same_holds_on_postgresql(postgres: Server) -> None:
    check(postgres.new_database, 30)
