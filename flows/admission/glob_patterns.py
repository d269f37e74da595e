"""Match the names of a trace with the globs of a selection."""

import re
from collections.abc import Sequence
from datetime import UTC, date, datetime
from fnmatch import fnmatchcase

from tracemill.flows.admission.trace_inventory import mask_home_folder, mask_user_placeholder
from tracemill.records.trace import Trace

_SIGNS = re.compile(r"[\\/]+")


def selection_glob_names(trace: Trace) -> dict[str, set[str]]:
    """Return the names that the entries of each list are matched with."""
    owned = _repository_names(trace)
    models = {step.model for context in trace.contexts for step in context.steps if step.model}
    return {
        "projects": glob_project_names(trace),
        "deny_projects": glob_project_names(trace, every=True),
        "repositories": owned,
        "deny_repositories": owned,
        "models": models,
        "deny_models": models,
        "outcomes": {trace.outcome},
    }


def matches_any_glob(names: set[str], globs: Sequence[str]) -> bool:
    """Return whether a glob matches one of the names, ignoring case."""
    patterns = {_plain(spelt) for glob in globs for spelt in (glob, mask_home_folder(glob))}
    return any(fnmatchcase(_plain(name), pattern) for name in names for pattern in patterns)


def _plain(text: str) -> str:
    """Return the text in lower case, with `/` as separator and no separator at its end."""
    return (_SIGNS.sub("/", text.strip()).rstrip("/") or "/").casefold()


def glob_project_names(trace: Trace, every: bool = False) -> set[str]:
    """Return the names that a glob for the project is matched with.

    They are the project's name, and of the session's first folder (with `every`: of each folder it worked
    in) the path, the paths above it and the name of each part. In a redacted path the user's name is
    replaced, as `mask_home_folder` does in a glob.
    """
    found = {trace.project} if trace.project else set()
    places = [step.cwd for context in trace.contexts for step in context.steps if step.cwd]
    for place in set(places if every else places[:1]):
        found |= set(glob_folder_names(mask_user_placeholder(place)))
        found |= {part for part in _SIGNS.split(place) if part}
    return found


def glob_folder_names(place: str) -> list[str]:
    """Return a folder and its parents, with `/` between their names, without the root."""
    parts = _SIGNS.sub("/", place).rstrip("/").split("/")
    return ["/".join(parts[:end]) for end in range(1, len(parts) + 1) if parts[end - 1]]


def _repository_names(trace: Trace) -> set[str]:
    return {trace.repository, trace.repository.split("/")[-1]} if trace.repository else set()


def selection_day(stamp: str | None) -> date | None:
    """Return the UTC day of a time stamp, None for no stamp; one without a zone is taken as UTC."""
    try:
        moment = datetime.fromisoformat(stamp or "")
    except ValueError:
        return None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC).date()
