"""Digest the files that are read together with a source, which may come or change later."""

import hashlib
from contextlib import suppress
from pathlib import Path

from tracemill.ingesters.registry import format_of


def digest_companion_files(path: Path, dialect: str | None) -> str:
    """Return a digest of name, size and time of the files beside a source, "" if there are none."""
    stamps = []
    form = format_of(dialect)
    for place in form.beside(path) if form else ():
        with suppress(OSError):
            status = Path(place).stat()
            stamps.append(f"{Path(place).name} {status.st_size} {status.st_mtime_ns}")
    return hashlib.blake2b("\0".join(stamps).encode(), digest_size=8).hexdigest() if stamps else ""
