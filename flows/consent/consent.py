"""Ask for consent: nothing leaves this machine before somebody has accepted what would go where.

What was accepted is kept in the workspace (`consents.json`) with its date and scope: projects times
destinations, redacted under these rules and these lists of the user's. A run whose scope is covered asks
nothing; for a new project, a new server, model or provider, a weaker data policy, or lists that let more
through it asks again, for the new part alone. A session may go where every project that it worked in may go.
"""

import os
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from tracemill.flows.admission.list_scope import ListScope
from tracemill.flows.admission.trace_inventory import TraceEntry, sum_findings
from tracemill.flows.config.run_settings import RunSettings
from tracemill.flows.consent.consent_prompt import say_request
from tracemill.flows.consent.consent_records import Consent, ConsentAmount, ConsentRequest
from tracemill.flows.consent.destinations import Destination, destination_terms, list_destinations
from tracemill.flows.run_state.run_records import write_manifest
from tracemill.flows.runtime.terminal import confirm_on_terminal, say_lines
from tracemill.records.errors import PrivacyError, WorkspaceError
from tracemill.records.project import Project
from tracemill.records.storage.atomic_files import read_json_file, write_json
from tracemill.records.storage.workspace import Workspace

CONSENTS = "consents.json"
CONSENTS_SCHEMA = 3


def load_consents(work: Workspace) -> list[Consent]:
    """Load the consents of a workspace.

    Consents of an older schema, which recorded less, are ignored, so that they are asked for again. Raises
    WorkspaceError if the file holds something else.
    """
    path = work.root / CONSENTS
    if not path.exists():
        return []
    value: Any = read_json_file(path)
    try:
        if value["schema"] != CONSENTS_SCHEMA:
            return _none_of(path, value["schema"])
        return [
            Consent(
                item["date"],
                item["how"],
                item["redaction"],
                frozenset(Project(**project) for project in item["projects"]),
                frozenset(Destination(**found) for found in item["destinations"]),
                ListScope.from_json(item),
            )
            for item in value["consents"]
        ]
    except (KeyError, TypeError):
        raise WorkspaceError(
            f"{path} is damaged", "a file written by tracemill", "remove it to be asked again"
        ) from None


def _none_of(path: Path, schema: object) -> list[Consent]:
    if isinstance(schema, int) and 0 < schema < CONSENTS_SCHEMA:
        return []
    raise WorkspaceError(f"{path} has schema {schema!r}", f"at most {CONSENTS_SCHEMA}", "update tracemill")


def save_consents(work: Workspace, consents: Sequence[Consent]) -> None:
    """Replace the consents of a workspace."""
    given = {"schema": CONSENTS_SCHEMA, "consents": [c.to_json() for c in consents]}
    write_json(work.root / CONSENTS, given, private=True)


def build_consent_request(
    settings: RunSettings,
    entries: Sequence[TraceEntry],
    consents: Sequence[Consent],
    unmatched: Sequence[str] = (),
) -> ConsentRequest | None:
    """Return the part of a run without consent; None if all of it has consent, or nothing is sent."""
    wanted = list_destinations(settings, os.environ)
    by_project: dict[str, list[TraceEntry]] = {}
    named: dict[str, Project] = {}
    for entry in entries:
        for project in entry.projects if entry.states else ():
            named.setdefault(project.digest, project)
            by_project.setdefault(project.digest, []).append(entry)
    asked = [
        (project, lists, found)
        for project in sorted(named.values(), key=lambda p: (p.name.casefold(), p.place, p.digest))
        for lists in dict.fromkeys(entry.lists for entry in by_project[project.digest])
        for found in wanted
        if not any(consent.covers(project, lists, found) for consent in consents)
    ]
    if not asked:
        return None
    sessions = _sessions(entries)
    projects = dict.fromkeys(project for project, _, _ in asked)
    every = list({entry.trace_id: entry for p in projects for entry in by_project[p.digest]}.values())
    return ConsentRequest(
        {project: ConsentAmount.of(by_project[project.digest], sessions) for project in projects},
        ConsentAmount.of(every, sessions),
        tuple(sorted({found for _, _, found in asked})),
        dict(sum_findings(every).most_common()),
        destination_terms(settings),
        _by_lists(asked),
        any(consent.covers(p, consent.lists, found) for p, _, found in asked for consent in consents),
        tuple(unmatched),
    )


def _by_lists(
    asked: Iterable[tuple[Project, ListScope, Destination]],
) -> dict[ListScope, frozenset[Project]]:
    found: dict[ListScope, set[Project]] = {}
    for project, lists, _ in asked:
        found.setdefault(lists, set()).add(project)
    return {lists: frozenset(projects) for lists, projects in found.items()}


def _sessions(entries: Sequence[TraceEntry]) -> dict[str, str]:
    """Return the session of each trace: a subagent, at any depth, belongs to the main trace's session."""
    above = {entry.trace_id: entry.session for entry in entries}
    found: dict[str, str] = {}
    for trace_id in above:
        at, seen = trace_id, set[str]()
        while at not in seen and above.get(at, at) != at:
            seen.add(at)
            at = above[at]
        found[trace_id] = at
    return found


def require_consent(
    work: Workspace,
    settings: RunSettings,
    run_id: str,
    entries: Iterable[TraceEntry],
    yes: bool,
    unmatched: Sequence[str] = (),
    accept_by: str = "--yes",
) -> frozenset[str]:
    """Ask for the consents that are missing, and return the traces that may be sent.

    `unmatched` are lines on selection entries that matched nothing; they are printed in any case.
    `accept_by` is the option that gives consent, for the error message.

    `yes` accepts, and so may a person at a terminal; consents are recorded before anything is sent. Raises
    PrivacyError if consent is refused; nothing is sent then.
    """
    every = list(entries)
    consents = load_consents(work)
    request = build_consent_request(settings, every, consents, unmatched)
    if request is None:
        say_lines(unmatched)
    else:
        place = write_manifest(work, run_id, "consent", request.to_json(), private=True)
        how = _answer(request, place, yes)
        if how is None:
            raise PrivacyError(
                f"not accepted yet: {request.in_short()}; nothing was sent",
                "consent",
                f"read {place} and accept it with {accept_by}, or leave projects out with [select]",
            )
        save_consents(work, [*consents, *request.accepted(how)])
    return frozenset(entry.trace_id for entry in every if entry.projects)


def _answer(request: ConsentRequest, place: Path, yes: bool) -> str | None:
    """Return how consent was given, None if it was not.

    `place` is the file with the whole request.
    """
    asked = sys.stdin.isatty() and sys.stderr.isatty()
    if not (yes or asked):
        say_lines(request.unmatched)
        return None
    say_request(request, place)
    if yes:
        return "--yes"
    return "asked" if confirm_on_terminal("Send this?") else None
