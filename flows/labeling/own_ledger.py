"""A ledger for a call without a workspace."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from tracemill.teachers.ledger.ledger import Ledger, sqlite_url


@contextmanager
def build_ledger(place: Path | str | None) -> Iterator[Ledger]:
    """A ledger at a path or database URL; None: one that is gone after the block."""
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
