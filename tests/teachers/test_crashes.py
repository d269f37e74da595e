"""Processes that are killed, and processes that share a ledger: what was paid, against the book."""

import random
import signal
import subprocess
import time
from pathlib import Path

import pytest
from asked_sessions import questions_of, run
from asking_processes import go, start
from postgres_server import Server

from tracemill.teachers.ledger.entries import RunSpending
from tracemill.teachers.ledger.ledger import Ledger
from tracemill.teachers.openrouter_stub.server import RunningStubServer, running
from tracemill.teachers.openrouter_stub.stub_settings import StubSettings

pytestmark = pytest.mark.anyio
ROOMY_NANOUSD, TIGHT_NANOUSD, WIDTH = 10**10, 10**8, 32
STEPS = 10


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def kill_at_random(
    server: RunningStubServer, child: "subprocess.Popen[bytes]", moment: random.Random
) -> bool:
    """Kills the child some calls after it began and up to a latency later; every fifth time at any moment
    of its first half second. Gives whether it was still there."""
    wanted = server.stats()["received"] + moment.randrange(1, 50)
    deadline = time.monotonic() + (moment.uniform(0.0, 0.5) if moment.random() < 0.2 else 60.0)
    while server.stats()["received"] < wanted and child.poll() is None and time.monotonic() < deadline:
        time.sleep(0.002)
    time.sleep(moment.uniform(0, 0.08))
    alive = child.poll() is None
    child.send_signal(signal.SIGKILL)
    child.communicate(timeout=30)
    return alive


def look(ledger_url: str) -> tuple[RunSpending | None, dict[str, str]]:
    """What the run spent, None where it was not opened, and all answers."""
    with Ledger(ledger_url) as ledger:
        kept = dict(ledger.texts())
        return (ledger.spent("run") if _opened(ledger) else None), kept


def _opened(ledger: Ledger) -> bool:
    with ledger._engine.connect() as connection:
        return connection.exec_driver_sql("SELECT count(*) FROM runs").scalar() == 1


async def kill_often(ledger_url: str, kills: int, traces: int, cap_nanousd: int, seed: int) -> None:
    """What holds at every kill: the server was paid no more than the book says, and that is no more than the
    cap; it was paid twice for no more than was in flight at the kills so far; no stored answer is lost."""
    moment, alive, in_flight = random.Random(seed), 0, 0
    stored: dict[str, str] = {}
    with running(StubSettings(latency_s=0.05, latency_spread=0.5)) as server:
        for kill in range(1, kills + 1):
            child = start(server, ledger_url, traces, STEPS, cap_nanousd)
            go([child])
            alive += kill_at_random(server, child, moment)
            spent, kept = look(ledger_url)
            stats = server.stats()
            assert stored.items() <= kept.items()
            stored = kept
            if spent is not None:
                assert spent.open_calls - in_flight <= WIDTH
                assert stats["paid_twice"] <= in_flight, f"kill {kill}"
                assert (
                    stats["charged_nanousd"] <= spent.settled_nanousd + spent.reserved_nanousd <= cap_nanousd
                )
                in_flight = spent.open_calls
        result, spent = await run(
            server.url, ledger_url, questions_of(traces, STEPS), cap_nanousd=cap_nanousd
        )
        stats = server.stats()
    assert alive >= (0.7 if cap_nanousd == ROOMY_NANOUSD else 0.3) * kills
    assert in_flight > 0
    assert stats["paid_twice"] <= in_flight
    assert stats["charged_nanousd"] <= spent.settled_nanousd + spent.reserved_nanousd <= cap_nanousd
    wanted = traces * STEPS * 4
    assert result.counters["answered"] + result.counters["not_asked:budget"] == wanted
    assert (result.counters["answered"] == wanted) == (cap_nanousd == ROOMY_NANOUSD)


async def test_a_killed_run_pays_again_at_most_for_what_was_in_flight(ledger_url: str) -> None:
    await kill_often(ledger_url, 1, 12, ROOMY_NANOUSD, 1)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kills", "cap_nanousd"),
    [(8, TIGHT_NANOUSD), pytest.param(20, ROOMY_NANOUSD, marks=pytest.mark.long)],
)
async def test_the_same_at_random_moments(kills: int, cap_nanousd: int, tmp_path: Path) -> None:
    await kill_often(f"sqlite:///{tmp_path / 'l.db'}", kills, 25, cap_nanousd, 2)


@pytest.mark.slow
@pytest.mark.long
async def test_the_same_at_random_moments_on_postgresql(postgres: Server) -> None:
    await kill_often(postgres.new_database(), 10, 15, ROOMY_NANOUSD, 3)


def together(ledger_url: str, processes: int) -> None:
    cap_nanousd = 10**8
    with running(StubSettings(latency_s=0.05)) as server:
        children = [start(server, ledger_url, 60, STEPS, cap_nanousd) for _ in range(processes)]
        go(children)
        for child in children:
            child.communicate(timeout=300)
        assert [child.returncode for child in children] == [0] * processes
        spent, _ = look(ledger_url)
        charged = server.stats()["charged_nanousd"]
    assert spent is not None
    assert charged == spent.settled_nanousd <= cap_nanousd
    assert (spent.reserved_nanousd, spent.open_calls) == (0, 0)
    assert spent.settled_nanousd > 0.9 * cap_nanousd


@pytest.mark.slow
@pytest.mark.parametrize("processes", [2, 8])
def test_processes_on_one_ledger_stay_under_its_cap_together(processes: int, tmp_path: Path) -> None:
    together(f"sqlite:///{tmp_path / 'l.db'}", processes)


@pytest.mark.slow
def test_four_processes_on_postgresql_stay_under_its_cap_together(postgres: Server) -> None:
    together(postgres.new_database(), 4)
