"""Run the checks of the services a configuration names, in the order they are printed."""

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

from tracemill.flows.config.run_settings import RunSettings
from tracemill.flows.live_checks.live_check import LiveCheck
from tracemill.flows.service_checks.clock import ClockReading, check_clock, compare_clock
from tracemill.flows.service_checks.prefect_server import check_prefect_server
from tracemill.records.errors import ConfigError, LedgerError
from tracemill.records.printable import printable_count

_LEDGER = "ledger.sqlite"
MIN_FREE_BYTES = 500_000_000


def run_service_checks(settings: RunSettings) -> Iterator[LiveCheck]:
    """Yield a check for each service; only configured servers are contacted."""
    clocks: list[ClockReading] = []
    yield check_disk(settings)
    yield check_ledger_of(settings, clocks)
    yield from _account_checks(settings)
    yield from check_prefect_server(clocks)
    yield check_clock(clocks)


def _account_checks(settings: RunSettings) -> Iterator[LiveCheck]:
    """Yield the checks of keys and tokens; none if none is configured."""
    try:
        asked = settings.asked_teachers()
    except ConfigError:  # the check `teachers` says so
        return
    if asked or settings.release.hub is not None:
        from tracemill.flows.service_checks.accounts import check_hub_token, check_keys

        yield from check_keys(settings)
        yield check_hub_token(settings)


def check_disk(settings: RunSettings) -> LiveCheck:
    """Return whether a run has enough disk space: MIN_FREE_BYTES, and twice the largest release.

    A release is written beside the earlier ones before it is renamed.
    """
    root = settings.workspace.expanduser().absolute()
    there = next(path for path in (root, *root.parents) if path.exists())
    free = shutil.disk_usage(there).free
    largest = max(map(_folder_bytes, (root / "releases").glob("*/*/")), default=0)
    needed = max(MIN_FREE_BYTES, 2 * largest)
    said = f"{free / 1e9:,.1f} GB free at {there}"
    if free < needed:
        wanted = f"expected at least {needed / 1e9:,.1f} GB"
        return LiveCheck("disk", "failed", f"{said}; {wanted}; remove old releases or move the workspace")
    return LiveCheck("disk", "ok", said)


def _folder_bytes(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def check_ledger_of(settings: RunSettings, clocks: list[ClockReading]) -> LiveCheck:
    """Return whether the ledger can be read; add the clock of a database server to `clocks`.

    A SQLite file is read without changing it.
    """
    try:
        if settings.ledger_url is None:
            return LiveCheck("ledger", "ok", _read_ledger(settings.workspace.expanduser() / _LEDGER))
        from tracemill.teachers.ledger.ledger import Ledger

        with Ledger(settings.ledger_url) as ledger:
            asked_at = datetime.now(UTC)
            if (theirs := ledger.server_time()) is not None:
                clocks.append(compare_clock("ledger's server", theirs, asked_at))
            return LiveCheck("ledger", "ok", f"{ledger.backend}, opened")
    except LedgerError as error:
        return LiveCheck("ledger", "failed", str(error))


def _read_ledger(path: Path) -> str:
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
