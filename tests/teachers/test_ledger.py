"""The ledger: what was granted never passes a cap, whoever asks, dies or comes back late."""

import multiprocessing
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from threading import Barrier, Thread

import pytest
from sqlalchemy import text

from tracemill.records.errors import LedgerError
from tracemill.teachers.ledger.entries import (
    CachedAnswer,
    DeniedReservation,
    PlannedCall,
    Reservation,
    Settlement,
)
from tracemill.teachers.ledger.ledger import Ledger, sqlite_url
from tracemill.teachers.ledger.schema import open_database

DAY_S = 86_400.0
NOON = datetime(2026, 11, 21, 12, tzinfo=UTC).timestamp()


class Clock:
    def __init__(self, now: float = NOON) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


def url_of(folder: Path) -> str:
    return sqlite_url(folder / "ledger.db")


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def ledger(ledger_url: str, clock: Clock) -> Iterator[Ledger]:
    with Ledger(ledger_url, clock) as opened:
        yield opened


def intent(key: str, amount: int, run: str = "run", trace: str = "trace") -> PlannedCall:
    return PlannedCall(run, trace, f"{trace}:0:0", "teacher", key, amount)


def granted(ledger: Ledger, key: str, amount: int, run: str = "run", trace: str = "trace") -> Reservation:
    grant = ledger.reserve(intent(key, amount, run, trace))
    assert isinstance(grant, Reservation)
    return grant


def test_a_cap_is_used_to_the_last_nano_dollar_and_not_beyond(ledger: Ledger) -> None:
    ledger.open_run("run", 100)
    granted(ledger, "a", 60)
    assert ledger.reserve(intent("b", 41)) == DeniedReservation("run", 100, 0, 60, 41)
    granted(ledger, "b", 40)
    spent = ledger.spent("run")
    assert (spent.settled_nanousd, spent.reserved_nanousd, spent.open_calls) == (0, 100, 2)


def test_settling_frees_what_was_not_used_and_keeps_the_answer(ledger: Ledger) -> None:
    ledger.open_run("run", 100)
    assert ledger.settle(granted(ledger, "a", 100), 30, '{"x":1}')
    assert ledger.spent("run").settled_nanousd == 30
    assert ledger.answer("a") == '{"x":1}'
    assert ledger.reserve(intent("a", 1)) == CachedAnswer('{"x":1}')
    granted(ledger, "b", 70)


def test_an_unknown_cost_is_the_worst_case_and_a_release_costs_nothing(ledger: Ledger) -> None:
    ledger.open_run("run", 100)
    assert ledger.settle(granted(ledger, "a", 40), None)
    ledger.release(granted(ledger, "b", 60))
    spent = ledger.spent("run")
    assert (spent.settled_nanousd, spent.reserved_nanousd, spent.calls) == (40, 0, 2)
    assert ledger.answer("a") is None


def test_every_try_is_counted_by_teacher_and_outcome(ledger: Ledger) -> None:
    for run in ("run", "other"):
        ledger.open_run(run, 100)
    assert ledger.settle(granted(ledger, "a", 10), 5, '{"x":1}', "answer")
    for key in ("b", "c"):
        ledger.release(granted(ledger, key, 10), "rate_limited")
    ledger.release(granted(ledger, "d", 10, run="other"), "provider_error")
    granted(ledger, "e", 10)
    assert ledger.outcomes(["run"]) == {"teacher": {"answer": 1, "rate_limited": 2}}
    assert ledger.outcomes(["run", "other"])["teacher"]["provider_error"] == 1
    assert ledger.outcomes([]) == {}


def test_a_cost_above_its_bound_is_counted_and_reported(ledger: Ledger) -> None:
    ledger.open_run("run", 100)
    assert not ledger.settle(granted(ledger, "a", 10), 130)
    assert ledger.spent("run").settled_nanousd == 130
    assert isinstance(ledger.reserve(intent("b", 0)), DeniedReservation)


def test_caps_of_trace_and_day_hold_across_runs(ledger: Ledger, clock: Clock) -> None:
    ledger.open_run("one", 1000, max_day_nanousd=150, max_trace_nanousd=100)
    ledger.open_run("two", 1000, max_day_nanousd=150, max_trace_nanousd=100)
    granted(ledger, "a", 80, "one", "t1")
    denied = ledger.reserve(intent("b", 30, "two", "t1"))
    assert isinstance(denied, DeniedReservation)
    assert denied.scope == "trace"
    granted(ledger, "b", 70, "two", "t2")
    denied = ledger.reserve(intent("c", 1, "two", "t3"))
    assert isinstance(denied, DeniedReservation)
    assert denied.scope == "day"
    clock.now += DAY_S
    granted(ledger, "c", 100, "two", "t4")


