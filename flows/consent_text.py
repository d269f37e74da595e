"""What would go where, as a person reads it; questions asked on the terminal."""

import sys
from typing import TYPE_CHECKING

from rich.console import Console

if TYPE_CHECKING:
    from flows.consent import Request

_MOST = 40


def say_request(request: "Request") -> None:
    """Print on stderr what would go where: whose sessions, to whom, and what redaction found."""
    console = Console(stderr=True, highlight=False, soft_wrap=True, markup=False)
    console.print("What would leave this machine, redacted:")
    for amount in request.projects[:_MOST]:
        size = f"{amount.sessions:,} sessions, {amount.states:,} steps, {amount.megabytes:,.2f} MB"
        console.print(f"  {amount.project}: {size}")
    if rest := request.projects[_MOST:]:
        size = f"{sum(a.sessions for a in rest):,} sessions, {sum(a.megabytes for a in rest):,.2f} MB"
        console.print(f"  {len(rest)} more projects: {size}")
    console.print("Where to:")
    for found in request.destinations:
        console.print(f"  {found.model} at {found.host}: {found.policy()}")
    if request.terms:
        console.print(f"  {request.terms}")
    console.print("What redaction found there and replaced:")
    for kind, count in request.findings.items():
        console.print(f"  {count:>7,}  {kind}")
    if not request.findings:
        console.print("  nothing")


def confirmed(question: str) -> bool:
    """Whether a person on the terminal says yes; anything else, also the end of input, is no."""
    sys.stderr.write(f"{question} [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")
