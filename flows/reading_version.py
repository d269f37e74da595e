"""How sessions are read today: what must be equal for a session that was read not to be read again.

Ingesters and redaction are told by their own code, so that no change of theirs is forgotten. Redaction
may know less than it did (a schedule has fewer variables than a terminal), never more: a value that was
not known when a session was read may stand in it. What is known goes into the file as keyed hashes.
"""

import hashlib
from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from records.identity import canonical_json, digest

if TYPE_CHECKING:
    from privacy.lists import Listed
    from privacy.redact import Redactor

_READERS = ("harnesses", "ingesters", "privacy", "records")
_CHOOSERS = (
    "flows.inventory",
    "flows.list_scope",
    "flows.selection",
    "flows.shard_ingest",
    "flows.sieve",
    "flows.source_marks",
)


@dataclass(frozen=True, slots=True)
class ReadingVersion:
    """One way of reading. `base` must be equal; `known` are hashes of what redaction knew."""

    base: str
    known: frozenset[str]

    @property
    def id(self) -> str:
        """The name of this way of reading."""
        return digest(self.base, *sorted(self.known), size=8)

    def covers(self, other: "ReadingVersion") -> bool:
        """Whether what was read this way needs no second reading the other way."""
        return self.base == other.base and other.known <= self.known

    @classmethod
    def of(cls, redactor: "Redactor | None", chosen: Any, key: bytes) -> "ReadingVersion":
        """The way of a run. `chosen` is what selects and forces, as JSON values; `key` keeps hashes from
        being guessed. Without a redactor text stays as recorded."""
        known = redactor.known if redactor is not None else None
        lists = [_listed(known.redact), _listed(known.allow)] if known else ["recorded"]
        values = (*known.secrets, *known.names, *known.hosts, *known.homes) if known else ()
        base = digest(
            code_digest(_READERS, _CHOOSERS), _hash(key, canonical_json(lists)), canonical_json(chosen)
        )
        return cls(base, frozenset(_hash(key, value) for value in values))

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return {"id": self.id, "base": self.base, "known": sorted(self.known)}

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> "ReadingVersion":
        """The inverse of `to_json`."""
        return cls(value["base"], frozenset(value["known"]))


def _listed(entries: "Listed") -> list[list[str]]:
    return [list(entries.values), [pattern.pattern for pattern in entries.patterns]]


def _hash(key: bytes, value: str) -> str:
    data = value.encode("utf-8", "surrogatepass")
    return hashlib.blake2b(data, key=key[:64], digest_size=8).hexdigest()


@lru_cache
def code_digest(packages: tuple[str, ...], modules: tuple[str, ...]) -> str:
    """A digest of the code of packages and single modules: of one version of what they do."""
    files = [path for name in packages for path in sorted(_file(name).parent.rglob("*.py"))]
    state = hashlib.blake2b(digest_size=16)
    for path in (*files, *map(_file, modules)):
        state.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return state.hexdigest()


def _file(module: str) -> Path:
    spec = find_spec(module)
    assert spec is not None, module
    return Path(spec.origin or "")
