"""Which traces stay out of a workspace, and what the entries of a selection are held against."""

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from flows.inventory import any_home, any_user
from records.state import Trace

if TYPE_CHECKING:
    from flows.selection import SelectSettings

Reason = Callable[[Trace], str | None]
"""Why a session is left out; None where it is taken."""

FORGOTTEN = "forgotten"
"""The reason that a session stays out which was forgotten."""
FORGOTTEN_FILE = "forgotten.json"
"""Where a workspace says what was."""

_SIGNS = re.compile(r"[\\/]+")


@dataclass(frozen=True, slots=True)
class Sieve:
    """What stays out of a workspace or a run: what was forgotten there, and what is not selected."""

    forgotten: Reason
    select: "SelectSettings | None"

    def reason(self, trace: Trace, matched: Counter[int]) -> str | None:
        """Why the trace is left out, None where it is taken; `matched` learns which entries of the selection
        fit it."""
        if self.select is not None:
            matched.update(self.select.matches(trace))
        return self.forgotten(trace) or (self.select.reason(trace) if self.select else None)


def names_of(trace: Trace) -> dict[str, set[str]]:
    """What the entries of each list are held against."""
    owned = _repository_names(trace)
    models = {step.model for context in trace.contexts for step in context.steps if step.model}
    return {
        "projects": project_names(trace),
        "deny_projects": project_names(trace, every=True),
        "repositories": owned,
        "deny_repositories": owned,
        "models": models,
        "deny_models": models,
        "outcomes": {trace.outcome},
    }


def any_matches(names: set[str], globs: Sequence[str]) -> bool:
    """Whether a glob fits one of the names, upper and lower case alike."""
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
