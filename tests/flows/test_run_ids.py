"""Runs have names of their own, however close together they begin."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from sqlalchemy import text

from tracemill.flows.library import replay_trace
from tracemill.flows.run_state.run_records import StartedRun, end_run, new_run_id, start_run
from tracemill.ingesters.ingester_classes import ClaudeCodeIngester
from tracemill.records.storage.workspace import Workspace
from tracemill.teachers.core.presets import SIMULATED
from tracemill.teachers.ledger.ledger import sqlite_url
from tracemill.teachers.ledger.schema import open_database

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "sessions" / "claude_code"


def test_runs_that_begin_in_one_second_have_different_names_in_their_order() -> None:
    names = [new_run_id() for _ in range(500)]
    assert len(set(names)) == 500
    assert [name[:22] for name in names] == sorted(name[:22] for name in names)
    with ThreadPoolExecutor(8) as threads:
        assert len(set(threads.map(lambda _: new_run_id(), range(2000)))) == 2000


def test_a_second_run_in_the_same_second_is_a_new_one_and_the_killed_one_is_taken_up(tmp_path: Path) -> None:
    work = Workspace.open(tmp_path / "w")
    first = start_run(work, "f")
    assert not first.resumed
    end_run(work, first.run_id, {})
    for _ in range(20):
        second = start_run(work, "f")
        assert (second.run_id != first.run_id, second.resumed) == (True, False)
        assert start_run(work, "f") == StartedRun(second.run_id, resumed=True)
        end_run(work, second.run_id, {})
        first = second


def test_a_run_that_stopped_at_its_cap_is_taken_up_and_asks_nothing_below_it(tmp_path: Path) -> None:
    work = Workspace.open(tmp_path / "w")
    first = start_run(work, "f")
    assert first.closed(1.0) == ""
    end_run(work, first.run_id, {"at_cap": True, "cap_usd": 1.0})
    again = start_run(work, "f")
    assert again == StartedRun(first.run_id, resumed=True, stopped_at_usd=1.0, stopped=True)
    assert [bool(again.closed(cap)) for cap in (0.5, 1.0, 1.01, None)] == [True, True, False, False]
    assert start_run(work, "g").run_id != first.run_id
    assert start_run(work, "f", "replay").run_id != first.run_id
    scheduled = start_run(work, "f", scheduled=True)
    assert (scheduled.run_id != first.run_id, scheduled.resumed) == (True, False)
    assert start_run(work, "f", scheduled=True) == StartedRun(scheduled.run_id, resumed=True)
    assert start_run(work, "f", new_run=True).run_id not in (first.run_id, scheduled.run_id)


def test_two_replays_at_once_have_a_cap_each(tmp_path: Path) -> None:
    """Were they one run in the ledger, the second would spend under the first one's cap."""
    path = next(path for path in sorted(EXAMPLES.rglob("*.jsonl")))
    states = [state for trace in ClaudeCodeIngester().ingest(path) for state in trace.states()][:2]

    async def both() -> None:
        ledger = tmp_path / "l.db"
        settings = [
            teacher.model_copy(update={"seed": seed}) for seed in (1, 2) for teacher in SIMULATED.teachers
        ]
        halves = settings[: len(settings) // 2], settings[len(settings) // 2 :]
        await asyncio.gather(
            *(replay_trace(states, half, max_total_usd=1.0, ledger=ledger) for half in halves)
        )

    asyncio.run(both())
    engine = open_database(sqlite_url(tmp_path / "l.db"))
    with engine.begin() as connection:
        counted = connection.execute(text("SELECT run_id, count(*) FROM calls GROUP BY run_id")).all()
    engine.dispose()
    assert len(counted) == 2
    assert len({count for _, count in counted}) == 1
