"""The same questions asked by several replays at the same time on one ledger: each is bought once."""

import asyncio
import os
import signal
import subprocess
import time
from dataclasses import replace
from pathlib import Path

import pytest
from asked_sessions import MODELS, questions_of, run
from asking_processes import go, start
from careless_teacher import Careless
from postgres_server import Server

from tracemill.teachers.core.question import Question
from tracemill.teachers.core.teacher_protocol import AttemptResult
from tracemill.teachers.core.teacher_settings import GateSettings, ReplaySettings
from tracemill.teachers.gate.gate_decisions import make_gate_decisions
from tracemill.teachers.ledger.claims import BEAT_S, LEASE_S, ClaimHolder, Process, this_process
from tracemill.teachers.ledger.entries import (
    CachedAnswer,
    Grant,
    InFlightElsewhere,
    PlannedCall,
    Reservation,
    Settlement,
)
from tracemill.teachers.ledger.ledger import Ledger
from tracemill.teachers.ledger.reservation_queue import ReservationQueue
from tracemill.teachers.openrouter_stub.server import RunningStubServer, running
from tracemill.teachers.openrouter_stub.stub_settings import StubSettings
from tracemill.teachers.replay.replay_run import ReplayRequest, ReplayResult, replay

pytestmark = pytest.mark.anyio
TRACES, STEPS, CAP_NANOUSD = 5, 10, 10**10
STEPS_OF_KILLED = 2
ANSWERS = TRACES * STEPS * len(MODELS)
ELSEWHERE = Process("another machine", 1, "1")


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


async def ask(server_url: str, ledger_url: str, run_id: str, steps: int = STEPS) -> ReplayResult:
    return (
        await run(server_url, ledger_url, questions_of(TRACES, steps), cap_nanousd=CAP_NANOUSD, run_id=run_id)
    )[0]


@pytest.mark.parametrize("replays", [2, 8])
async def test_replays_at_the_same_time_buy_every_answer_once(ledger_url: str, replays: int) -> None:
    with running(StubSettings(latency_s=0.05, latency_spread=0.5)) as server:
        results = await asyncio.gather(
            *(ask(server.url, ledger_url, f"run{number % 3}") for number in range(replays))
        )
        stats = server.stats()
    assert (stats["received"], stats["paid"], stats["paid_twice"]) == (ANSWERS, ANSWERS, 0)
    assert [result.counters["answered"] for result in results] == [ANSWERS] * replays
    assert sum(result.counters["asked"] for result in results) == ANSWERS
    with Ledger(ledger_url) as ledger:
        spent = [ledger.spent(run_id) for run_id in ("run0", "run1", "run2")[:replays]]
    assert sum(each.settled_nanousd for each in spent) == stats["charged_nanousd"]
    assert all((each.reserved_nanousd, each.open_calls) == (0, 0) for each in spent)


def wait_for(server: RunningStubServer, received: int) -> None:
    while server.stats()["received"] < received:
        time.sleep(0.01)


def together(ledger_url: str, processes: int) -> None:
    with running(StubSettings(latency_s=0.1, latency_spread=0.5)) as server:
        children = [start(server, ledger_url, TRACES, STEPS, CAP_NANOUSD) for _ in range(processes)]
        go(children)
        said = [child.communicate(timeout=120)[0] for child in children]
        stats = server.stats()
    assert [child.returncode for child in children] == [0] * processes
    assert said == [b"%d\n" % ANSWERS] * processes
    assert (stats["received"], stats["paid_twice"]) == (ANSWERS, 0)


@pytest.mark.slow
@pytest.mark.parametrize("processes", [2, 8])
def test_processes_at_the_same_time_buy_every_answer_once(processes: int, tmp_path: Path) -> None:
    together(f"sqlite:///{tmp_path / 'l.db'}", processes)


@pytest.mark.slow
def test_the_same_of_processes_on_postgresql(postgres: Server) -> None:
    together(postgres.new_database(), 4)


