"""Redact texts, messages and traces before they reach a teacher or a dataset.

Text is redacted message by message, before anything else is made of it. A redacted trace carries the
version of the rules; any other trace is refused wherever text would leave the machine. Only types and
counts are reported, never a value.
"""

import dataclasses
import json
import socket
from collections import Counter
from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from tracemill.privacy.core.env_files import EnvFile, read_env_file
from tracemill.privacy.core.ordinary_values import MIN_SECRET
from tracemill.privacy.core.rule import Detector
from tracemill.privacy.core.user_lists import make_listed
from tracemill.privacy.personal.known_identity import KnownValues, known_identity_from_environment, make_known
from tracemill.privacy.personal.projects import find_trace_projects
from tracemill.privacy.redaction.detectors import Detectors
from tracemill.privacy.redaction.known_secrets import trace_texts
from tracemill.privacy.redaction.redact_text import NO_SECRETS, ScopedTextRedactor
from tracemill.privacy.redaction.redact_trace import TraceParts, redact_id, strings_beside_messages
from tracemill.privacy.redaction.secret_file_calls import take_secret_files
from tracemill.privacy.redaction.secret_outputs import take_secret_outputs
from tracemill.privacy.redaction.taken_values import TakenValues, find_values_of_placeholders
from tracemill.records.message import Message
from tracemill.records.trace import Trace

REDACTION_VERSION = 27
"""Raise it when redaction gives another text for the same message."""
RULES_VERSION = f"r{REDACTION_VERSION}"


@dataclasses.dataclass(frozen=True, slots=True)
class RuleSet:
    """One version of the rules: the detectors of this program, and `more`."""

    version: str = RULES_VERSION
    more: tuple[Detector, ...] = ()


TODAYS_RULES = RuleSet()


