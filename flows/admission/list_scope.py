"""Say under which of the user's lists a text was redacted, by keyed digests of their entries.

They go into the notes of a trace when it is redacted and into a consent when it is given, so that text
which was redacted under other lists than the accepted ones is known.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from tracemill.privacy.core.placeholder_keys import digest_with_placeholder_key

if TYPE_CHECKING:
    from tracemill.flows.admission.privacy_settings import PrivacySettings

_ALLOWED, _LISTED = "allowed:", "listed:"


@dataclass(frozen=True, slots=True)
class ListScope:
    """The user's lists of a redaction, as digests: texts allowed through and texts redacted in addition.

    Secrets of `.env` files are among the latter.
    """

    PREFIXES: ClassVar[tuple[str, ...]] = (_ALLOWED, _LISTED)
    """What its notes begin with."""
    allowed: frozenset[str] = frozenset()
    listed: frozenset[str] = frozenset()

    @classmethod
    def of(cls, lists: "PrivacySettings", key: bytes) -> "ListScope":
        """Return the scope of `[privacy]`, under the key of a workspace.

        Raises ConfigError if a `.env` file cannot be read.
        """
        from tracemill.privacy.core.env_files import (
            read_env_file,  # it loads much that a run without such files never needs
        )

        secrets = (value for path in lists.env_files for value in read_env_file(path).values)
        return cls(_digests(lists.allow, key), _digests((*lists.redact, *secrets), key))

    @classmethod
    def of_notes(cls, notes: Mapping[str, int]) -> "ListScope":
        """Return the scope stored in the notes of a trace."""
        return cls(_behind(_ALLOWED, notes), _behind(_LISTED, notes))

    def notes(self) -> dict[str, int]:
        """Return the scope as notes of a trace."""
        allowed = {f"{_ALLOWED}{digest}": 1 for digest in sorted(self.allowed)}
        return allowed | {f"{_LISTED}{digest}": 1 for digest in sorted(self.listed)}

    def within(self, accepted: "ListScope") -> bool:
        """Return whether these lists allow nothing through that the accepted ones did not."""
        return self.allowed <= accepted.allowed and accepted.listed <= self.listed

    def then(self, later: "ListScope") -> "ListScope":
        """Return the scope of a text that was redacted under these lists and then again under later ones."""
        return ListScope(self.allowed & later.allowed, self.listed | later.listed)

    def to_json(self) -> dict[str, list[str]]:
        """Return the scope as JSON values."""
        return {"allowed": sorted(self.allowed), "listed": sorted(self.listed)}

    @classmethod
    def from_json(cls, value: Mapping[str, Sequence[str]]) -> "ListScope":
        """Parse a scope that `to_json` returned.

        Raises KeyError or TypeError for anything else.
        """
        return cls(frozenset(value["allowed"]), frozenset(value["listed"]))


NO_LISTS = ListScope()


def widest_list_scope(scopes: Iterable[ListScope]) -> ListScope:
    """Return a scope that allows through everything that any of these does."""
    every = list(scopes)
    if not every:
        return NO_LISTS
    return ListScope(
        frozenset[str]().union(*(scope.allowed for scope in every)),
        every[0].listed.intersection(*(scope.listed for scope in every)),
    )


def _digests(entries: Iterable[str], key: bytes) -> frozenset[str]:
    return frozenset(digest_with_placeholder_key(key, "lists", entry)[:16] for entry in entries)


def _behind(prefix: str, notes: Mapping[str, int]) -> frozenset[str]:
    return frozenset(name.removeprefix(prefix) for name in notes if name.startswith(prefix))
