"""The files that are read with a source though they lie beside it, and may come or change later."""

import hashlib
from pathlib import Path

from tracemill.ingesters.common.eval_verdicts import existing_verdict_file
from tracemill.ingesters.registry import format_of


def digest_companion_files(path: Path, dialect: str | None) -> str:
    """A digest of size and time of what lies beside a source now; empty where nothing does."""
    found = []
    form = format_of(dialect)
    for place in form.beside(path) if form else ():
        try:
            file = existing_verdict_file(place)
            if file is not None:
                status = file.stat()
                found.append(f"{file.name} {status.st_size} {status.st_mtime_ns}")
        except OSError:
            continue
    return hashlib.blake2b("\0".join(found).encode(), digest_size=8).hexdigest() if found else ""
