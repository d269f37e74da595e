"""Which sessions are taken at all: allow and deny lists over what the source itself says of them.

Judged on the text as recorded, before redaction; a session that is left out is written nowhere and
counted by reason. What a session does not say is in no allow list: a list is a promise.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, date, datetime
from fnmatch import fnmatchcase

from pydantic import BaseModel, ConfigDict, field_validator, model_validator

from flows.inventory import any_home, any_user
from records.state import Outcome, Trace

Reason = Callable[[Trace], str | None]
"""Why a session is left out; None where it is taken."""

_SIGNS = re.compile(r"[\\/]+")


class SelectSettings(BaseModel):
    """Which sessions are taken; empty lists take all. Lists hold globs, upper and lower case alike."""

    model_config = ConfigDict(frozen=True, extra="forbid")

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
        if not all(glob.strip() for glob in globs):
            raise ValueError("an empty glob; write * for everything")
        return globs

    @model_validator(mode="after")
    def _in_order(self) -> "SelectSettings":
        if self.since and self.until and self.since > self.until:
            raise ValueError(f"since {self.since} is later than until {self.until}")
        return self

    def reason(self, trace: Trace) -> str | None:
        """Why the trace is not selected; None where it is."""
        return next((f"not selected: {why}" for why in self._reasons(trace)), None)

    def _reasons(self, trace: Trace) -> Iterator[str]:
        first, every = project_names(trace), project_names(trace, every=True)
        yield from _listed("project", every, self.deny_projects, first, self.projects)
        owned = _repository_names(trace)
        yield from _listed("repository", owned, self.deny_repositories, owned, self.repositories)
        models = {step.model for context in trace.contexts for step in context.steps if step.model}
        yield from _listed("model", models, self.deny_models, models, self.models)
        if self.outcomes and trace.outcome not in self.outcomes:
            yield "other outcome"
        if self.since or self.until:
            yield from self._by_day(day_of(trace.started_at))

    def _by_day(self, day: date | None) -> Iterator[str]:
        if day is None:
            yield "no date"
        elif self.since and day < self.since:
            yield "too early"
        elif self.until and day > self.until:
            yield "too late"


def _listed(
    what: str, denied: set[str], deny: Sequence[str], allowed: set[str], allow: Sequence[str]
) -> Iterator[str]:
    if _any_matches(denied, deny):
        yield f"denied {what}"
    if allow and not _any_matches(allowed, allow):
        yield f"other {what}"


def _any_matches(names: set[str], globs: Sequence[str]) -> bool:
    patterns = {_plain(spelt) for glob in globs for spelt in (glob, any_home(glob))}
    return any(fnmatchcase(_plain(name), pattern) for name in names for pattern in patterns)


def _plain(text: str) -> str:
    """Upper and lower case alike, one sign between folders, none at the end."""
    return (_SIGNS.sub("/", text.strip()).rstrip("/") or "/").casefold()


def project_names(trace: Trace, every: bool = False) -> set[str]:
    """What a glob for the project is held against: its name, and of the folder the session began in
    (with `every`: of each it worked in) the path, the paths above it and the name of each part. In a
    redacted path the user is left open, as `any_home` leaves it in a glob."""
    found = {trace.project} if trace.project else set()
    places = [step.cwd for context in trace.contexts for step in context.steps if step.cwd]
    for place in set(places if every else places[:1]):
        found |= set(folders_of(any_user(place)))
        found |= {part for part in _SIGNS.split(place) if part}
    return found


def folders_of(place: str) -> list[str]:
    """A folder and those above it, with `/` between their names, the root left out."""
    parts = _SIGNS.sub("/", place).rstrip("/").split("/")
    return ["/".join(parts[:end]) for end in range(1, len(parts) + 1) if parts[end - 1]]


def _repository_names(trace: Trace) -> set[str]:
    return {trace.repository, trace.repository.split("/")[-1]} if trace.repository else set()


def day_of(stamp: str | None) -> date | None:
    """The UTC day of a time stamp; one without a zone is taken as UTC. None for no stamp at all."""
    try:
        moment = datetime.fromisoformat(stamp or "")
    except ValueError:
        return None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC).date()


def first_reason(*reasons: Reason) -> Reason:
    """The first reason of several to leave a trace out."""
    return lambda trace: next((why for reason in reasons if (why := reason(trace))), None)
