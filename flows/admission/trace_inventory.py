"""Describe each stored trace in a line: whose it is, how much, what redaction found in it."""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace

from tracemill.flows.admission.list_scope import NO_LISTS, ListScope
from tracemill.records.message import Message
from tracemill.records.project import Project
from tracemill.records.trace import Trace

SELECTION_VERSION = 1
"""Raise it when the same settings take other traces of a source, or store them otherwise."""

FOUND = "redacted:"
"""Prefix of the notes of a trace that say what redaction found in it, by type."""

_USER = re.compile(r"user_(?:[0-9a-f]{8}|[0-9a-f]{4})(?![A-Za-z0-9])")
_HOME = re.compile(r"^([A-Za-z]:)?[\\/](home|Users|users)[\\/][^\\/]+")


def mask_user_placeholder(text: str) -> str:
    """Mask the placeholder of the user, which differs from trace to trace."""
    return _USER.sub("user", text)


def mask_home_folder(place: str) -> str:
    """Mask the user's name in a folder, so that recorded and redacted paths compare equal."""
    return mask_user_placeholder(_HOME.sub(r"\1/\2/user", place))


@dataclass(frozen=True, slots=True)
class TraceEntry:
    """Metadata of one redacted trace, for plans and reports.

    `session` is the id of the trace it is a subagent of, else its own; `text_bytes` counts each of its
    messages once, in UTF-8; `fullness` is that of `trace_fullness`.
    """

    trace_id: str
    session: str
    projects: tuple[Project, ...]
    contexts: int
    states: int
    text_bytes: int
    fullness: int
    findings: Mapping[str, int] = field(default_factory=dict)
    lists: ListScope = NO_LISTS

    def then(self, lists: ListScope) -> "TraceEntry":
        """Return the entry after its text is redacted again under these lists."""
        return replace(self, lists=self.lists.then(lists))

    @classmethod
    def of(cls, trace: Trace) -> "TraceEntry":
        """Build the entry of a redacted trace."""
        messages = {id(m): m for context in trace.contexts for m in context.messages}
        return cls(
            trace.trace_id,
            trace.parent_trace_id or trace.trace_id,
            tuple(map(_shown, trace.worked_in)),
            len(trace.contexts),
            trace.step_count,
            _text_bytes(messages.values()),
            trace_fullness(trace),
            {k.removeprefix(FOUND): n for k, n in trace.notes.items() if k.startswith(FOUND)},
            ListScope.of_notes(trace.notes),
        )


def trace_fullness(trace: Trace) -> int:
    """Return the fullness of a copy of a session: the copy with the higher value is kept.

    It is ordered by number of steps, then of messages (the last result may be missing), then by whether a
    subagent's caller is known.
    """
    messages = sum(len(context.messages) for context in trace.contexts)
    return (trace.step_count << 32) + (messages << 1) + (trace.parent_trace_id is not None)


def _shown(project: Project) -> Project:
    """Mask the user in a folder also if redaction did not recognise the name as a person's."""
    place = mask_home_folder(project.place)
    name = project.name if place == project.place else re.split(r"[\\/]", place)[-1]
    return project._replace(name=name, place=place)


def _text_bytes(messages: Collection[Message]) -> int:
    texts = [message.content for message in messages]
    texts += [call.arguments for message in messages for call in message.tool_calls]
    return sum(len(text) if text.isascii() else len(text.encode("utf-8", "replace")) for text in texts)


def note_findings(trace: Trace, found: Counter[str], noted: Mapping[str, int]) -> Trace:
    """Add to a trace the counts of redaction findings by type, and the notes `noted`."""
    said = {f"{FOUND}{kind}": count for kind, count in sorted(found.items())} | dict(noted)
    return replace(trace, notes=dict(trace.notes) | said) if said else trace


def sum_findings(entries: Iterable[TraceEntry]) -> Counter[str]:
    """Add up the findings of redaction in all entries, by type."""
    total: Counter[str] = Counter()
    for entry in entries:
        total.update(entry.findings)
    return total
