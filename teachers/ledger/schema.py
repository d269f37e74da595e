"""Define the ledger's tables and open its database: SQLite or PostgreSQL.

Columns that end in `_nusd` are integers of nano-USD.
"""

import secrets
import sqlite3
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from sqlalchemy import (
    BigInteger,
    Column,
    Float,
    Index,
    Insert,
    Integer,
    MetaData,
    Table,
    Text,
    event,
    literal_column,
)
from sqlalchemy import create_engine as sqlalchemy_engine
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine import URL, Connection, Engine, make_url
from sqlalchemy.exc import ArgumentError, NoSuchModuleError, SQLAlchemyError
from tenacity import Retrying, retry_if_exception, stop_after_delay, wait_random

from tracemill.records.errors import LedgerError
from tracemill.records.storage.atomic_files import make_private_file
from tracemill.teachers.ledger.database_errors import database_error_reason
from tracemill.teachers.ledger.postgres import PASSWORD_VARIABLE, is_postgres, open_engine, postgres_place
from tracemill.teachers.ledger.upgrade import upgrade_ledger

SCHEMA_VERSION = 3
IDENTITY = "ledger"
BUSY_TIMEOUT_S = 60.0

IS_OPEN = literal_column("state") == literal_column("'open'")
"""A literal, not a parameter: otherwise neither database uses the indexes of open calls."""

IN_DOUBT = literal_column("state IN ('open', 'unproven', 'written_off') AND account <> ''")
"""Calls of unknown price whose account can be read."""

PAID_IN_VAIN = literal_column("cost_nusd > 0 AND outcome IN ('empty', 'malformed')")
"""Unreadable answers that were paid, or may have been."""

metadata = MetaData()
meta = Table("meta", metadata, Column("key", Text, primary_key=True), Column("value", Text))

runs = Table(
    "runs",
    metadata,
    Column("run_id", Text, primary_key=True),
    Column("max_total_nusd", BigInteger, nullable=False),
    Column("max_day_nusd", BigInteger),
    Column("max_trace_nusd", BigInteger),
    Column("opened_at", Float, nullable=False),
)

budgets = Table(
    "budgets",
    metadata,
    Column("scope", Text, primary_key=True),
    Column("settled_nusd", BigInteger, nullable=False, default=0),
    Column("reserved_nusd", BigInteger, nullable=False, default=0),
)

buyers = Table(
    "buyers",
    metadata,
    Column("buyer", Text, primary_key=True),
    Column("host", Text, nullable=False),
    Column("pid", BigInteger, nullable=False),
    Column("started", Text, nullable=False),
    Column("seen_at", Float, nullable=False),
)

calls = Table(
    "calls",
    metadata,
    Column("id", Integer().with_variant(BigInteger, "postgresql"), primary_key=True, autoincrement=True),
    Column("run_id", Text, nullable=False),
    Column("trace_id", Text, nullable=False),
    Column("step_id", Text, nullable=False),
    Column("teacher", Text, nullable=False),
    Column("request_key", Text, nullable=False),
    Column("buyer", Text, nullable=False),
    Column("account", Text, nullable=False, server_default=""),
    Column("day", Text, nullable=False),
    Column("amount_nusd", BigInteger, nullable=False),
    Column("cost_nusd", BigInteger),
    Column("state", Text, nullable=False),
    Column("stated_nusd", BigInteger, nullable=False, server_default="0"),
    Column("bill_id", Text, nullable=False, server_default=""),
    Column("outcome", Text),
    Column("opened_at", Float, nullable=False),
    Column("closed_at", Float),
    Index("calls_by_run_state", "run_id", "state"),
    Index("calls_open_by_key", "request_key", sqlite_where=IS_OPEN, postgresql_where=IS_OPEN),
    Index("calls_open_by_time", "opened_at", sqlite_where=IS_OPEN, postgresql_where=IS_OPEN),
    Index("calls_paid_in_vain", "request_key", sqlite_where=PAID_IN_VAIN, postgresql_where=PAID_IN_VAIN),
    Index("calls_in_doubt", "account", sqlite_where=IN_DOUBT, postgresql_where=IN_DOUBT),
)

answers = Table(
    "answers",
    metadata,
    Column("request_key", Text, primary_key=True),
    Column("reply", Text, nullable=False),
    Column("cost_nusd", BigInteger, nullable=False),
    Column("created_at", Float, nullable=False),
)

accounts = Table(
    "accounts",
    metadata,
    Column("account", Text, primary_key=True),
    Column("usage_nusd", BigInteger, nullable=False),
    Column("last_call", BigInteger, nullable=False),
)


