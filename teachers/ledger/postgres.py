"""A ledger on PostgreSQL: driver, password, encryption, and writers one at a time.

`postgresql://` is spoken by pg8000 (BSD). The names of `sslmode` and `sslrootcert` are libpq's
(https://www.postgresql.org/docs/current/libpq-connect.html).
"""

import logging
import os
import ssl
from collections.abc import Mapping
from getpass import getuser
from importlib.util import find_spec
from typing import Any

from sqlalchemy import create_engine, event
from sqlalchemy.engine import URL, Connection, Engine

from tracemill.records.errors import LedgerError

DRIVER = "pg8000"
PASSWORD_VARIABLE = "PGPASSWORD"
SSL_MODES = ("disable", "prefer", "require", "verify-full")

_WRITERS = 0x747261636D696C6C


def is_postgres(url: URL) -> bool:
    """Whether the URL names PostgreSQL, by either of its names."""
    return url.get_backend_name() in ("postgresql", "postgres")


def postgres_place(url: URL) -> str:
    """The server and database of a URL, without user, password and options."""
    return URL.create("postgresql", host=url.host, port=url.port, database=url.database).render_as_string()


def open_engine(url: URL, timeout_s: float, environ: Mapping[str, str] = os.environ) -> Engine:
    """An engine whose writing transactions follow one another, as those of SQLite do: a batch sees all
    that was booked before it, and no two wait for each other in a ring.

    `timeout_s` bounds the wait for the server and for other writers. What the URL leaves out is taken from
    PGUSER, else the name of the user, and from PGPASSWORD. Raises LedgerError where the driver is
    missing or an option is unknown.
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
    logging.getLogger("sqlalchemy.pool").setLevel(logging.CRITICAL)  # a lost server is one line, said by us
    engine = create_engine(
        url.set(drivername=f"postgresql+{driver}"),
        connect_args=options,
        isolation_level="READ COMMITTED",
        pool_pre_ping=True,
        hide_parameters=True,
    )
    _one_writer(engine, timeout_s)
    return engine


def _options(url: URL, timeout_s: float) -> dict[str, Any]:
    """What pg8000 is given for the options of a URL. A `host` that is a folder is that of a socket."""
    given = dict(url.query)
    options: dict[str, Any] = {"timeout": timeout_s, "application_name": "tracemill"}
    options["ssl_context"] = _ssl(given.pop("sslmode", "prefer"), given.pop("sslrootcert", None))
    folder = given.pop("host", None)
    if folder is not None:
        options |= {"unix_sock": f"{folder}/.s.PGSQL.{url.port or 5432}", "ssl_context": False}
    if given:
        raise LedgerError(
            f"the option {min(given)!r} in the URL of the ledger", "host, sslmode or sslrootcert", "remove it"
        )
    return options


def _ssl(mode: str | tuple[str, ...], root: str | tuple[str, ...] | None) -> ssl.SSLContext | bool | None:
    """None lets the server choose, and False and True are without and with encryption: pg8000's own."""
    if mode not in SSL_MODES:
        raise LedgerError(
            "an sslmode that is not known, in the URL of the ledger", f"one of {', '.join(SSL_MODES)}"
        )
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