async def test_what_a_killed_process_was_asking_is_asked_by_who_waits_for_it(ledger_url: str) -> None:
    """It is waited for while it lives, and dead at once: it is not even buried while the other goes on."""
    with running(StubSettings(latency_s=0.8)) as server:
        child = start(server, ledger_url, TRACES, STEPS_OF_KILLED, CAP_NANOUSD, "killed")
        go([child])
        await asyncio.to_thread(wait_for, server, TRACES * len(MODELS))
        waiting = asyncio.create_task(ask(server.url, ledger_url, "waiting", STEPS_OF_KILLED))
        await asyncio.sleep(0.4)
        child.send_signal(signal.SIGKILL)
        received = server.stats()["received"]
        async with asyncio.timeout(60):
            result = await waiting
        child.communicate(timeout=30)
        stats = server.stats()
    with Ledger(ledger_url) as ledger:
        in_flight = ledger.spent("killed").open_calls
    wanted = TRACES * STEPS_OF_KILLED * len(MODELS)
    assert result.counters["answered"] == wanted
    assert received == TRACES * len(MODELS) == in_flight
    assert stats["received"] == wanted + in_flight
    assert stats["paid_twice"] <= in_flight


def intent(key: str = "k", amount: int = 10) -> PlannedCall:
    return PlannedCall("run", "t", "t:0:0", "x", key, amount)


def one(ledger: Ledger, buyer: ClaimHolder | None, key: str = "k") -> Grant | InFlightElsewhere:
    return ledger.apply((), [intent(key)], buyer)[1][0]


