"""Consent: nothing leaves this machine before somebody has accepted what would go where.

What was accepted is kept in the workspace (`consents.json`) with its date and scope: projects times
destinations. A run whose scope is covered asks nothing; for a new project, a new host, model or
provider, or a weaker data policy it asks again, for the new part alone.
"""

import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from flows.destinations import Destination, destinations, hosts_of, terms_of
from flows.inventory import Project, TraceEntry, findings_of
from flows.runs import utc_now, write_manifest
from flows.settings import RunSettings
from privacy.redact import RULES_VERSION
from records.errors import PrivacyError, WorkspaceError
from records.files import read_json_file, write_json
from records.workspace import Workspace

CONSENTS = "consents.json"


@dataclass(frozen=True, slots=True)
class Consent:
    """What was accepted once: every one of the projects may go to every one of the destinations."""

    date: str
    how: str
    redaction: str
    projects: frozenset[Project]
    destinations: frozenset[Destination]

    def covers(self, project: Project, destination: Destination) -> bool:
        """Whether this project may go there. A consent that was given under later redaction rules
        than today's does not count: less would be taken out than was accepted."""
        return (
            project in self.projects
            and _number(self.redaction) <= _number(RULES_VERSION)
            and any(accepted.covers(destination) for accepted in self.destinations)
        )

    def to_json(self) -> dict[str, Any]:
        """As it is recorded."""
        return {
            "date": self.date,
            "how": self.how,
            "redaction": self.redaction,
            "projects": [list(project) for project in sorted(self.projects)],
            "destinations": [found.to_json() for found in sorted(self.destinations)],
        }


def _number(version: str) -> int:
    return int("".join(sign for sign in version if sign.isdigit()) or 0)


def load_consents(work: Workspace) -> list[Consent]:
    """The consents of a workspace. Raises WorkspaceError where the file holds something else."""
    path = work.root / CONSENTS
    if not path.exists():
        return []
    value: Any = read_json_file(path)
    try:
        return [
            Consent(
                item["date"],
                item["how"],
                item["redaction"],
                frozenset(Project(*project) for project in item["projects"]),
                frozenset(Destination(**found) for found in item["destinations"]),
            )
            for item in value["consents"]
        ]
    except (KeyError, TypeError):
        raise WorkspaceError(
            f"{path} holds no consents", "a file of tracemill's", "remove it to be asked again"
        ) from None


def save_consents(work: Workspace, consents: Sequence[Consent]) -> None:
    """Put these in place of the workspace's consents."""
    write_json(work.root / CONSENTS, {"schema": 1, "consents": [c.to_json() for c in consents]})


@dataclass(frozen=True, slots=True)
class ProjectAmount:
    """How much of a project would go: sessions, steps in them, MB of their text counted once."""

    project: Project
    sessions: int
    states: int
    megabytes: float

    def to_json(self) -> dict[str, Any]:
        """As it is written to the run's manifest."""
        return self.project._asdict() | {
            "sessions": self.sessions,
            "states": self.states,
            "megabytes": self.megabytes,
        }


@dataclass(frozen=True, slots=True)
class Request:
    """What is not accepted yet: projects and destinations, and what redaction found in the projects."""

    projects: tuple[ProjectAmount, ...]
    destinations: tuple[Destination, ...]
    findings: Mapping[str, int]
    terms: str

    def to_json(self) -> dict[str, Any]:
        """As it is written to the run's manifest."""
        return {
            "redaction": RULES_VERSION,
            "projects": [amount.to_json() for amount in self.projects],
            "destinations": [d.to_json() | {"policy": d.policy()} for d in self.destinations],
            "found_and_replaced": dict(self.findings),
            "terms": self.terms,
        }

    def accepted(self, how: str) -> Consent:
        """The consent to all of it."""
        projects = frozenset(amount.project for amount in self.projects)
        return Consent(utc_now(), how, RULES_VERSION, projects, frozenset(self.destinations))

    def in_short(self) -> str:
        """One line: how much would go where."""
        megabytes = sum(amount.megabytes for amount in self.projects)
        names = ", ".join(amount.project.name for amount in self.projects[:5])
        more = f" and {len(self.projects) - 5} more" if len(self.projects) > 5 else ""
        return (
            f"{sum(a.sessions for a in self.projects):,} sessions ({megabytes:,.2f} MB) of {names}{more} "
            f"would go to {len(self.destinations)} models at {hosts_of(self.destinations)}"
        )


def request_of(
    settings: RunSettings, entries: Sequence[TraceEntry], consents: Sequence[Consent]
) -> Request | None:
    """The part of a run that nobody has accepted; None where all of it was, or nothing leaves."""
    wanted = destinations(settings, os.environ)
    by_project: dict[Project, list[TraceEntry]] = {}
    for entry in entries:
        if entry.states:
            by_project.setdefault(entry.project, []).append(entry)
    open_pairs = [
        (project, found)
        for project in sorted(by_project)
        for found in wanted
        if not any(consent.covers(project, found) for consent in consents)
    ]
    if not open_pairs:
        return None
    projects = list(dict.fromkeys(project for project, _ in open_pairs))
    return Request(
        tuple(_amount(project, by_project[project]) for project in projects),
        tuple(sorted({found for _, found in open_pairs})),
        dict(findings_of(e for p in projects for e in by_project[p]).most_common()),
        terms_of(settings),
    )


def _amount(project: Project, entries: Sequence[TraceEntry]) -> ProjectAmount:
    return ProjectAmount(
        project,
        sum(entry.main for entry in entries),
        sum(entry.states for entry in entries),
        round(sum(entry.text_bytes for entry in entries) / 1e6, 3),
    )


def require_consent(
    work: Workspace, settings: RunSettings, run_id: str, entries: Iterable[TraceEntry], yes: bool
) -> frozenset[str]:
    """Ask for what is not accepted yet; gives the traces that may be sent.

    `yes` accepts it and a person on a terminal may; what was accepted is recorded before anything is
    sent. Raises PrivacyError where it is not accepted: nothing was sent then.
    """
    every = list(entries)
    consents = load_consents(work)
    request = request_of(settings, every, consents)
    if request is not None:
        place = write_manifest(work, run_id, "consent", request.to_json())
        how = _answer(request, yes)
        if how is None:
            raise PrivacyError(
                f"not accepted yet: {request.in_short()}; nothing was sent",
                "consent",
                f"read {place} and accept it with --yes, or leave projects out with [select]",
            )
        save_consents(work, [*consents, request.accepted(how)])
    return frozenset(entry.trace_id for entry in every)


def _answer(request: Request, yes: bool) -> str | None:
    """How it was accepted, None where it was not."""
    from flows.consent_text import confirmed, say_request

    asked = sys.stdin.isatty() and sys.stderr.isatty()
    if not (yes or asked):
        return None
    say_request(request)
    if yes:
        return "--yes"
    return "asked" if confirmed("Send this?") else None