class Redactor:
    """A redactor that replaces secrets and personal data by typed placeholders.

    `secrets` are exact values (shorter than 8 characters: ignored), `home` and `user` the user's own, `hosts`
    names of own machines. `key` is the workspace's redaction key
    (`privacy.core.placeholder_keys.workspace_key`); another key gives other placeholders. `rules` default to
    today's.
    """

    def __init__(
        self,
        *,
        secrets: Iterable[str] = (),
        home: str | None = None,
        user: str | None = None,
        hosts: Iterable[str] = (),
        key: bytes = b"",
        rules: RuleSet = TODAYS_RULES,
    ) -> None:
        self.rules = rules
        self._know(make_known(secrets, [user or ""], [home or ""], hosts))
        self._key = key
        self._files: tuple[EnvFile, ...] = ()
        self._found: dict[str, str] = {}

    def _know(self, known: KnownValues) -> None:
        self._known = known
        self._detectors = Detectors(known, more=self.rules.more)

    @classmethod
    def from_environment(
        cls,
        environ: Mapping[str, str],
        *,
        secrets: Iterable[str] = (),
        hostname: str | None = None,
        key: bytes = b"",
        redact: Iterable[str] = (),
        allow: Iterable[str] = (),
        env_files: Iterable[Path] = (),
        rules: RuleSet = TODAYS_RULES,
    ) -> "Redactor":
        """Build a redactor that knows the user's values, home folder, names and machine.

        Values are those of secret-named variables in `environ` (8 characters or more), those of `env_files`
        that are not ordinary (`core.env_files`), and `secrets`. `redact` and `allow` list exact values and,
        after `re:`, patterns. An allowed text stays whatever rule finds it, unless it is a known secret.
        Raises ConfigError for an invalid pattern and for a file that cannot be read.
        """
        known = known_identity_from_environment(environ, hostname or socket.gethostname())
        files = tuple(map(read_env_file, env_files))
        more = [make_known(secrets), *(make_known(file.values) for file in files)]
        values = {value for each in (known, *more) for value in each.secrets}
        redactor = cls(key=key, rules=rules)
        redactor._files = files
        redactor._know(
            dataclasses.replace(
                known,
                secrets=tuple(sorted(values, key=lambda value: (-len(value), value))),
                redact=make_listed(redact, "redact"),
                allow=make_listed(allow, "allow"),
            )
        )
        return redactor

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle what it knows, not what is compiled of it: a worker redacts as its driver does."""
        return _rebuild_redactor, (self._key, self.rules, self._known, self._files)

    @property
    def known(self) -> KnownValues:
        """Return the exact values that are searched for; never log them."""
        return self._known

    @property
    def known_from_files(self) -> Counter[str]:
        """Count the values known from each `.env` file, by file name."""
        counts: Counter[str] = Counter()
        for file in self._files:
            counts[file.path.name] += file.known
        return counts

    def with_listed(self, values: Iterable[str]) -> "Redactor":
        """Return a redactor that also redacts these exact values, as the user's list does."""
        listed = self._known.redact
        more = make_listed({*listed.values, *values}, "redact")
        known = dataclasses.replace(self._known, redact=dataclasses.replace(listed, values=more.values))
        return _rebuild_redactor(self._key, self.rules, known, self._files)

    def pop_found_secrets(self) -> dict[str, str]:
        """Return the secrets found in traces since the last call, each with its type; never log them."""
        found, self._found = self._found, {}
        return found

    def redact_text(self, text: str, scope: str = "") -> tuple[str, Counter[str]]:
        """Return a redacted text, and its findings by type.

        Placeholders agree inside one `scope` (a trace id).
        """
        needs = self._detectors.needs(text)
        if not needs.bits:
            return text, Counter()
        leaf = ScopedTextRedactor(self._detectors, self._key, scope, {text: needs})
        return leaf.redact(text), leaf.findings

    def redact_message(self, message: Message, scope: str = "") -> tuple[Message, Counter[str]]:
        """Return a redacted message, and its findings by type.

        A secret found in one part of the message is redacted in all parts. The same object is returned where
        nothing was found.
        """
        leaf = ScopedTextRedactor(self._detectors, self._key, scope)
        ids = ScopedTextRedactor(self._detectors, self._key, "")
        redacted = TraceParts(leaf, ids).message(message)
        echo = _Echo.of(leaf, self._detectors, list(redacted.texts()))
        found = leaf.findings + ids.findings
        if echo is None:
            return redacted, found
        return echo.message(redacted), found + echo.leaf.findings

    def redact_trace(self, trace: Trace) -> tuple[Trace, Counter[str]]:
        """Return the trace with every string redacted, and its findings by type.

        `redaction` and `worked_in` are set. User names found in paths are redacted throughout. A message that
        several contexts share is redacted and counted once. A trace of this version is returned unchanged.
        """
        if trace.redaction == self.rules.version:
            return trace, Counter()
        redacted, found, *_ = self._redact(trace)
        return redacted, found

    def redact_again(self, trace: Trace) -> "RedactedAgain":
        """Redact a redacted trace with these rules and values; its id and its placeholders stay."""
        redacted, found, leaf, echo = self._redact(trace)
        return RedactedAgain(dataclasses.replace(redacted, trace_id=trace.trace_id), found, leaf, echo)

    def without(self, trace: Trace, values: Mapping[str, str]) -> tuple[Trace, Counter[str]]:
        """Return a redacted trace without these values in any form, and the findings by type.

        Each value is given with its type.
        """
        echo = self._echo_of(values, trace.trace_id, list(dict.fromkeys(trace_texts(trace))))
        return (echo.trace(trace), echo.leaf.findings) if echo else (trace, Counter())

    def message_without(self, message: Message, values: Mapping[str, str], scope: str) -> Message:
        """Return a message without these values, with the placeholders of one `scope` (a trace id)."""
        echo = self._echo_of(values, scope, list(message.texts()))
        return echo.message(message) if echo else message

    def _echo_of(self, values: Mapping[str, str], scope: str, texts: list[str]) -> "_Echo | None":
        taken = ScopedTextRedactor(self._detectors, self._key, scope, taken=dict(values))
        return _Echo.of(taken, self._detectors, texts)

    def _redact(self, trace: Trace) -> "tuple[Trace, Counter[str], ScopedTextRedactor, _Echo | None]":
        """Redact in two passes: by the rules, then by the secrets that the rules found."""
        places = [t for t in (trace.origin, trace.project) if t] + [
            step.cwd for context in trace.contexts for step in context.steps if step.cwd
        ]
        texts = list(dict.fromkeys(trace_texts(trace)))
        detectors, needs = self._detectors.with_names_of(texts, set(places))
        ids = ScopedTextRedactor(detectors, self._key, "")
        trace_id = redact_id(ids, trace.trace_id)
        leaf = ScopedTextRedactor(detectors, self._key, trace_id, needs)
        shown = take_secret_outputs(take_secret_files(trace, leaf), leaf)
        redacted = dataclasses.replace(trace, **TraceParts(leaf, ids).trace(shown))
        if trace.redaction is not None:
            leaf.taken.update(find_values_of_placeholders(texts, self._key, trace_id))
        echo = _Echo.of(leaf, detectors, texts)
        if echo is not None:
            redacted = echo.trace(redacted)
            self._found |= echo.values.kinds
        found = leaf.findings + ids.findings + (echo.leaf.findings if echo else Counter())
        places_leaf = ScopedTextRedactor(detectors, self._key, trace_id)

        def show(text: str) -> str:
            return places_leaf.redact(echo.leaf.redact(text) if echo else text)

        worked_in = find_trace_projects(trace, show, self._key)
        redacted = dataclasses.replace(
            redacted, trace_id=trace_id, redaction=self.rules.version, worked_in=worked_in
        )
        return redacted, found, leaf, echo


