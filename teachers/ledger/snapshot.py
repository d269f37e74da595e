"""Copy a SQLite ledger that can only be read."""

import sqlite3
from contextlib import closing
from pathlib import Path

from tracemill.records.errors import LedgerError


def copy_ledger(path: Path, place: Path) -> None:
    """Copy the ledger at `path` to `place`, also while another process writes to it.

    No file is created beside it. Raises LedgerError if it cannot be read.
    """
    log = path.with_name(f"{path.name}-wal")
    try:
        in_use = log.exists() and log.stat().st_size > 0
        # without a log no process is writing: https://www.sqlite.org/wal.html#read_only_databases
        address = f"{path.resolve().as_uri()}?{'mode=ro' if in_use else 'immutable=1'}"
        with (
            closing(sqlite3.connect(address, uri=True)) as stored,
            closing(sqlite3.connect(place)) as copied,
        ):
            stored.backup(copied)
    except (OSError, sqlite3.Error) as error:
        raise LedgerError(
            f"the ledger {path} cannot be read ({error})", "a ledger that this user may read"
        ) from None
