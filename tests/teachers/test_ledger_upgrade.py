"""Ledgers of earlier schemas are brought to today's in place: no answer and no cent is lost."""

import multiprocessing
import tarfile
from pathlib import Path

import pytest
from sqlalchemy import create_engine, inspect, text
from sqlalchemy.engine import Engine, make_url
from sqlalchemy.pool import NullPool

from tracemill.records.errors import LedgerError
from tracemill.teachers.ledger.entries import CachedAnswer, PlannedCall, Reservation
from tracemill.teachers.ledger.ledger import Ledger
from tracemill.teachers.ledger.schema import SCHEMA_VERSION, open_database

ARCHIVE = Path(__file__).resolve().parents[1] / "data" / "workspace_0.1.0.tar.xz"
META = "CREATE TABLE meta (key TEXT NOT NULL PRIMARY KEY, value TEXT)"
RUNS = (
    "CREATE TABLE runs (run_id TEXT NOT NULL PRIMARY KEY, max_total_nusd BIGINT NOT NULL,"
    " max_day_nusd BIGINT, max_trace_nusd BIGINT, opened_at {float} NOT NULL)"
)
BUDGETS = (
    "CREATE TABLE budgets (scope TEXT NOT NULL PRIMARY KEY, settled_nusd BIGINT NOT NULL,"
    " reserved_nusd BIGINT NOT NULL)"
)
CALLS = (
    "CREATE TABLE calls (id {id}, run_id TEXT NOT NULL, trace_id TEXT NOT NULL, step_id TEXT NOT NULL,"
    " teacher TEXT NOT NULL, request_key TEXT NOT NULL,{buyer} day TEXT NOT NULL,"
    " amount_nusd BIGINT NOT NULL, cost_nusd BIGINT, state TEXT NOT NULL, outcome TEXT,"
    " opened_at {float} NOT NULL, closed_at {float})"
)
ANSWERS = (
    "CREATE TABLE answers (request_key TEXT NOT NULL PRIMARY KEY, reply TEXT NOT NULL,"
    " cost_nusd BIGINT NOT NULL, created_at {float} NOT NULL)"
)
BUYERS = (
    "CREATE TABLE buyers (buyer TEXT NOT NULL PRIMARY KEY, host TEXT NOT NULL, pid BIGINT NOT NULL,"
    " started TEXT NOT NULL, seen_at {float} NOT NULL)"
)
BY_RUN = "CREATE INDEX calls_by_run_state ON calls (run_id, state)"
TABLES = {
    1: (
        META,
        RUNS,
        BUDGETS,
        CALLS,
        ANSWERS,
        BY_RUN,
        "CREATE INDEX calls_by_state_time ON calls (state, opened_at)",
    ),
    2: (
        META,
        RUNS,
        BUDGETS,
        CALLS,
        ANSWERS,
        BUYERS,
        BY_RUN,
        "CREATE INDEX calls_open_by_key ON calls (request_key) WHERE state = 'open'",
        "CREATE INDEX calls_open_by_time ON calls (opened_at) WHERE state = 'open'",
    ),
}
"""What earlier versions made."""
ROWS = (
    "INSERT INTO runs VALUES ('run', 1000, NULL, NULL, 1.5)",
    "INSERT INTO budgets VALUES ('run:run', 70, 100), ('day:2026-01-01', 70, 100), ('trace:t', 70, 100)",
    "INSERT INTO answers VALUES ('bought', '{\"said\":1}', 70, 2.5)",
    "INSERT INTO calls (run_id, trace_id, step_id, teacher, request_key,{buyer} day, amount_nusd, cost_nusd,"
    " state, outcome, opened_at, closed_at) VALUES"
    " ('run', 't', 't:0:0', 'x', 'bought',{me} '2026-01-01', 90, 70, 'settled', 'answer', 2.0, 2.5),"
    " ('run', 't', 't:0:1', 'x', 'lost',{me} '2026-01-01', 100, NULL, 'open', NULL, 3.0, NULL)",
)


def raw_engine(url: str) -> Engine:
    """An engine without anything of ours, that keeps no connection."""
    place = make_url(url)
    place = place.set(drivername="postgresql+pg8000") if "postgres" in url else place
    return create_engine(place, poolclass=NullPool)