class Clock:
    """Seconds that pass when they are told to."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_buyer_elsewhere_is_dead_once_nothing_was_heard_of_it_for_a_lease(ledger_url: str) -> None:
    time_s, wall = Clock(), Clock()
    with Ledger(ledger_url, wall) as ledger:
        ledger.open_run("run", 1000)
        there, here = ClaimHolder(900, ELSEWHERE, time_s), ClaimHolder(900, elapsed_s=time_s)
        assert isinstance(one(ledger, there), Reservation)
        for _ in range(10):  # it lives: no lease runs out
            time_s.now = wall.now = time_s.now + LEASE_S - 1
            ledger.apply((), (), there)
            assert one(ledger, here) == InFlightElsewhere()
        wall.now += 40  # whatever clocks say
        assert one(ledger, here) == InFlightElsewhere()
        time_s.now += LEASE_S
        assert isinstance(one(ledger, here), Reservation)


def test_a_buyer_here_lives_as_long_as_its_process(ledger_url: str) -> None:
    """A silent one too; one whose id was given to another process is dead, and so is a zombie."""
    time_s = Clock()
    child = subprocess.Popen(["sleep", "100"])
    me = this_process()
    there = Process(me.host, child.pid, Path(f"/proc/{child.pid}/stat").read_text().split()[21])
    with Ledger(ledger_url) as ledger:
        ledger.open_run("run", 1000)
        buyer = ClaimHolder(900, elapsed_s=time_s)
        for key, other in (("a", there), ("b", Process(me.host, child.pid, "1")), ("c", me)):
            assert isinstance(one(ledger, ClaimHolder(900, other), key), Reservation)
        time_s.now += 10 * LEASE_S
        assert one(ledger, buyer, "a") == InFlightElsewhere()
        assert isinstance(one(ledger, buyer, "b"), Reservation)
        assert one(ledger, buyer, "c") == InFlightElsewhere()
        child.kill()
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        assert isinstance(one(ledger, buyer, "a"), Reservation)
    child.wait()


def test_an_answer_is_waited_for_and_a_failure_a_departure_or_its_age_frees_the_question(
    ledger_url: str,
) -> None:
    wall = Clock()
    with Ledger(ledger_url, wall) as ledger:
        ledger.open_run("run", 1000)
        first, second = ClaimHolder(60), ClaimHolder(60)
        held = {key: one(ledger, first, key) for key in ("bought", "failed", "left", "old")}
        nobodys = ledger.reserve(intent("nobody's"))
        assert isinstance(nobodys, Reservation)
        assert [one(ledger, second, key) for key in held] == [InFlightElsewhere()] * 4
        assert isinstance(one(ledger, second, "nobody's"), Reservation)
        assert isinstance(one(ledger, first, "bought"), Reservation)  # nobody waits for themselves
        for key, reply in (("bought", "{}"), ("failed", None)):
            reservation = held[key]
            assert isinstance(reservation, Reservation)
            ledger.apply([Settlement(reservation, 3, reply)])
        assert one(ledger, second, "bought") == CachedAnswer("{}")
        assert isinstance(one(ledger, second, "failed"), Reservation)
        wall.now += 59.9
        assert one(ledger, second, "old") == InFlightElsewhere()
        wall.now += 0.1
        assert isinstance(one(ledger, second, "old"), Reservation)
        wall.now = 0.0
        ledger.leave(first)
        assert isinstance(one(ledger, second, "left"), Reservation)


async def test_a_queue_that_waits_for_another_machine_says_that_it_is_there_itself(ledger_url: str) -> None:
    """It hangs no longer than the lease. A stop wakes it."""
    with Ledger(ledger_url) as ledger:
        ledger.open_run("run", 1000)
        assert isinstance(one(ledger, ClaimHolder(900, ELSEWHERE)), Reservation)
        time_s = Clock()
        queue, stopped = ReservationQueue(ledger, 900), ReservationQueue(ledger, 900)
        queue._buyer.elapsed_s = time_s
        waiting, given_up = (
            asyncio.create_task(queue.reserve(intent())),
            asyncio.create_task(stopped.reserve(intent())),
        )
        await asyncio.sleep(0.5)
        assert not waiting.done()
        stopped.stop()
        assert await given_up is None
        with ledger._engine.connect() as connection:
            seen = connection.exec_driver_sql("SELECT seen_at FROM buyers ORDER BY seen_at").scalars().all()
        time_s.now += BEAT_S
        await asyncio.sleep(0.5)
        with ledger._engine.connect() as connection:
            assert len(seen) == 3
            after = connection.exec_driver_sql("SELECT max(seen_at) FROM buyers").scalar_one()
            assert after > max(seen)
        time_s.now += LEASE_S
        grant = await waiting
        assert isinstance(grant, Reservation)
        queue.cancel("t", grant, "stopped")
        await queue.flush()
        stopped.close()
        queue.close()
        with ledger._engine.connect() as connection:
            left = connection.exec_driver_sql("SELECT host FROM buyers").scalars().all()
        assert left == [ELSEWHERE.host]


class Failing(Careless):
    """A teacher that bills and gives nothing."""

    async def ask(self, question: Question, sample: int) -> AttemptResult:
        await asyncio.sleep(0.05)
        asked = await super().ask(question, sample)
        return replace(asked, reply=replace(asked.reply, failure="provider_error"))


async def test_who_waited_for_a_failure_asks(tmp_path: Path) -> None:
    """In turn: at no time do two ask the same."""
    questions, asked = questions_of(1, 3), list[tuple[str, int]]()

    class Watched(Failing):
        async def ask(self, question: Question, sample: int) -> AttemptResult:
            asked.append((question.step_id, 1))
            got = await super().ask(question, sample)
            asked.append((question.step_id, -1))
            return got

    async def once() -> ReplayResult:
        with Ledger(f"sqlite:///{tmp_path / 'l.db'}") as ledger:
            ledger.open_run("run", 1000)
            teachers = [Watched(5)]
            decisions = make_gate_decisions(questions, teachers, 0, GateSettings())
            return await replay(
                ReplayRequest(questions, decisions, teachers, ledger, "run", ReplaySettings(max_attempts=1))
            )

    results = await asyncio.gather(once(), once())
    assert [result.counters["asked"] for result in results] == [3, 3]
    for question in questions:
        assert [change for step, change in asked if step == question.step_id] == [1, -1, 1, -1]
