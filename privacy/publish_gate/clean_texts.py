"""Remember texts in which no scanner found anything, so that a later version is scanned where it is new.

A scan that is interrupted leaves what our own rules found clean, which kingfisher has not read yet.

The file holds no text: 16 bytes each, hashed under the workspace's key. It counts for one state of the rules,
of kingfisher and of the values that are searched for; with another it begins anew.
"""

import functools
import hashlib
import json
from collections.abc import Iterable
from pathlib import Path

import tracemill.privacy
from tracemill.privacy.personal.known_identity import KnownValues
from tracemill.records.storage.atomic_files import write_atomically

CLEAN_TEXTS = "clean_texts.keyed"
"""The name of the file in a workspace."""
_SIZE = 16
_BY_RULES = b"by rules "


class CleanTexts:
    """Digests of clean texts, in a file.

    `known` are the values that are searched for beside the rules, `second` is the version of kingfisher, None
    where it does not run.
    """

    def __init__(self, path: Path, key: bytes, known: KnownValues, second: str | None) -> None:
        self._path, self._key = path, key
        patterns = [(each.pattern, each.flags) for each in known.redact.patterns]
        values = (known.secrets, known.names, known.hosts, known.homes, known.redact.values, patterns)
        self._state = self._hash(json.dumps([_source_digest(), second, *values]).encode())
        data = path.read_bytes() if path.is_file() else b""
        held = data[_SIZE:] if data[:_SIZE] == self._state else b""
        self._known = {held[at : at + _SIZE] for at in range(0, len(held), _SIZE)}
        self._seen = set[bytes]()

    def holds(self, mark: bytes) -> bool:
        """Return whether a text was clean before; it stays in the file."""
        digest = self._hash(mark)
        if digest not in self._known:
            return False
        self._seen.add(digest)
        return True

    def add(self, mark: bytes) -> None:
        """Add a clean text."""
        self._seen.add(self._hash(mark))

    def holds_by_rules(self, mark: bytes) -> bool:
        """Return whether our own rules found a text clean in a scan that was interrupted."""
        return self._hash(_BY_RULES + mark) in self._known

    def save(self) -> None:
        """Write the texts that were held or added; others are of no file any more."""
        self._write(self._seen)

    def save_by_rules(self, marks: Iterable[bytes]) -> None:
        """Add the texts that our own rules found clean to all that the file holds, for an interruption."""
        self._write(self._known | self._seen | {self._hash(_BY_RULES + mark) for mark in marks})

    def _write(self, digests: set[bytes]) -> None:
        with write_atomically(self._path, private=True) as pending:
            pending.write_bytes(b"".join([self._state, *sorted(digests)]))

    def _hash(self, data: bytes) -> bytes:
        return hashlib.blake2b(data, key=self._key[:64], digest_size=_SIZE).digest()


@functools.cache
def _source_digest() -> str:
    """Return a digest of the source of all rules."""
    digest = hashlib.blake2b(digest_size=_SIZE)
    [folder] = map(Path, tracemill.privacy.__path__)
    for path in sorted(folder.rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()
