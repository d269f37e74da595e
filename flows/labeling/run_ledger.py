"""Open the ledger that a run began in, or one for a call without a workspace."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from tracemill.flows.config.run_settings import RunSettings
from tracemill.flows.run_state.run_records import ledger_of
from tracemill.records.errors import LedgerError
from tracemill.records.storage.workspace import Workspace

if TYPE_CHECKING:
    from tracemill.teachers.ledger.ledger import Ledger


def require_ledger(settings: RunSettings, work: Workspace, run_id: str) -> None:
    """Check that a resumed run uses the ledger it began in; no ledger is created.

    Raises LedgerError if the run has begun to ask and its ledger is missing, is another one, or does not
    contain the run: its cap would start again from zero.
    """
    if not settings.asked_teachers() or (wanted := ledger_of(work, run_id)) is None:
        return
    if settings.ledger_url is None and not work.ledger_path.exists():
        raise _lost(run_id, f"its ledger {work.ledger_path} is gone")
    from tracemill.teachers.ledger.ledger import Ledger, sqlite_url

    with Ledger(settings.ledger_url or sqlite_url(work.ledger_path)) as ledger:
        if ledger.identity() != wanted:
            raise _lost(run_id, f"{_place(settings, work)} is not the ledger that it began in")
        if not ledger.has_run(run_id):
            raise _lost(run_id, f"its ledger {_place(settings, work)} no longer holds it")


def _lost(run_id: str, found: str) -> LedgerError:
    return LedgerError(
        f"run {run_id} was interrupted and {found}, so what it spent is not known",
        "the ledger it began in",
        "put that ledger back, or start a new run under a new cap with --fresh",
    )


def _place(settings: RunSettings, work: Workspace) -> str:
    """Return the place of the ledger without a password, for printing."""
    if settings.ledger_url is None:
        return str(work.ledger_path)
    from sqlalchemy.engine import make_url

    from tracemill.teachers.ledger.postgres import is_postgres, postgres_place

    url = make_url(settings.ledger_url)
    return postgres_place(url) if is_postgres(url) else url.render_as_string()


@contextmanager
def build_ledger(place: Path | str | None) -> "Iterator[Ledger]":
    """Open a ledger at a path or database URL; None for a temporary one."""
    from tracemill.teachers.ledger.ledger import Ledger, sqlite_url

    if place is None:
        with (
            TemporaryDirectory(prefix="tracemill-") as folder,
            Ledger(sqlite_url(Path(folder) / "l")) as ledger,
        ):
            yield ledger
        return
    text = str(place)
    with Ledger(text if "://" in text else sqlite_url(Path(text))) as ledger:
        yield ledger


@contextmanager
def open_stored_ledger(settings: RunSettings, work: Workspace) -> "Iterator[Ledger]":
    """Open the ledger of the workspace without writing to the workspace.

    Opening a ledger writes to it. So this yields an empty temporary ledger if there is none yet, and a copy
    if the workspace is read-only.
    """
    if settings.ledger_url is None and not (work.ledger_path.exists() and work.is_writable()):
        with TemporaryDirectory(prefix="tracemill-") as folder:
            place = Path(folder) / "ledger.sqlite"
            if work.ledger_path.exists():
                from tracemill.teachers.ledger.snapshot import copy_ledger

                copy_ledger(work.ledger_path, place)
            with build_ledger(place) as ledger:
                yield ledger
        return
    with build_ledger(settings.ledger_url or work.ledger_path) as ledger:
        yield ledger