class _Echo(NamedTuple):
    """A redactor of secrets and persons found in one place, wherever else they occur."""

    values: TakenValues
    leaf: ScopedTextRedactor

    @classmethod
    def of(cls, leaf: ScopedTextRedactor, base: Detectors, texts: list[str]) -> "_Echo | None":
        """Build the second pass for what another redactor found in these texts.

        Returns None where all of it is ordinary text.
        """
        sought = {
            value: kind for value, kind in leaf.taken.items() if kind not in NO_SECRETS or kind == "PERSON"
        }
        values = TakenValues(sought, base, texts) if sought else None
        if not values:
            return None
        again = ScopedTextRedactor(values, leaf.key, leaf.scope, taken=leaf.taken, same=values.same)
        return cls(values, again)

    def trace(self, trace: Trace) -> Trace:
        """Return the trace without the values; the same object where it holds none."""
        messages = dict.fromkeys(message for context in trace.contexts for message in context.messages)
        holders = self.values.find_holders(messages, strings_beside_messages(trace))
        if holders is None:
            return trace
        return dataclasses.replace(trace, **TraceParts(self.leaf, only=holders).trace(trace))

    def message(self, message: Message) -> Message:
        """Return the message without the values."""
        return TraceParts(self.leaf).message(message)


@dataclasses.dataclass(frozen=True, slots=True)
class RedactedAgain:
    """A trace that was redacted again, and its findings by type.

    It also redacts messages that were written in view of the earlier version of the trace.
    """

    trace: Trace
    found: Counter[str]
    _leaf: ScopedTextRedactor = dataclasses.field(repr=False)
    _echo: _Echo | None = dataclasses.field(default=None, repr=False)

    def message(self, message: Message) -> Message:
        """Redact a message of a model that saw the earlier version of the trace.

        Values that only the trace shows to be private are redacted too.
        """
        strip = partial(_without, by=self._leaf)
        calls = tuple(
            dataclasses.replace(call, arguments=strip(call.arguments)) for call in message.tool_calls
        )
        reasoning = strip(message.reasoning) if message.reasoning else message.reasoning
        redacted = dataclasses.replace(
            message, content=strip(message.content), tool_calls=calls, reasoning=reasoning
        )
        if self._echo:
            redacted = self._echo.message(redacted)
        ids = ScopedTextRedactor(self._leaf.detectors, self._leaf.key, "")
        leaf = ScopedTextRedactor(self._leaf.detectors, self._leaf.key, self._leaf.scope)
        return TraceParts(leaf, ids).message(redacted)


def _without(text: str, by: ScopedTextRedactor) -> str:
    """Replace in a text the values that `by` has redacted, plain and as JSON strings spell them."""
    for value in sorted(by.taken, key=len, reverse=True):
        if len(value) >= MIN_SECRET and (value in text or json.dumps(value)[1:-1] in text):
            stand_in = by.placeholder(value)
            text = text.replace(value, stand_in).replace(json.dumps(value)[1:-1], stand_in)
    return text


def _rebuild_redactor(key: bytes, rules: RuleSet, known: KnownValues, files: tuple[EnvFile, ...]) -> Redactor:
    redactor = Redactor(key=key, rules=rules)
    redactor._files = files
    redactor._know(known)
    return redactor
