"""Select sessions by allow and deny lists over what the source itself says of them.

Judged on the text as recorded, before redaction; a session that is left out is written nowhere and
counted by reason. What a session does not say is in no allow list: a list is a promise.
"""

from collections.abc import Collection, Iterator
from datetime import date
from fnmatch import translate

from pydantic import field_validator, model_validator

from tracemill.flows.admission.glob_patterns import matches_any_glob, selection_day, selection_glob_names
from tracemill.records.frozen_model import FrozenModel
from tracemill.records.trace import Outcome, Trace

_PAIRS = (
    ("project", "deny_projects", "projects"),
    ("repository", "deny_repositories", "repositories"),
    ("model", "deny_models", "models"),
)
_LISTS = (*(name for _, deny, allow in _PAIRS for name in (allow, deny)), "outcomes")


class SelectSettings(FrozenModel):
    """Selection of sessions; empty lists take all. Lists hold globs, which ignore case."""

    projects: tuple[str, ...] = ()
    """Only these: name of the project, name of a folder on its path, or a whole path."""
    deny_projects: tuple[str, ...] = ()
    """Never these; here every folder counts that the session worked in."""
    repositories: tuple[str, ...] = ()
    """Only these: `owner/name` or the name alone."""
    deny_repositories: tuple[str, ...] = ()
    """Never these."""
    models: tuple[str, ...] = ()
    """Only sessions in which one of these models acted."""
    deny_models: tuple[str, ...] = ()
    """Never sessions in which one of these acted."""
    outcomes: tuple[Outcome, ...] = ()
    """Only these: resolved, not_resolved, unknown."""
    since: date | None = None
    """First day (UTC) on which a session may have started."""
    until: date | None = None
    """Last day (UTC) on which a session may have started."""

    @field_validator(
        "projects", "deny_projects", "repositories", "deny_repositories", "models", "deny_models"
    )
    @classmethod
    def _said(cls, globs: tuple[str, ...]) -> tuple[str, ...]:
        for glob in globs:
            if not glob.strip():
                raise ValueError("an empty glob; write * for everything")
            if fault := _fault_of(glob):
                raise ValueError(f"the glob {glob!r} {fault}; write [[] for the sign [ itself")
        return globs

    @model_validator(mode="after")
    def _in_order(self) -> "SelectSettings":
        if self.since and self.until and self.since > self.until:
            raise ValueError(f"since {self.since} is later than until {self.until}")
        return self

    def entries(self) -> list[tuple[str, str]]:
        """Return every entry of the lists as (list, entry)."""
        return [(name, entry) for name in _LISTS for entry in getattr(self, name)]

    def matches(self, trace: Trace) -> Iterator[int]:
        """Yield the indices in `entries` of those that match the trace, whether it is selected or not."""
        entries = self.entries()
        names = selection_glob_names(trace) if entries else {}
        yield from (at for at, (name, entry) in enumerate(entries) if matches_any_glob(names[name], [entry]))

    def unmatched(self, matched: Collection[int]) -> list[str]:
        """Return a line for each entry whose index is not among those that matched."""
        entries = enumerate(self.entries())
        return [f"nothing matches {name} = {entry!r}" for at, (name, entry) in entries if at not in matched]

    def reason(self, trace: Trace) -> str | None:
        """Return why the trace is not selected, None if it is."""
        return next((f"not selected: {why}" for why in self._reasons(trace)), None)

    def _reasons(self, trace: Trace) -> Iterator[str]:
        names = selection_glob_names(trace)
        for what, deny, allow in _PAIRS:
            if matches_any_glob(names[deny], getattr(self, deny)):
                yield f"denied {what}"
            if getattr(self, allow) and not matches_any_glob(names[allow], getattr(self, allow)):
                yield f"other {what}"
        if self.outcomes and trace.outcome not in self.outcomes:
            yield "other outcome"
        if self.since or self.until:
            yield from self._by_day(selection_day(trace.started_at))

    def _by_day(self, day: date | None) -> Iterator[str]:
        if day is None:
            yield "no date"
        elif self.since and day < self.since:
            yield "too early"
        elif self.until and day > self.until:
            yield "too late"


def _fault_of(glob: str) -> str:
    """Return the fault of a glob; empty if it can match something."""
    if "(?!)" in translate(glob):
        return "has a range in [] that runs backwards"
    return "has a [ that nothing closes" if _is_open(glob) else ""


def _is_open(glob: str) -> bool:
    """Return whether a `[` is not closed: `fnmatch` then matches it literally.

    A `]` right after it, or after `[!`, belongs to the set.
    """
    at = glob.find("[")
    while at >= 0:
        first = at + 1 + glob.startswith("!", at + 1)
        end = glob.find("]", first + glob.startswith("]", first))
        if end < 0:
            return True
        at = glob.find("[", end)
    return False
