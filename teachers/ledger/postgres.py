"""Open a ledger on PostgreSQL: driver, password, encryption, one writer at a time.

pg8000 (BSD) handles `postgresql://`. The names of `sslmode` and `sslrootcert` are libpq's
(https://www.postgresql.org/docs/current/libpq-connect.html).
"""

import hashlib
import logging
import os
import ssl
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from getpass import getuser
from importlib.util import find_spec
from typing import Any

from sqlalchemy import create_engine, event
from sqlalchemy.engine import URL, Connection, Engine, make_url
from sqlalchemy.exc import SQLAlchemyError

from tracemill.records.errors import LedgerError
from tracemill.teachers.ledger.database_errors import database_error_reason

DRIVER = "pg8000"
PASSWORD_VARIABLE = "PGPASSWORD"
SSL_MODES = ("disable", "prefer", "require", "verify-full")

_WRITERS = 0x747261636D696C6C


def is_postgres(url: URL) -> bool:
    """Return whether the URL names PostgreSQL, by either of its names."""
    return url.get_backend_name() in ("postgresql", "postgres")


def postgres_place(url: URL) -> str:
    """Return the server and database of a URL, without user, password and options."""
    return URL.create("postgresql", host=url.host, port=url.port, database=url.database).render_as_string()


def open_engine(url: URL, timeout_s: float, environ: Mapping[str, str] = os.environ) -> Engine:
    """Return an engine whose writing transactions are serialised, like SQLite's.

    A transaction then sees everything booked before it, and there are no deadlocks. `timeout_s` bounds the
    wait for the server and for other writers. Defaults come from PGUSER, else the user's name, and
    PGPASSWORD. Raises LedgerError if the driver is missing or an option is unknown.
    """
    driver = url.drivername.partition("+")[2] or DRIVER
    options: dict[str, Any] = {}
    if driver == DRIVER:
        if find_spec(DRIVER) is None:
            raise LedgerError(
                f"a ledger on PostgreSQL needs the package {DRIVER}, which is not installed",
                "the extra `postgres`",
                f"pip install {DRIVER}",
            )
        options = _options(url, timeout_s)
        options["user"] = url.username or environ.get("PGUSER") or getuser()
        options["password"] = url.password or environ.get(PASSWORD_VARIABLE, "")
        url = url.set(query={})
    logging.getLogger("sqlalchemy.pool").setLevel(logging.CRITICAL)  # we report a lost server in one line
    engine = create_engine(
        url.set(drivername=f"postgresql+{driver}"),
        connect_args=options,
        isolation_level="READ COMMITTED",
        pool_pre_ping=True,
        hide_parameters=True,
    )
    _one_writer(engine, timeout_s)
    return engine


@dataclass(frozen=True, slots=True)
class PostgresLock:
    """Locks over all machines that share a database; they end with their holder's connection."""

    ledger_url: str
    timeout_s: float = 60.0

    @contextmanager
    def hold(self, name: str, wait: bool) -> Iterator[bool]:
        """Hold the lock of a name during the block; yields False at once if another process has it.

        With `wait` it waits. Raises LedgerError if the database cannot be used.
        """
        number = int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest(), signed=True)
        engine = open_engine(make_url(self.ledger_url), self.timeout_s)
        function = "pg_advisory_lock" if wait else "pg_try_advisory_lock"
        try:
            with engine.connect().execution_options(
                ledger_read=True, isolation_level="AUTOCOMMIT"
            ) as connection:
                taken = connection.exec_driver_sql(f"SELECT {function}({number})").scalar_one()
                yield taken is not False
        except SQLAlchemyError as error:
            raise LedgerError(
                f"the lock of the workspace cannot be taken: {database_error_reason(error)}",
                "the database of ledger_url",
            ) from error
        finally:
            engine.dispose()


def _options(url: URL, timeout_s: float) -> dict[str, Any]:
    """Return pg8000's arguments for the options of a URL; a `host` option is a socket folder."""
    given = dict(url.query)
    options: dict[str, Any] = {"timeout": timeout_s, "application_name": "tracemill"}
    options["ssl_context"] = _ssl(given.pop("sslmode", "prefer"), given.pop("sslrootcert", None))
    folder = given.pop("host", None)
    if folder is not None:
        options |= {"unix_sock": f"{folder}/.s.PGSQL.{url.port or 5432}", "ssl_context": False}
    if given:
        raise LedgerError(
            f"unknown option {min(given)!r} in the URL of the ledger",
            "host, sslmode or sslrootcert",
            "remove it",
        )
    return options


def _ssl(mode: str | tuple[str, ...], root: str | tuple[str, ...] | None) -> ssl.SSLContext | bool | None:
    """Return pg8000's `ssl_context`: None lets the server choose, False is off, True is on."""
    if mode not in SSL_MODES:
        raise LedgerError("unknown sslmode in the URL of the ledger", f"one of {', '.join(SSL_MODES)}")
    if mode != "verify-full":
        return {"disable": False, "prefer": None, "require": True}[str(mode)]
    try:
        return ssl.create_default_context(cafile=None if root is None else str(root))
    except OSError as error:
        raise LedgerError(
            f"the sslrootcert of the ledger cannot be read ({error.strerror or type(error).__name__})",
            "a file of certificates (PEM)",
        ) from None


def _one_writer(engine: Engine, timeout_s: float) -> None:
    @event.listens_for(engine, "connect")
    def _connect(connection: Any, _record: object) -> None:
        cursor = connection.cursor()
        cursor.execute(f"SET lock_timeout = {int(timeout_s * 1000)}")
        cursor.close()
        connection.commit()

    @event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:
        if not connection.get_execution_options().get("ledger_read"):
            connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({_WRITERS})")