def test_a_denied_call_leaves_no_trace_in_any_scope(ledger: Ledger) -> None:
    ledger.open_run("run", 1000, max_day_nanousd=1000, max_trace_nanousd=50)
    assert isinstance(ledger.reserve(intent("a", 60)), DeniedReservation)
    assert ledger.spent("run").reserved_nanousd == 0
    assert ledger.spent("run").calls == 0


@pytest.mark.parametrize("written_off_first", [False, True])
def test_eight_crashes_in_a_day_do_not_eat_the_next_day(ledger_url: str, written_off_first: bool) -> None:
    clock = Clock()
    for crash in range(8):
        with Ledger(ledger_url, clock) as ledger:
            ledger.open_run("run", 1000, max_day_nanousd=100)
            granted(ledger, f"k{crash}", 10, trace=f"t{crash}")
            clock.now += 60
    with Ledger(ledger_url, clock) as ledger:
        assert ledger.reserve(intent("x", 21)) == DeniedReservation("day", 100, 0, 80, 21)
        clock.now += DAY_S
        if written_off_first:
            assert ledger.write_off_stale(DAY_S / 2) == 8
        granted(ledger, "x", 100)
        assert ledger.write_off_stale(DAY_S / 2) == (0 if written_off_first else 8)
        assert ledger.reserve(intent("y", 1)) == DeniedReservation("day", 100, 0, 100, 1)
        spent = ledger.spent("run")
        assert (spent.settled_nanousd, spent.reserved_nanousd, spent.written_off) == (80, 100, 8)


def test_a_reply_after_the_write_off_corrects_the_figure(ledger: Ledger, clock: Clock) -> None:
    ledger.open_run("run", 1000)
    late = granted(ledger, "a", 100)
    clock.now += 60
    assert ledger.write_off_stale(59) == 1
    assert ledger.spent("run").settled_nanousd == 100
    assert ledger.settle(late, 7, "{}")
    assert ledger.spent("run").settled_nanousd == 7
    assert ledger.answer("a") == "{}"


def test_closing_a_call_twice_is_refused(ledger: Ledger) -> None:
    ledger.open_run("run", 100)
    call = granted(ledger, "a", 10)
    ledger.settle(call, 5)
    with pytest.raises(LedgerError, match="closed already"):
        ledger.release(call)
    assert ledger.spent("run").settled_nanousd == 5


def test_a_resumed_run_keeps_what_it_spent_under_its_new_cap(ledger_url: str) -> None:
    with Ledger(ledger_url) as ledger:
        ledger.open_run("run", 100)
        ledger.settle(granted(ledger, "a", 90), 90)
    with Ledger(ledger_url) as ledger:
        ledger.open_run("run", 95)
        assert isinstance(ledger.reserve(intent("b", 6)), DeniedReservation)
        ledger.open_run("run", 200)
        granted(ledger, "b", 110)


def test_a_run_that_was_never_opened_is_an_error(ledger: Ledger) -> None:
    with pytest.raises(LedgerError, match="is not in the ledger"):
        ledger.reserve(intent("a", 1))
    with pytest.raises(LedgerError, match="is not in the ledger"):
        ledger.spent("run")


def test_many_answers_are_found_at_once(ledger: Ledger) -> None:
    ledger.open_run("run", 10_000)
    wishes = [intent(f"k{number}", 1) for number in range(0, 1200, 2)]
    grants = ledger.apply(intents=wishes)[1]
    bought = [
        Settlement(grant, 1, w.request_key)
        for w, grant in zip(wishes, grants, strict=True)
        if isinstance(grant, Reservation)
    ]
    assert ledger.apply(bought)[0] == [True] * 600
    found = ledger.answers_to([f"k{number}" for number in range(1200)])
    assert found == {f"k{number}": f"k{number}" for number in range(0, 1200, 2)}


def test_a_path_with_odd_characters_is_the_file_meant(tmp_path: Path) -> None:
    folder = tmp_path / "a b%20?x=1#é"
    with Ledger(url_of(folder)) as ledger:
        ledger.open_run("run", 1)
        assert ledger.spent("run").cap_nanousd == 1
    assert (folder / "ledger.db").is_file()