def write_ledger(url: str, version: int) -> None:
    """A ledger as an earlier version left it: one answer, and a call that a crash left open."""
    postgres = "postgres" in url
    words = {
        "id": "SERIAL PRIMARY KEY" if postgres else "INTEGER NOT NULL PRIMARY KEY",
        "float": "DOUBLE PRECISION" if postgres else "FLOAT",
        "buyer": {1: "", 2: " buyer TEXT NOT NULL,"}[version],
    }
    column, me = {1: ("", ""), 2: (" buyer,", " 'gone',")}[version]
    with raw_engine(url).begin() as connection:
        for statement in TABLES[version]:
            connection.execute(text(statement.format(**words)))
        for statement in ROWS:
            filled = statement.replace("{buyer}", column).replace("{me}", me)
            connection.exec_driver_sql(filled)
        connection.execute(text(f"INSERT INTO meta VALUES ('schema', '{version}')"))


def shape(url: str) -> dict[str, tuple[set[str], set[str]]]:
    """Columns and indexes of each table."""
    found = inspect(raw_engine(url))
    return {
        table: (
            {column["name"] for column in found.get_columns(table)},
            {str(index["name"]) for index in found.get_indexes(table)},
        )
        for table in found.get_table_names()
    }


@pytest.mark.parametrize("version", [1, 2])
def test_an_older_ledger_is_brought_to_today_s_schema_and_keeps_everything(
    ledger_url: str, version: int, tmp_path: Path
) -> None:
    write_ledger(ledger_url, version)
    with Ledger(ledger_url, lambda: 10.0) as ledger:
        spent = ledger.spent("run")
        assert (spent.settled_nanousd, spent.reserved_nanousd, spent.open_calls, spent.calls) == (
            70,
            100,
            1,
            2,
        )
        assert ledger.answer("bought") == '{"said":1}'
        wish = PlannedCall("run", "t", "t:0:0", "x", "bought", 5)
        assert ledger.reserve(wish) == CachedAnswer('{"said":1}')
        grant = ledger.reserve(PlannedCall("run", "t", "t:0:2", "x", "new", 5, account="a"))
        assert isinstance(grant, Reservation)
        ledger.settle(grant, 4, "{}", stated_nanousd=4)
        assert ledger.write_off_stale(1.0) == 1
        assert ledger.spent("run").settled_nanousd == 174
        identity = ledger.identity()
    fresh = f"sqlite:///{tmp_path / 'fresh.db'}"
    open_database(fresh).dispose()
    assert shape(ledger_url) == shape(fresh)
    with Ledger(ledger_url) as ledger:  # once more: nothing is left to do
        assert ledger.identity() == identity
    with raw_engine(ledger_url).connect() as connection:
        found = connection.execute(text("SELECT value FROM meta WHERE key = 'schema'")).scalar()
    assert found == str(SCHEMA_VERSION)


def test_the_ledger_of_the_first_release_is_opened(tmp_path: Path) -> None:
    with tarfile.open(ARCHIVE) as archive:
        archive.extract("w/ledger.sqlite", tmp_path, filter="data")
    url = f"sqlite:///{tmp_path / 'w/ledger.sqlite'}"
    with raw_engine(url).connect() as connection:
        before = connection.execute(text("SELECT count(*), sum(cost_nusd) FROM calls")).one()
        answers = connection.execute(text("SELECT count(*) FROM answers")).scalar()
        assert connection.execute(text("SELECT value FROM meta WHERE key = 'schema'")).scalar() == "2"
    assert answers
    with Ledger(url) as ledger:
        assert len(list(ledger.texts())) == answers
    with raw_engine(url).connect() as connection:
        assert connection.execute(text("SELECT count(*), sum(cost_nusd) FROM calls")).one() == before


def opened(url: str) -> str:
    with Ledger(url) as ledger:
        return ledger.answer("bought") or ""


def test_processes_that_open_an_older_ledger_at_once_upgrade_it_once(ledger_url: str) -> None:
    write_ledger(ledger_url, 1)
    with multiprocessing.get_context("spawn").Pool(4) as pool:
        assert pool.map(opened, [ledger_url] * 8) == ['{"said":1}'] * 8


@pytest.mark.parametrize("version", ["99", "0", "two"])
def test_a_ledger_of_a_later_or_unknown_schema_is_refused_and_left_alone(
    tmp_path: Path, version: str
) -> None:
    url = f"sqlite:///{tmp_path / 'l.db'}"
    write_ledger(url, 2)
    with raw_engine(url).begin() as connection:
        connection.execute(text(f"UPDATE meta SET value = '{version}'"))
    before = shape(url)
    with pytest.raises(LedgerError, match=f"schema version {version}; expected version {SCHEMA_VERSION}"):
        open_database(url)
    assert shape(url) == before
