"""Find the projects a session worked in, as digests and redacted names, for consent.

A folder below an earlier folder of the session is the same project. This does not hold below a folder of
many projects (the root, a drive, a home folder, `/tmp`), nor below one that lies above another project.
"""

import posixpath
import re
import unicodedata
from collections.abc import Callable, Iterable

from tracemill.privacy.core.placeholder_keys import digest_with_placeholder_key, strip_placeholder_digits
from tracemill.records.project import Project
from tracemill.records.trace import Trace

_DIGEST = re.compile(r"[0-9a-f]{32}")
_WINDOWS = re.compile(r"[A-Za-z]:(?:[\\/]|$)|\\\\")
_OF_MANY = re.compile(
    r"/|[a-z]:|/root|/(?:var/|private/)?tmp|/mnt(?:/[a-z])?|/volumes"
    r"|(?:[a-z]:|/mnt/[a-z])?/(?:home|users|documents and settings)(?:/[^/]+)?",
    re.IGNORECASE,
)


def find_trace_projects(trace: Trace, redact: Callable[[str], str], key: bytes) -> tuple[Project, ...]:
    """Return the projects of a trace in order of first use; at least one.

    `redact` returns the text that may be shown, `key` is the workspace's. Projects that a trace already has
    are redacted again. A trace with a repository and no project gets the repository as its project.
    """

    def made(kind: str, identity: str, name: str, place: str = "") -> Project:
        return Project(digest_with_placeholder_key(key, kind, identity), shown(name), place)

    def shown(text: str) -> str:
        return strip_placeholder_digits(redact(text))

    if trace.worked_in:
        return tuple(_given(each, shown, key) for each in trace.worked_in)
    if trace.repository and not trace.project:
        return (made("repository", trace.repository.casefold(), trace.repository),)
    steps = (step for context in trace.contexts for step in context.steps)
    folders = [*dict.fromkeys(step.cwd for step in steps if step.cwd and step.cwd.strip())]
    found = [
        Project(
            digest_with_placeholder_key(key, "folder", identity),
            _last(place := shown(folder.rstrip("\\/") or folder)),
            place,
        )
        for identity, folder in find_project_roots(folders, trace.project).items()
    ]
    if trace.project and not any(_is_part(folder, trace.project) for folder in folders):
        found.append(made("project", _spelt(trace.project), trace.project))
    return tuple(found) or (made("source", trace.source, f"{trace.source}, no folder recorded"),)


def _given(project: Project, shown: Callable[[str], str], key: bytes) -> Project:
    digest = project.digest
    if not _DIGEST.fullmatch(digest):
        digest = digest_with_placeholder_key(key, "given", digest)
    return Project(digest, shown(project.name), shown(project.place))


def find_project_roots(folders: Iterable[str], project: str | None = None) -> dict[str, str]:
    """Return the folders of a session's projects, as recorded and in order, by their identity.

    `project` names the folder the session began in. Where the first folder lies below one of that name, that
    one comes first.
    """
    given = list(folders)
    if project and given:
        given.insert(0, _up_to(given[0], project))
    roots: dict[str, str] = {}
    above: set[str] = set()
    whole: set[str] = set()
    for folder in given:
        identity = normalise_project_folder(folder)
        parents = _parents(identity)
        if identity in roots or not whole.isdisjoint(parents):
            continue
        if identity not in above and not _OF_MANY.fullmatch(identity):
            whole.add(identity)
        roots[identity] = folder
        above.update(parents)
    return roots


def normalise_project_folder(folder: str) -> str:
    """Return a folder in normal form: one separator, no trailing one, no `.` and `..`, Unicode NFC.

    Windows folders are case-folded.
    """
    text = _spelt(folder)
    if _WINDOWS.match(text):
        return posixpath.normpath(text.replace("\\", "/").casefold())
    return posixpath.normpath(re.sub(r"^//+", "/", text))


def _spelt(text: str) -> str:
    return unicodedata.normalize("NFC", text)


def _parents(folder: str) -> list[str]:
    found: list[str] = []
    while (parent := posixpath.dirname(folder)) not in ("", folder):
        found.append(parent)
        folder = parent
    return found


def _parts(folder: str) -> list[str]:
    return re.split(r"[\\/]" if _WINDOWS.match(folder) else "/", _spelt(folder))


def _is_part(folder: str, name: str) -> bool:
    return _spelt(name) in _parts(folder)


def _up_to(folder: str, name: str) -> str:
    """Return the folder cut after its last part with that name; unchanged where none has it."""
    signs = r"[\\/]" if _WINDOWS.match(folder) else "/"
    match = re.match(rf"(?s)(.*{signs}{re.escape(name)})(?={signs}|$)", folder)
    return match[1] if match else folder


def _last(place: str) -> str:
    """Return the name of a folder; the root's name is the root itself."""
    return re.split(r"[\\/]", place)[-1] or place