def _spend(url: str, name: str, wanted: int, results: "multiprocessing.Queue[int]") -> None:
    got = 0
    with Ledger(url) as ledger:
        ledger.open_run("run", 100_000, max_day_nanousd=90_000)
        for number in range(wanted):
            grant = ledger.reserve(intent(f"{name}{number}", 1000, trace=f"{name}{number % 3}"))
            if isinstance(grant, Reservation):
                got += 1
                ledger.settle(grant, 1000 if number % 2 else 500, "{}")
    results.put(got)


def spend_from_processes(url: str, processes: int, wanted: int) -> int:
    context = multiprocessing.get_context("spawn")
    results: multiprocessing.Queue[int] = context.Queue()
    workers = [
        context.Process(target=_spend, args=(url, f"p{number}-", wanted, results))
        for number in range(processes)
    ]
    for worker in workers:
        worker.start()
    got = sum(results.get(timeout=120) for _ in workers)
    for worker in workers:
        worker.join(timeout=60)
        assert worker.exitcode == 0
    results.close()
    results.join_thread()
    return got


@pytest.mark.parametrize("processes", [3, pytest.param(8, marks=pytest.mark.slow)])
def test_processes_that_share_a_ledger_share_its_caps(ledger_url: str, processes: int) -> None:
    got = spend_from_processes(ledger_url, processes, 80)
    with Ledger(ledger_url) as ledger:
        spent = ledger.spent("run")
    assert spent.calls == got
    assert 89_000 < spent.settled_nanousd <= 90_000
    assert (spent.reserved_nanousd, spent.open_calls) == (0, 0)


def test_threads_may_share_a_ledger(ledger: Ledger) -> None:
    ledger.open_run("run", 100)
    with ThreadPoolExecutor(8) as threads:
        grants = list(threads.map(lambda n: ledger.reserve(intent(f"k{n}", 10)), range(40)))
    assert sum(isinstance(grant, Reservation) for grant in grants) == 10
    assert ledger.spent("run").reserved_nanousd == 100


def test_a_ledger_of_another_version_is_refused(ledger_url: str) -> None:
    with open_database(ledger_url).begin() as connection:
        connection.execute(text("UPDATE meta SET value = '99' WHERE key = 'schema'"))
        engine = connection.engine
    engine.dispose()
    with pytest.raises(LedgerError, match="schema version 99"):
        Ledger(ledger_url)


def test_a_file_that_is_no_ledger_is_refused(tmp_path: Path) -> None:
    (tmp_path / "ledger.db").write_text("this is a text file, and a long enough one to be no database\n" * 40)
    with pytest.raises(LedgerError, match="cannot be opened"):
        Ledger(url_of(tmp_path))


@pytest.mark.parametrize(
    ("url", "match"),
    [
        ("mysql://user:secret@host/db", "mysql"),
        ("no url at all", "cannot be used"),
        ("sqlite:////dev/null/folder/ledger.db", "folder"),
    ],
)
def test_a_url_that_cannot_be_used_is_one_clear_line(url: str, match: str) -> None:
    with pytest.raises(LedgerError, match=match) as caught:
        Ledger(url)
    assert "secret" not in str(caught.value)


def test_a_commit_is_on_the_disk_when_it_returns(tmp_path: Path) -> None:
    """https://www.sqlite.org/pragma.html#pragma_synchronous: 2 is FULL."""
    engine = open_database(url_of(tmp_path))
    with engine.connect() as connection:
        modes = [
            connection.execute(text(f"PRAGMA {name}")).scalar() for name in ("journal_mode", "synchronous")
        ]
    engine.dispose()
    assert modes == ["wal", 2]


def test_many_may_make_the_same_ledger_at_once(tmp_path: Path) -> None:
    """SQLite's busy timeout does not hold for the switch to its log: one in thirty was refused."""
    refused: list[str] = []

    def make(path: Path, together: Barrier) -> None:
        together.wait()
        try:
            Ledger(sqlite_url(path)).close()
        except LedgerError as error:
            refused.append(str(error))

    for number in range(25):
        together = Barrier(6)
        makers = [Thread(target=make, args=(tmp_path / f"{number}.db", together)) for _ in range(6)]
        for maker in makers:
            maker.start()
        for maker in makers:
            maker.join()
    assert refused == []
