"""Check the ledger: a SQLite file, read without changing it, or a database by its URL."""

import sqlite3
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

from tracemill.flows.config.run_settings import RunSettings
from tracemill.flows.live_checks.live_check import LiveCheck
from tracemill.flows.service_checks.clock import ClockReading, compare_clock
from tracemill.records.errors import LedgerError
from tracemill.records.printable import printable_count

_FILE = "ledger.sqlite"


def check_ledger_of(settings: RunSettings, clocks: list[ClockReading]) -> LiveCheck:
    """Return whether the ledger can be read; add the clock of a database server to `clocks`."""
    try:
        if settings.ledger_url is None:
            return LiveCheck("ledger", "ok", _read_file(settings.workspace.expanduser() / _FILE))
        from tracemill.teachers.ledger.ledger import Ledger

        with Ledger(settings.ledger_url) as ledger:
            asked_at = datetime.now(UTC)
            if (theirs := ledger.server_time()) is not None:
                clocks.append(compare_clock("ledger's server", theirs, asked_at))
            return LiveCheck("ledger", "ok", f"{ledger.backend}, opened")
    except LedgerError as error:
        return LiveCheck("ledger", "failed", str(error))


def _read_file(path: Path) -> str:
    """Return a summary of the SQLite file. Raises LedgerError if it is damaged."""
    if not path.exists():
        return "a SQLite file in the workspace, made by the first run with teachers"
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as connection:
            [(found,), *_] = connection.execute("PRAGMA quick_check(1)")
            (answers,) = connection.execute("SELECT count(*) FROM answers").fetchone()
    except sqlite3.Error as error:
        found, answers = str(error), 0
    if found != "ok":
        raise LedgerError(f"{path} is damaged ({found})", "a SQLite file", "restore it from the last backup")
    return f"{path} ({printable_count(answers, 'answer')}), not damaged"