@cache
def _ignoring(dialect: str, table: Table) -> Insert:
    insert = postgresql.insert if dialect == "postgresql" else sqlite.insert
    return insert(table).on_conflict_do_nothing()


def insert_or_ignore(connection: Connection, table: Table, values: dict[str, Any]) -> None:
    """Insert a row unless its primary key exists."""
    connection.execute(_ignoring(connection.dialect.name, table), values)


def _is_busy(error: BaseException) -> bool:
    return getattr(error, "sqlite_errorname", "").startswith("SQLITE_BUSY")


def _use_log(connection: sqlite3.Connection) -> None:
    """Switch to the write-ahead log.

    If two processes do so at once, SQLite reports a deadlock whatever the busy timeout
    (https://www.sqlite.org/c3ref/busy_handler.html).
    """
    pause = wait_random(0.01, 0.1)
    for attempt in Retrying(
        retry=retry_if_exception(_is_busy), stop=stop_after_delay(BUSY_TIMEOUT_S), wait=pause, reraise=True
    ):
        with attempt:
            connection.execute("PRAGMA journal_mode = WAL")


def _prepare_sqlite(engine: Engine) -> None:
    """Queue writers at BEGIN IMMEDIATE and make every commit durable.

    An intent lost in a power cut would be spent money without a record.
    """

    @event.listens_for(engine, "connect")
    def _connect(connection: sqlite3.Connection, _record: object) -> None:
        connection.isolation_level = None
        connection.execute(f"PRAGMA busy_timeout = {int(BUSY_TIMEOUT_S * 1000)}")
        _use_log(connection)
        connection.execute("PRAGMA synchronous = FULL")

    @event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:
        options = connection.get_execution_options()
        mode = "DEFERRED" if options.get("ledger_read") else "IMMEDIATE"
        connection.exec_driver_sql(f"BEGIN {mode}")


def _engine(url: URL) -> Engine:
    if is_postgres(url):
        return open_engine(url, BUSY_TIMEOUT_S)
    if url.get_backend_name() == "sqlite":
        if url.database and url.database != ":memory:":
            _make_file(Path(url.database))
        engine = sqlalchemy_engine(url, connect_args={"timeout": BUSY_TIMEOUT_S}, hide_parameters=True)
        _prepare_sqlite(engine)
        return engine
    raise LedgerError(
        f"a ledger of the kind {url.get_backend_name()!r}", "a sqlite or postgresql URL", "change the URL"
    )


def _make_file(path: Path) -> None:
    """Create the file for its owner alone; SQLite gives its log the same mode."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with suppress(OSError):  # SQLite's own error is clearer
        make_private_file(path)


def _create(engine: Engine) -> None:
    with engine.begin() as connection:
        upgrade_ledger(connection, SCHEMA_VERSION)
        metadata.create_all(connection)
        insert_or_ignore(connection, meta, {"key": "schema", "value": str(SCHEMA_VERSION)})
        insert_or_ignore(connection, meta, {"key": IDENTITY, "value": secrets.token_hex(8)})


def open_database(url: str | URL) -> Engine:
    """Open the database, create missing tables and upgrade those of an earlier version.

    Raises LedgerError if it cannot be opened or was written by a later version; the message names the
    place and never a password.
    """
    try:
        place = make_url(url)
        engine = _engine(place)
    except (ArgumentError, NoSuchModuleError, ImportError, ValueError) as error:
        raise LedgerError(
            f"the ledger URL cannot be used ({type(error).__name__})", "for example sqlite:////data/ledger.db"
        ) from None
    except OSError as error:
        raise LedgerError(
            f"the folder of the ledger cannot be made ({error.strerror})", "a writable folder"
        ) from None
    try:
        _create(engine)
    except (SQLAlchemyError, OSError) as error:
        engine.dispose()
        raise _unopened(place, error) from None
    except LedgerError:
        engine.dispose()
        raise
    return engine


def _unopened(place: URL, error: SQLAlchemyError | OSError) -> LedgerError:
    if is_postgres(place):
        return LedgerError(
            f"the ledger at {postgres_place(place)} cannot be opened: {database_error_reason(error)}",
            "a server that answers, a user that may make tables",
            f"check the URL and {PASSWORD_VARIABLE}",
        )
    return LedgerError(
        f"the ledger at {place.render_as_string()} cannot be opened: {database_error_reason(error)}",
        "a writable database",
        "check the path and its permissions",
    )
