"""Open a workspace behind a URL: its working copy, and the lock that all machines share."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tracemill.records.errors import ConfigError, WorkspaceError
from tracemill.records.storage.working_copy import is_url, open_working_copy, working_copy_at


@dataclass(frozen=True, slots=True)
class WorkspaceLock:
    """Locks of a workspace in the database of its ledger."""

    ledger_url: str

    @contextmanager
    def __call__(self, name: str, wait: bool) -> Iterator[None]:
        """Hold the lock of a name. Raises WorkspaceError if another process has it and `wait` is False."""
        from tracemill.teachers.ledger.postgres import PostgresLock

        with PostgresLock(self.ledger_url).hold(name, wait) as held:
            if not held:
                place = name.rpartition(" ")[0]
                raise WorkspaceError(
                    f"another tracemill is running on {place}", "one at a time", "wait for it"
                )
            yield


def place_workspace(given: str) -> Path:
    """Return the folder of a workspace; for a URL, the folder of its updated working copy."""
    return open_working_copy(given).root if is_url(given) else Path(given)


def require_shared_ledger(workspace: object, ledger_url: object) -> None:
    """Raise ConfigError for a workspace at a URL without a ledger that other machines can use."""
    if isinstance(workspace, str) and is_url(workspace) and not _is_shared(ledger_url):
        raise ConfigError(
            f"the workspace {workspace} has no ledger on PostgreSQL",
            "one database for its money and its locks, on every machine",
            "set ledger_url",
        )


def lock_workspace(root: Path, ledger_url: str | None) -> None:
    """Lock a working copy through its ledger. Raises ConfigError as `require_shared_ledger`."""
    if (copy := working_copy_at(root)) is not None:
        require_shared_ledger(copy.url, ledger_url)
        copy.lock = WorkspaceLock(str(ledger_url))


def _is_shared(ledger_url: object) -> bool:
    return isinstance(ledger_url, str) and ledger_url.startswith("postgres")
