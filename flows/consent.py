"""Consent: nothing leaves this machine before somebody has accepted what would go where.

What was accepted is kept in the workspace (`consents.json`) with its date and scope: projects times
destinations, redacted under these rules and these lists of the user's. A run whose scope is covered asks
nothing; for a new project, a new server, model or provider, a weaker data policy, or lists that let more
through it asks again, for the new part alone. A session may go where every project that it worked in may go.
"""

import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from flows.consent_text import confirmed, say_lines, say_request
from flows.destinations import Destination, destinations, servers_of, terms_of
from flows.inventory import TraceEntry, findings_of
from flows.list_scope import ListScope, widest
from flows.runs import utc_now, write_manifest
from flows.settings import RunSettings
from privacy.redact import RULES_VERSION
from records.errors import PrivacyError, WorkspaceError
from records.files import read_json_file, write_json
from records.printable import printable, so_many
from records.project import Project
from records.workspace import Workspace

CONSENTS = "consents.json"
CONSENTS_SCHEMA = 3


@dataclass(frozen=True, slots=True)
class Consent:
    """What was accepted once: every one of the projects, redacted under these lists or stricter ones, may
    go to every one of the destinations."""

    date: str
    how: str
    redaction: str
    projects: frozenset[Project]
    destinations: frozenset[Destination]
    lists: ListScope

    def covers(self, project: Project, lists: ListScope, destination: Destination) -> bool:
        """Whether this project, redacted under these lists, may go there. A consent that was given under
        later redaction rules than today's does not count: less would be taken out than was accepted."""
        return (
            project.digest in {accepted.digest for accepted in self.projects}
            and lists.within(self.lists)
            and _number(self.redaction) <= _number(RULES_VERSION)
            and any(accepted.covers(destination) for accepted in self.destinations)
        )

    def to_json(self) -> dict[str, Any]:
        """As it is recorded."""
        return {
            "date": self.date,
            "how": self.how,
            "redaction": self.redaction,
            "projects": [project._asdict() for project in sorted(self.projects)],
            "destinations": [found.to_json() for found in sorted(self.destinations)],
            **self.lists.to_json(),
        }


def _number(version: str) -> int:
    return int("".join(sign for sign in version if sign.isdigit()) or 0)


def load_consents(work: Workspace) -> list[Consent]:
    """The consents of a workspace; none of an older schema, which said less, so that all is asked again.
    Raises WorkspaceError where the file holds something else."""
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
            f"{path} holds no consents", "a file of tracemill's", "remove it to be asked again"
        ) from None


def _none_of(path: Path, schema: object) -> list[Consent]:
    if isinstance(schema, int) and 0 < schema < CONSENTS_SCHEMA:
        return []
    raise WorkspaceError(f"{path} has schema {schema!r}", f"at most {CONSENTS_SCHEMA}", "update tracemill")


def save_consents(work: Workspace, consents: Sequence[Consent]) -> None:
    """Put these in place of the workspace's consents."""
    given = {"schema": CONSENTS_SCHEMA, "consents": [c.to_json() for c in consents]}
    write_json(work.root / CONSENTS, given, private=True)


@dataclass(frozen=True, slots=True)
class Amount:
    """How much would go: sessions, steps in them, MB of their text counted once."""

    sessions: int
    states: int
    megabytes: float

    @classmethod
    def of(cls, entries: Sequence[TraceEntry], sessions: Mapping[str, str]) -> "Amount":
        """Of these traces; `sessions` names the session of each."""
        return cls(
            len({sessions[entry.trace_id] for entry in entries}),
            sum(entry.states for entry in entries),
            round(sum(entry.text_bytes for entry in entries) / 1e6, 3),
        )

    def __str__(self) -> str:
        return (
            f"{so_many(self.sessions, 'session')}, {so_many(self.states, 'step')}, {self.megabytes:,.2f} MB"
        )


@dataclass(frozen=True, slots=True)
class Request:
    """What is not accepted yet: projects and destinations, and what redaction found in the projects.

    A session that worked in several projects counts under each of them, and once in `total`. `scopes` are
    the user's lists that each project was redacted under, `wider` says that it was accepted before under
    lists that let less through, `unmatched` are lines on the selection that matched nothing.
    """

    projects: Mapping[Project, Amount]
    total: Amount
    destinations: tuple[Destination, ...]
    findings: Mapping[str, int]
    terms: str
    scopes: Mapping[ListScope, frozenset[Project]]
    wider: bool = False
    unmatched: tuple[str, ...] = ()

    @property
    def lists(self) -> ListScope:
        """The user's lists, as they hold for all of it."""
        return widest(self.scopes)

    def to_json(self) -> dict[str, Any]:
        """As it is written to the run's manifest."""
        return {
            "redaction": RULES_VERSION,
            "projects": [p._asdict() | asdict(amount) for p, amount in self.projects.items()],
            "total": asdict(self.total),
            "destinations": [d.to_json() | {"policy": d.policy()} for d in self.destinations],
            "found_and_replaced": dict(self.findings),
            "terms": self.terms,
            "lists": {name: len(digests) for name, digests in self.lists.to_json().items()},
            "unmatched": list(self.unmatched),
        }

    def accepted(self, how: str) -> list[Consent]:
        """The consent to all of it, one for each set of lists."""
        now, places = utc_now(), frozenset(self.destinations)
        return [
            Consent(now, how, RULES_VERSION, projects, places, lists)
            for lists, projects in self.scopes.items()
        ]

    def in_short(self) -> str:
        """One line: how much would go where."""
        names = ", ".join(printable(project.name, 40) for project in list(self.projects)[:5])
        more = f" and {len(self.projects) - 5} more" if len(self.projects) > 5 else ""
        return (
            f"{so_many(self.total.sessions, 'session')} ({self.total.megabytes:,.2f} MB) of {names}{more} "
            f"would go to {so_many(len(self.destinations), 'model')} at {servers_of(self.destinations)}"
            f"{', and the lists under [privacy] let more through than was accepted' if self.wider else ''}"
        )


def request_of(
    settings: RunSettings,
    entries: Sequence[TraceEntry],
    consents: Sequence[Consent],
    unmatched: Sequence[str] = (),
) -> Request | None:
    """The part of a run that nobody has accepted; None where all of it was, or nothing leaves."""
    wanted = destinations(settings, os.environ)
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
    return Request(
        {project: Amount.of(by_project[project.digest], sessions) for project in projects},
        Amount.of(every, sessions),
        tuple(sorted({found for _, _, found in asked})),
        dict(findings_of(every).most_common()),
        terms_of(settings),
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
    """The session of each trace: a subagent's, and that of a subagent's subagent, is the main one's."""
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
    """Ask for what is not accepted yet; gives the traces that may be sent. `unmatched` says what of the
    selection matched nothing: it is said in any case. `accept_by` is what accepts it, for whoever reads that
    it was not.

    `yes` accepts it and a person on a terminal may; what was accepted is recorded before anything is
    sent. Raises PrivacyError where it is not accepted: nothing was sent then.
    """
    every = list(entries)
    consents = load_consents(work)
    request = request_of(settings, every, consents, unmatched)
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


def _answer(request: Request, place: Path, yes: bool) -> str | None:
    """How it was accepted, None where it was not. `place` is the file that holds all of it."""
    asked = sys.stdin.isatty() and sys.stderr.isatty()
    if not (yes or asked):
        say_lines(request.unmatched)
        return None
    say_request(request, place)
    if yes:
        return "--yes"
    return "asked" if confirmed("Send this?") else None
