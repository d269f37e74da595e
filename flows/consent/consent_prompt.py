"""Print what would go where."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tracemill.flows.runtime.terminal import say_lines, stderr_console
from tracemill.records.printable import printable, printable_count
from tracemill.records.project import Project

if TYPE_CHECKING:
    from tracemill.flows.consent.consent_records import ConsentRequest

_MOST = 40


def say_request(request: "ConsentRequest", place: Path) -> None:
    """Print on stderr which projects would be sent to whom, and the findings of redaction.

    `place` is the file with the whole request.
    """
    console = stderr_console()
    say_lines(request.unmatched)
    console.print("This run would send, redacted:")
    labels = consent_row_labels(list(request.projects))
    for project, amount in list(request.projects.items())[:_MOST]:
        console.print(f"  {labels[project]}: {amount}")
    if len(request.projects) > _MOST:
        console.print(f"  and {len(request.projects) - _MOST} more projects, listed in {place}")
    if len(request.projects) > 1:
        console.print(f"  in total: {request.total}")
    if sum(amount.sessions for amount in request.projects.values()) > request.total.sessions:
        console.print("  (a session of several projects counts under each)")
    console.print("To:")
    for found in request.destinations:
        console.print(f"  {printable(found.model)} at {printable(found.origin)}: {found.policy()}")
    if request.terms:
        console.print(f"  {request.terms}")
    allowed, listed = len(request.lists.allowed), len(request.lists.listed)
    if allowed or listed or request.wider:
        values = printable_count(listed, "value")
        said = f"{values} redacted (entries and .env files), {allowed:,} allowed"
        more = "; this allows more than was accepted before" if request.wider else ""
        console.print(f"Under [privacy]: {said}{more}")
    console.print("Redaction replaced:")
    for kind, count in request.findings.items():
        console.print(f"  {count:>7,}  {printable(kind)}")
    if not request.findings:
        console.print("  nothing")


def consent_row_labels(projects: Sequence[Project]) -> dict[Project, str]:
    """Name each project; equal names are followed by the first digits of the project's digest."""
    plain = {project: printable(str(project)) for project in projects}
    times = Counter(plain.values())
    return {p: text if times[text] == 1 else f"{text} [{p.digest[:8]}]" for p, text in plain.items()}
