"""How sessions are read and redacted today: what must be equal for them not to be gone through again.

Ingesters and redaction are told by their own code, so that no change of theirs is forgotten. A session is
read again only where it would be read otherwise; text that was redacted otherwise is redacted again, on
its way out of the workspace. Redaction may know less than it did (a schedule has fewer variables than a
terminal), never more: a value that was not known then may stand in the text. What is known goes into
files as keyed hashes.
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

_READERS = ("harnesses", "ingesters", "records")
_REDACTION = ("privacy",)
_CHOOSERS = (
    "flows.inventory",
    "flows.selection",
    "flows.shard_ingest",
    "flows.sieve",
    "flows.source_marks",
    "privacy.projects",
)


@dataclass(frozen=True, slots=True)
class RedactionVersion:
    """One way of redacting. `rules` (code, version and the user's lists) must be equal; `known` are hashes
    of the values looked for."""

    rules: str
    known: frozenset[str] = frozenset()

    @property
    def id(self) -> str:
        """The name of this way of redacting."""
        return digest(self.rules, *sorted(self.known), size=8)

    def covers(self, other: "RedactionVersion") -> bool:
        """Whether what was redacted this way needs no second redaction the other way."""
        return self.rules == other.rules and other.known <= self.known

    @classmethod
    def of(cls, redactor: "Redactor | None", key: bytes) -> "RedactionVersion":
        """The way of a redactor; `key` keeps hashes from being guessed. Without a redactor text stays as
        recorded."""
        if redactor is None:
            return cls("recorded")
        known = redactor.known
        lists = canonical_json([_listed(known.redact), _listed(known.allow)])
        values = (*known.secrets, *known.names, *known.hosts, *known.homes)
        rules = digest(redactor.rules.version, code_digest(_REDACTION, ()), _hash(key, lists))
        return cls(rules, frozenset(_hash(key, value) for value in values))

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return {"rules": self.rules, "known": sorted(self.known)}

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> "RedactionVersion":
        """The inverse of `to_json`. Raises KeyError or TypeError for anything else."""
        return cls(value["rules"], frozenset(value["known"]))


@dataclass(frozen=True, slots=True)
class ReadingVersion:
    """One way of reading, and of redacting what is read. `anew`: what was redacted otherwise is to be read
    again too."""

    base: str
    redaction: RedactionVersion
    anew: bool = False

    @property
    def id(self) -> str:
        """The name of this way of reading."""
        return digest(self.base, self.redaction.id, size=8)

    def covers(self, today: "ReadingVersion") -> bool:
        """Whether what was read this way needs no second reading today."""
        return self.base == today.base and (not today.anew or self.redaction.covers(today.redaction))

    @classmethod
    def of(cls, redactor: "Redactor | None", chosen: Any, key: bytes, anew: bool = False) -> "ReadingVersion":
        """The way of a run. `chosen` is what selects and forces, as JSON values; `key` keeps hashes from
        being guessed."""
        base = digest(code_digest(_READERS, _CHOOSERS), canonical_json(chosen))
        return cls(base, RedactionVersion.of(redactor, key), anew)

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return {"id": self.id, "base": self.base, **self.redaction.to_json()}

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> "ReadingVersion":
        """The inverse of `to_json`."""
        return cls(value["base"], RedactionVersion.from_json(value))


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
