"""Decide whether a session must be read or redacted again, by versions.

Readers, selection and redaction are told by their versions. A session is read again only where it would be
read otherwise; text that was redacted otherwise is redacted again, on its way out of the workspace.
Redaction may know less than it did (a schedule has fewer variables than a terminal), never more: a value
that was not known then may stand in the text. What is known goes into files as keyed hashes.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tracemill.flows.admission.stage_versions import versions_text
from tracemill.flows.admission.trace_inventory import SELECTION_VERSION
from tracemill.ingesters.registry import reader_versions, source_of
from tracemill.records.identity import canonical_json, digest

if TYPE_CHECKING:
    from tracemill.privacy.core.user_lists import UserList
    from tracemill.privacy.redaction.redactor import Redactor

_FIRST_READERS = dict.fromkeys(("claude_code", "openhands", "swe_gym", "swe_agent", "mini_swe_agent"), 1)
"""The readers of a way of reading that names none."""


@dataclass(frozen=True, slots=True)
class RedactionVersion:
    """A version of redaction: rules, user lists and known values.

    `rules` (their version and the user's lists) must be equal; `known` are hashes of the values searched
    for.
    """

    rules: str
    known: frozenset[str] = frozenset()

    @property
    def id(self) -> str:
        """Return a hash that identifies the version."""
        return digest(self.rules, *sorted(self.known), size=8)

    def covers(self, other: "RedactionVersion") -> bool:
        """Return whether text redacted by this version needs no redaction by the other."""
        return self.rules == other.rules and other.known <= self.known

    @classmethod
    def of(cls, redactor: "Redactor | None", key: bytes) -> "RedactionVersion":
        """Return the version of a redactor; None means text that stays as recorded.

        `key` keeps hashes from being guessed.
        """
        if redactor is None:
            return cls("recorded")
        known = redactor.known
        lists = canonical_json([_listed(known.redact), _listed(known.allow)])
        values = (*known.secrets, *known.names, *known.hosts, *known.homes)
        from tracemill.privacy.redaction.redactor import REDACTION_VERSION

        code = versions_text("redaction", {"redaction": REDACTION_VERSION})
        rules = digest(redactor.rules.version, code, _hash(key, lists))
        return cls(rules, frozenset(_hash(key, value) for value in values))

    def to_json(self) -> dict[str, Any]:
        """Return the version as JSON values."""
        return {"rules": self.rules, "known": sorted(self.known)}

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> "RedactionVersion":
        """Parse a version that `to_json` returned.

        Raises KeyError or TypeError for anything else.
        """
        return cls(value["rules"], frozenset(value["known"]))


@dataclass(frozen=True, slots=True)
class ReadingVersion:
    """The version of the code and settings by which sources are read and redacted.

    `base` is a digest of the settings of selection and format, `readers` has the version of each reader by
    source. `anew`: sources redacted by another version are read again too.
    """

    base: str
    redaction: RedactionVersion
    readers: Mapping[str, int] = field(default_factory=reader_versions)
    anew: bool = False

    @property
    def id(self) -> str:
        """Return a hash that identifies the version."""
        readers = [] if self.readers == _FIRST_READERS else [canonical_json(dict(self.readers))]
        return digest(self.base, self.redaction.id, *readers, size=8)

    def covers(self, today: "ReadingVersion", dialect: str | None) -> bool:
        """Return whether a file of this dialect, read by this version, need not be read again today.

        A file of no known format is tried again once any reader has changed.
        """
        source = source_of(dialect)
        same = (
            self.readers.get(source) == today.readers.get(source) if source else self.readers == today.readers
        )
        return same and self.base == today.base and (not today.anew or self.redaction.covers(today.redaction))

    @classmethod
    def of(cls, redactor: "Redactor | None", chosen: Any, key: bytes, anew: bool = False) -> "ReadingVersion":
        """Return the version of a run.

        `chosen` are the settings of selection and format as JSON values; `key` keeps hashes from being
        guessed.
        """
        selection = versions_text("selection", {"selection": SELECTION_VERSION})
        base = digest(selection, canonical_json(chosen))
        return cls(base, RedactionVersion.of(redactor, key), anew=anew)

    def to_json(self) -> dict[str, Any]:
        """Return the version as JSON values."""
        return {"id": self.id, "base": self.base, "readers": dict(self.readers), **self.redaction.to_json()}

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> "ReadingVersion":
        """Parse a version that `to_json` returned."""
        readers = value.get("readers", _FIRST_READERS)
        return cls(
            value["base"], RedactionVersion.from_json(value), {str(k): int(v) for k, v in readers.items()}
        )


def _listed(entries: "UserList") -> list[list[str]]:
    return [list(entries.values), [pattern.pattern for pattern in entries.patterns]]


def _hash(key: bytes, value: str) -> str:
    data = value.encode("utf-8", "surrogatepass")
    return hashlib.blake2b(data, key=key[:64], digest_size=8).hexdigest()
