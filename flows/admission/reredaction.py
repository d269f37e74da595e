"""Redact stored text again with today's rules before it leaves.

What lies in a workspace is the text that answers were bought for, and stays. What is sent new and what is
published is that text redacted again, wherever it was redacted otherwise.
"""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tracemill.flows.admission.list_scope import ListScope, widest_list_scope
from tracemill.flows.admission.reading_version import RedactionVersion
from tracemill.flows.admission.trace_inventory import FOUND
from tracemill.privacy.core.placeholder_keys import workspace_key
from tracemill.privacy.redaction.known_secrets import KNOWN_SECRETS, KnownSecrets, trace_texts
from tracemill.records.message import Action, Message
from tracemill.records.reply import TeacherReply
from tracemill.records.trace import Context, Trace

if TYPE_CHECKING:
    from tracemill.privacy.redaction.redactor import Redactor
    from tracemill.records.storage.workspace import Workspace

REDACTED_AS = "redacted as:"
"""Prefix of the note of a trace that names its way of redacting."""


@dataclass(frozen=True, slots=True)
class ReredactedTrace:
    """A trace redacted for leaving the workspace, with a redactor for the replies that belong to it.

    `found` counts, by type, the findings that the stored text still had.
    """

    trace: Trace
    message: Callable[[Message], Message]
    found: Counter[str]

    def reply(self, reply: TeacherReply) -> TeacherReply:
        """Redact a reply for a dataset: it may repeat its prompt, or private text of the training data."""
        if reply.action is None:
            return reply
        return replace(reply, action=Action.of(self.message(reply.action.to_message())))


@dataclass(frozen=True, slots=True)
class Reredactor:
    """A redactor of stored text: applies today's rules and secrets known from other sessions.

    `keeps`: answers bought for the text as it was stored stay valid.
    """

    redactor: "Redactor"
    version: RedactionVersion
    lists: ListScope
    known: KnownSecrets
    keeps: bool = True

    @property
    def notes(self) -> dict[str, int]:
        """Return the notes of a trace that is redacted by today's version."""
        return self.lists.notes() | note_of(self.version)

    @classmethod
    def of(
        cls, work: "Workspace", redactor: "Redactor", lists: ListScope, reredact: bool = False
    ) -> "Reredactor":
        """Build the redactor of a workspace's stored text."""
        key = workspace_key(work.root / "redaction.key")
        known = KnownSecrets(work.root / KNOWN_SECRETS, key)
        return cls(redactor, RedactionVersion.of(redactor, key), lists, known, not reredact)

    def with_listed(self, values: Iterable[str], key: bytes) -> "Reredactor":
        """Return a redactor that also redacts these exact values; `key` is the workspace's key."""
        redactor = self.redactor.with_listed(values)
        return replace(self, redactor=redactor, version=RedactionVersion.of(redactor, key))

    def redact_again(self, stored: Trace) -> ReredactedTrace:
        """Redact a stored trace again before it leaves.

        Returns the same object if it was redacted by today's version and contains no secret of another
        session.
        """
        renewed = self._redact_again(stored)
        trace, values = renewed.trace, self.known.find(trace_texts(renewed.trace))
        if values:
            trace, found = self.redactor.without(trace, values)
            renewed = replace(renewed, trace=trace, found=renewed.found + found)

        def message(told: Message) -> Message:
            told = renewed.message(told)
            here = values | self.known.find(told.texts())
            return self.redactor.message_without(told, here, trace.trace_id) if here else told

        return replace(renewed, message=message)

    def _redact_again(self, stored: Trace) -> ReredactedTrace:
        """Redact the trace by today's rules and lists."""
        if f"{REDACTED_AS}{self.version.id}" in stored.notes:
            scope = stored.trace_id
            return ReredactedTrace(
                stored, lambda told: self.redactor.redact_message(told, scope)[0], Counter()
            )
        own = {name: count for name, count in stored.notes.items() if _is_ours(name)}
        bare = {name: count for name, count in stored.notes.items() if name not in own}
        again = self.redactor.redact_again(replace(stored, notes=bare))
        found = {name: count for name, count in own.items() if name.startswith(FOUND)}
        for kind, count in again.found.items():
            found[f"{FOUND}{kind}"] = found.get(f"{FOUND}{kind}", 0) + count
        lists = ListScope.of_notes(own).then(self.lists)
        notes = dict(again.trace.notes) | found | lists.notes() | note_of(self.version)
        return ReredactedTrace(replace(again.trace, notes=notes), again.message, again.found)

    def merge_stored(self, read: Trace, stored: Trace | None) -> Trace:
        """Put stored messages into a trace that was read again, where only their redaction differs.

        Answers were bought for the stored text. Gives the same object where nothing is replaced.
        """
        if stored is None or not self.keeps:
            return read
        again = self._redact_again(stored).trace
        if again.contexts == stored.contexts:
            return read
        before = {c.index: (c, a) for c, a in zip(stored.contexts, again.contexts, strict=True)}
        contexts = tuple(_joined(c, *before[c.index]) if c.index in before else c for c in read.contexts)
        if contexts == read.contexts:
            return read
        lists = widest_list_scope([ListScope.of_notes(stored.notes), self.lists])
        notes = {name: count for name, count in read.notes.items() if name not in self.notes}
        return replace(read, contexts=contexts, redaction=stored.redaction, notes=notes | lists.notes())


def _joined(read: Context, stored: Context, again: Context) -> Context:
    """Return the read context with stored messages in place of those that redaction makes equal."""
    known = zip(read.messages, stored.messages, again.messages, strict=False)
    messages = tuple(old if new == now else new for new, old, now in known)
    tools = stored.tools if read.tools == again.tools else read.tools
    return replace(read, messages=messages + read.messages[len(messages) :], tools=tools)


def note_of(version: RedactionVersion) -> dict[str, int]:
    """Return the note that marks a trace as redacted by this version."""
    return {f"{REDACTED_AS}{version.id}": 1}


def _is_ours(name: str) -> bool:
    return name.startswith((FOUND, REDACTED_AS, *ListScope.PREFIXES))
