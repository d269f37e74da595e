"""What would go where, as a person reads it; questions asked on the terminal."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tracemill.flows.runtime.terminal import _console, say_lines
from tracemill.records.printable import printable
from tracemill.records.project import Project

if TYPE_CHECKING:
    from tracemill.flows.consent.consent_records import Request

_MOST = 40


def say_request(request: "Request", place: Path) -> None:
    """Print on stderr what would go where: whose sessions, to whom, and what redaction found. `place` is
    the file that holds all of it."""
    console = _console()
    say_lines(request.unmatched)
    console.print("What would leave this machine, redacted:")
    labels = consent_row_labels(list(request.projects))
    for project, amount in list(request.projects.items())[:_MOST]:
        console.print(f"  {labels[project]}: {amount}")
    if len(request.projects) > _MOST:
        console.print(f"  and {len(request.projects) - _MOST} more projects, all named in {place}")
    if len(request.projects) > 1:
        console.print(f"  together: {request.total}")
    if sum(amount.sessions for amount in request.projects.values()) > request.total.sessions:
        console.print("  (a session that worked in several of these counts under each)")
    console.print("Where to:")
    for found in request.destinations:
        console.print(f"  {printable(found.model)} at {printable(found.origin)}: {found.policy()}")
    if request.terms:
        console.print(f"  {request.terms}")
    allowed, listed = len(request.lists.allowed), len(request.lists.listed)
    if allowed or listed or request.wider:
        said = f"{listed:,} redacted (entries and values of .env files), {allowed:,} let through"
        more = "; they let more through than was accepted before" if request.wider else ""
        console.print(f"Under [privacy]: {said}{more}")
    console.print("What redaction found there and replaced:")
    for kind, count in request.findings.items():
        console.print(f"  {count:>7,}  {printable(kind)}")
    if not request.findings:
        console.print("  nothing")


def consent_row_labels(projects: Sequence[Project]) -> dict[Project, str]:
    """What each project is called; where two would read alike, with the first digits of their digest."""
    plain = {project: printable(str(project)) for project in projects}
    times = Counter(plain.values())
    return {p: text if times[text] == 1 else f"{text} [{p.digest[:8]}]" for p, text in plain.items()}
