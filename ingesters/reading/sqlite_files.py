"""Read SQLite databases of other programs without locking or changing them.

A database is opened as immutable: SQLite then takes no lock and writes nothing beside it. What the program
wrote last stands in a log beside the database (`-wal`), which an immutable database ignores: where there is
one, the two are read from a copy.
"""

import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tracemill.ingesters.reading.json_reading import raise_source_errors
from tracemill.records.errors import SourceError

MAGIC = b"SQLite format 3\0"
_TRIES = 3


@contextmanager
def open_database(path: Path, with_log: bool = True) -> Iterator[sqlite3.Connection]:
    """Open a database for reading; texts are given as bytes.

    Without `with_log` changes in its write-ahead log are ignored, and nothing is copied. Raises SourceError
    where it cannot be read.
    """
    with raise_source_errors(path), _settled(path, with_log) as (place, options):
        connection = sqlite3.connect(f"{place.absolute().as_uri()}?{options}", uri=True)
        connection.text_factory = bytes
        try:
            yield connection
        except sqlite3.Error as error:
            raise SourceError(
                f"{path} is broken SQLite: {error}", "a whole database", "copy it again"
            ) from None
        finally:
            connection.close()


def write_ahead_log(path: Path) -> Path:
    """Return the place of the log that SQLite writes beside a database."""
    return path.with_name(f"{path.name}-wal")


def find_in_database(path: Path, holds: Callable[[sqlite3.Connection], bool]) -> bool:
    """Return whether `holds` is true for a database, or for it with its write-ahead log."""
    with suppress(SourceError), open_database(path, with_log=False) as connection:
        if holds(connection):
            return True
    if not _has_log(path):
        return False
    with open_database(path) as connection:
        return holds(connection)


def _has_log(path: Path) -> bool:
    log = write_ahead_log(path)
    return log.is_file() and log.stat().st_size > 0


@contextmanager
def _settled(path: Path, with_log: bool) -> Iterator[tuple[Path, str]]:
    """Yield a database that does not change while it is read, and how to open it."""
    log = write_ahead_log(path)
    if not with_log or not _has_log(path):
        yield path, "mode=ro&immutable=1"
        return
    with tempfile.TemporaryDirectory(prefix="tracemill-") as folder:
        copy = Path(folder) / "copy.db"
        for _ in range(_TRIES):
            before = _stamps(path, log)
            shutil.copyfile(path, copy)
            shutil.copyfile(log, write_ahead_log(copy))
            if _stamps(path, log) == before:
                break
        else:
            problem = f"{path} changes while it is copied"
            raise SourceError(problem, "a database at rest", "try again when its program is idle or closed")
        yield copy, "mode=rw"


def _stamps(*paths: Path) -> list[tuple[int, int]]:
    return [(status.st_size, status.st_mtime_ns) for status in (path.stat() for path in paths)]
