"""Cache compiled Hyperscan databases between runs: compiling takes seconds.

Only what is the same on every machine is cached, never a value of the user's. Files lie in
`$XDG_CACHE_HOME/tracemill`, by default `~/.cache/tracemill`, named by purpose and by a hash of the
expressions and of Hyperscan's version. A file is read only where nobody else could have written it, since a
foreign one could find less.
https://specifications.freedesktop.org/basedir-spec/latest/
"""

import hashlib
import os
import platform
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import hyperscan

from tracemill.records.errors import TracemillError
from tracemill.records.storage.atomic_files import make_private_folder, write_atomically

_NAME = "redaction-{}-{}.hyperscan"
_DIGEST_BYTES = 32
_MODE = hyperscan.HS_MODE_BLOCK


def hyperscan_cache_folder() -> Path:
    """Return the user's cache folder; raise RuntimeError where the user has no home folder."""
    given = Path(os.environ.get("XDG_CACHE_HOME", ""))
    return (given if given.is_absolute() else Path.home() / ".cache") / "tracemill"


def compile_hyperscan_database(expressions: Sequence[bytes], flags: Sequence[int]) -> hyperscan.Database:
    """Compile a database of the expressions; the id of a match is the expression's index."""
    database = hyperscan.Database(mode=_MODE)
    database.compile(expressions=list(expressions), ids=list(range(len(expressions))), flags=list(flags))
    return database


def load_cached_hyperscan(
    purpose: str, expressions: Sequence[bytes], flags: Sequence[int]
) -> hyperscan.Database:
    """Return the database from the user's cache folder, else compile it and write it there.

    One database is cached for each purpose. Where the folder cannot be written, the database is compiled in
    every run.
    """
    key = _key(expressions, flags)
    try:
        path = hyperscan_cache_folder() / _NAME.format(purpose, key.hex()[:32])
    except RuntimeError:
        return compile_hyperscan_database(expressions, flags)
    database = _read(path, key)
    if database is None:
        database = compile_hyperscan_database(expressions, flags)
        with suppress(TracemillError, OSError):
            _write(path, purpose, key, hyperscan.dumpb(database))
    return database


def _key(expressions: Sequence[bytes], flags: Sequence[int]) -> bytes:
    version = hyperscan.__version__  # pyright: ignore[reportAttributeAccessIssue]  (its stubs lack it)
    parts = (version, platform.machine(), list(expressions), list(flags))
    return hashlib.blake2b(repr(parts).encode(), digest_size=_DIGEST_BYTES).digest()


def _read(path: Path, key: bytes) -> hyperscan.Database | None:
    """Return the database in a file; None where it is missing, not only this user's, or another one."""
    try:
        with path.open("rb") as stream:
            status = os.fstat(stream.fileno())
            if status.st_uid != os.getuid() or status.st_mode & 0o077:
                return None
            data = stream.read()
        digest, data = data[:_DIGEST_BYTES], data[_DIGEST_BYTES:]
        if digest != _digest(key, data):
            return None
        database = hyperscan.loadb(data, _MODE)
        database.scratch = hyperscan.Scratch(database)
    except (OSError, hyperscan.error):
        return None
    return database


def _write(path: Path, purpose: str, key: bytes, data: bytes) -> None:
    """Write the database, and remove other ones of the same purpose."""
    make_private_folder(path.parent)
    with write_atomically(path, private=True) as temporary:
        temporary.write_bytes(_digest(key, data) + data)
    for other in path.parent.glob(_NAME.format(purpose, "*")):
        if other.name != path.name:
            other.unlink(missing_ok=True)


def _digest(key: bytes, data: bytes) -> bytes:
    return hashlib.blake2b(data, key=key, digest_size=_DIGEST_BYTES).digest()
