"""Requests for consent and consents, as the workspace keeps them."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from tracemill.flows.admission.list_scope import ListScope, widest_list_scope
from tracemill.flows.admission.trace_inventory import TraceEntry
from tracemill.flows.consent.destinations import Destination, destination_servers
from tracemill.flows.run_state.run_records import utc_now
from tracemill.privacy.redaction.redactor import RULES_VERSION
from tracemill.records.printable import printable, printable_count
from tracemill.records.project import Project


@dataclass(frozen=True, slots=True)
class Consent:
    """A recorded consent.

    Each of `projects`, redacted under the recorded user lists or stricter ones, may be sent to each of the
    destinations.
    """

    date: str
    how: str
    redaction: str
    projects: frozenset[Project]
    destinations: frozenset[Destination]
    lists: ListScope

    def covers(self, project: Project, lists: ListScope, destination: Destination) -> bool:
        """Return whether this project, redacted under these lists, may be sent to this destination.

        A consent under later redaction rules than today's does not count: less would be redacted than was
        accepted.
        """
        return (
            project.digest in {accepted.digest for accepted in self.projects}
            and lists.within(self.lists)
            and _number(self.redaction) <= _number(RULES_VERSION)
            and any(accepted.covers(destination) for accepted in self.destinations)
        )

    def to_json(self) -> dict[str, Any]:
        """Return the consent as JSON values."""
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


@dataclass(frozen=True, slots=True)
class ConsentAmount:
    """Amount of data to send: sessions, their steps, and MB of their text, each message counted once."""

    sessions: int
    states: int
    megabytes: float

    @classmethod
    def of(cls, entries: Sequence[TraceEntry], sessions: Mapping[str, str]) -> "ConsentAmount":
        """Add up these traces; `sessions` names the session of each."""
        return cls(
            len({sessions[entry.trace_id] for entry in entries}),
            sum(entry.states for entry in entries),
            round(sum(entry.text_bytes for entry in entries) / 1e6, 3),
        )

    def __str__(self) -> str:
        sessions, steps = printable_count(self.sessions, "session"), printable_count(self.states, "step")
        return f"{sessions}, {steps}, {self.megabytes:,.2f} MB"


@dataclass(frozen=True, slots=True)
class ConsentRequest:
    """A request for consent: projects and destinations that lack it, and redaction findings in the projects.

    A session that worked in several projects counts under each of them, and once in `total`. `scopes` are
    the user's lists that each project was redacted under, `wider` says that it was accepted before under
    lists that allowed less through, `unmatched` are lines on selection entries that matched nothing.
    """

    projects: Mapping[Project, ConsentAmount]
    total: ConsentAmount
    destinations: tuple[Destination, ...]
    findings: Mapping[str, int]
    terms: str
    scopes: Mapping[ListScope, frozenset[Project]]
    wider: bool = False
    unmatched: tuple[str, ...] = ()

    @property
    def lists(self) -> ListScope:
        """Return the lists that apply to all projects of the request."""
        return widest_list_scope(self.scopes)

    def to_json(self) -> dict[str, Any]:
        """Return the request as JSON values for the run's manifest."""
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
        """Return the consents to the whole request, one for each set of lists."""
        now, places = utc_now(), frozenset(self.destinations)
        return [
            Consent(now, how, RULES_VERSION, projects, places, lists)
            for lists, projects in self.scopes.items()
        ]

    def in_short(self) -> str:
        """Return one line: the amount and the destinations."""
        names = ", ".join(printable(project.name, 40) for project in list(self.projects)[:5])
        more = f" and {len(self.projects) - 5} more" if len(self.projects) > 5 else ""
        return (
            f"{printable_count(self.total.sessions, 'session')} ({self.total.megabytes:,.2f} MB) of "
            f"{names}{more} would go to {printable_count(len(self.destinations), 'model')} at "
            f"{destination_servers(self.destinations)}"
            f"{', and [privacy] allows more than was accepted before' if self.wider else ''}"
        )
