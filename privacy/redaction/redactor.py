"""The redactor: nothing reaches a teacher or a dataset but through here.

Text is redacted message by message, before anything else is made of it. A trace that went through
carries the version of the rules; one that did not is refused wherever text would leave the machine.
Only types and counts are ever reported, never a value.
"""

import dataclasses
import json
import socket
from collections import Counter
from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import NamedTuple

from tracemill.privacy.core.env_files import EnvFile, read_env_file
from tracemill.privacy.core.ordinary_values import MIN_SECRET
from tracemill.privacy.core.rule import Detector
from tracemill.privacy.core.user_lists import make_listed
from tracemill.privacy.personal.known_identity import Known, known_identity_from_environment, make_known
from tracemill.privacy.personal.projects import find_trace_projects
from tracemill.privacy.redaction.detectors import Detectors
from tracemill.privacy.redaction.known_secrets import trace_texts
from tracemill.privacy.redaction.redact_text import NO_SECRETS, LeafRedactor
from tracemill.privacy.redaction.redact_trace import TraceParts, redact_id, strings_beside_messages
from tracemill.privacy.redaction.secret_outputs import take_secret_outputs
from tracemill.privacy.redaction.taken_values import TakenValues, find_values_of_placeholders
from tracemill.records.message import Message
from tracemill.records.trace import Trace

REDACTION_VERSION = 8
"""Raise it when redaction gives another text for the same message."""
RULES_VERSION = f"r{REDACTION_VERSION}"


@dataclasses.dataclass(frozen=True, slots=True)
class Rules:
    """One version of the rules: what this program looks for, and `more`."""

    version: str = RULES_VERSION
    more: tuple[Detector, ...] = ()


TODAYS_RULES = Rules()


class Redactor:
    """Replaces secrets and personal data by typed placeholders.

    `secrets` are exact values (shorter than 8 characters: ignored), `home` and `user` the user's own,
    `hosts` names of own machines. `key` is the workspace's redaction key
    (`privacy.core.placeholder_keys.workspace_key`): with another key every placeholder is another one.
    `rules` are today's unless others are given.
    """

    def __init__(
        self,
        *,
        secrets: Iterable[str] = (),
        home: str | None = None,
        user: str | None = None,
        hosts: Iterable[str] = (),
        key: bytes = b"",
        rules: Rules = TODAYS_RULES,
    ) -> None:
        self.rules = rules
        self._know(make_known(secrets, [user or ""], [home or ""], hosts))
        self._key = key
        self._files: tuple[EnvFile, ...] = ()
        self._found: dict[str, str] = {}

    def _know(self, known: Known) -> None:
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
        rules: Rules = TODAYS_RULES,
    ) -> "Redactor":
        """A redactor that knows the values of `environ`'s secret-named variables (8 characters or
        more), those of `env_files` that are not ordinary (`core.env_files`), its home folder and user,
        and this machine's name; `secrets` come on top.

        `redact` and `allow` list exact values and, behind `re:`, patterns. What is allowed stands
        whatever rule finds it; only known secrets do not. Raises ConfigError for a pattern that is none
        and for a file that cannot be read.
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

    @property
    def known(self) -> Known:
        """The exact values looked for. Never log it."""
        return self._known

    @property
    def known_from_files(self) -> Counter[str]:
        """How many values are known from each `.env` file, by the file's name."""
        counts: Counter[str] = Counter()
        for file in self._files:
            counts[file.path.name] += file.known
        return counts

    def pop_found_secrets(self) -> dict[str, str]:
        """Return the secrets that were taken out of traces since it was last asked, each with its type. Never
        log them."""
        found, self._found = self._found, {}
        return found

    def redact_text(self, text: str, scope: str = "") -> tuple[str, Counter[str]]:
        """A text without what is private, and what was found by type. Placeholders agree inside one
        `scope` (a trace id)."""
        needs = self._detectors.needs(text)
        if not needs.bits:
            return text, Counter()
        leaf = LeafRedactor(self._detectors, self._key, scope, {text: needs})
        return leaf.redact(text), leaf.findings

    def redact_message(self, message: Message, scope: str = "") -> tuple[Message, Counter[str]]:
        """A message without what is private; the same object where nothing was found. What was a secret in
        one part of it is taken out of the others too."""
        leaf = LeafRedactor(self._detectors, self._key, scope)
        ids = LeafRedactor(self._detectors, self._key, "")
        redacted = TraceParts(leaf, ids).message(message)
        echo = _Echo.of(leaf, self._detectors, list(redacted.texts()))
        found = leaf.findings + ids.findings
        if echo is None:
            return redacted, found
        return echo.message(redacted), found + echo.leaf.findings

    def redact_trace(self, trace: Trace) -> tuple[Trace, Counter[str]]:
        """The trace with every string redacted, `redaction` and `worked_in` set, and what was found by
        type.

        User names that its paths give away are redacted throughout. A message that several contexts
        share is redacted and counted once. A trace that carries this version already is returned as it is.
        """
        if trace.redaction == self.rules.version:
            return trace, Counter()
        redacted, found, *_ = self._redact(trace)
        return redacted, found

    def redact_again(self, trace: Trace) -> "Renewed":
        """A redacted trace with its text as these rules and values leave it. Its id and every placeholder
        in it stay."""
        redacted, found, leaf, echo = self._redact(trace)
        return Renewed(dataclasses.replace(redacted, trace_id=trace.trace_id), found, leaf, echo)

    def without(self, trace: Trace, values: Mapping[str, str]) -> tuple[Trace, Counter[str]]:
        """A redacted trace without these values, each given with its type, in any form; and what was found
        by type."""
        echo = self._echo_of(values, trace.trace_id, list(dict.fromkeys(trace_texts(trace))))
        return (echo.trace(trace), echo.leaf.findings) if echo else (trace, Counter())

    def message_without(self, message: Message, values: Mapping[str, str], scope: str) -> Message:
        """The same of a message, with the placeholders of one `scope` (a trace id)."""
        echo = self._echo_of(values, scope, list(message.texts()))
        return echo.message(message) if echo else message

    def _echo_of(self, values: Mapping[str, str], scope: str, texts: list[str]) -> "_Echo | None":
        taken = LeafRedactor(self._detectors, self._key, scope, taken=dict(values))
        return _Echo.of(taken, self._detectors, texts)

    def _redact(self, trace: Trace) -> "tuple[Trace, Counter[str], LeafRedactor, _Echo | None]":
        """Redact in two passes: by the rules, then by what these found to be secret."""
        places = [t for t in (trace.origin, trace.project) if t] + [
            step.cwd for context in trace.contexts for step in context.steps if step.cwd
        ]
        texts = list(dict.fromkeys(trace_texts(trace)))
        detectors, needs = self._detectors.with_names_of(texts, set(places))
        ids = LeafRedactor(detectors, self._key, "")
        trace_id = redact_id(ids, trace.trace_id)
        leaf = LeafRedactor(detectors, self._key, trace_id, needs)
        shown = take_secret_outputs(trace, leaf)
        redacted = dataclasses.replace(trace, **TraceParts(leaf, ids).trace(shown))
        if trace.redaction is not None:
            leaf.taken.update(find_values_of_placeholders(texts, self._key, trace_id))
        echo = _Echo.of(leaf, detectors, texts)
        if echo is not None:
            redacted = echo.trace(redacted)
            self._found |= echo.values.kinds
        found = leaf.findings + ids.findings + (echo.leaf.findings if echo else Counter())
        places_leaf = LeafRedactor(detectors, self._key, trace_id)

        def show(text: str) -> str:
            return places_leaf.redact(echo.leaf.redact(text) if echo else text)

        worked_in = find_trace_projects(trace, show, self._key)
        redacted = dataclasses.replace(
            redacted, trace_id=trace_id, redaction=self.rules.version, worked_in=worked_in
        )
        return redacted, found, leaf, echo


class _Echo(NamedTuple):
    """What redacts the secrets that were taken in one place wherever else they stand."""

    values: TakenValues
    leaf: LeafRedactor

    @classmethod
    def of(cls, leaf: LeafRedactor, base: Detectors, texts: list[str]) -> "_Echo | None":
        """For what another redactor took of these texts; None where none of it differs from ordinary text."""
        secrets = {value: kind for value, kind in leaf.taken.items() if kind not in NO_SECRETS}
        values = TakenValues(secrets, base, texts) if secrets else None
        if not values:
            return None
        again = LeafRedactor(values, leaf.key, leaf.scope, taken=leaf.taken, same=values.same)
        return cls(values, again)

    def trace(self, trace: Trace) -> Trace:
        """The trace without the values; the same one where none stands in it."""
        messages = dict.fromkeys(message for context in trace.contexts for message in context.messages)
        holders = self.values.find_holders(messages, strings_beside_messages(trace))
        if holders is None:
            return trace
        return dataclasses.replace(trace, **TraceParts(self.leaf, only=holders).trace(trace))

    def message(self, message: Message) -> Message:
        """The message without the values."""
        return TraceParts(self.leaf).message(message)


@dataclasses.dataclass(frozen=True, slots=True)
class Renewed:
    """A trace that was redacted before, redacted again: what was found by type, and what takes the same out
    of messages that were written in view of it."""

    trace: Trace
    found: Counter[str]
    _leaf: LeafRedactor = dataclasses.field(repr=False)
    _echo: _Echo | None = dataclasses.field(default=None, repr=False)

    def message(self, message: Message) -> Message:
        """A message of somebody who was shown the trace as it was: also what its own surroundings do not
        give away is taken out of it."""
        strip = partial(_without, by=self._leaf)
        calls = tuple(
            dataclasses.replace(call, arguments=strip(call.arguments)) for call in message.tool_calls
        )
        reasoning = strip(message.reasoning) if message.reasoning else message.reasoning
        told = dataclasses.replace(
            message, content=strip(message.content), tool_calls=calls, reasoning=reasoning
        )
        if self._echo:
            told = self._echo.message(told)
        ids = LeafRedactor(self._leaf.detectors, self._leaf.key, "")
        leaf = LeafRedactor(self._leaf.detectors, self._leaf.key, self._leaf.scope)
        return TraceParts(leaf, ids).message(told)


def _without(text: str, by: LeafRedactor) -> str:
    """The text without the values that were replaced, as they are and as a JSON string spells them."""
    for value in sorted(by.taken, key=len, reverse=True):
        if len(value) >= MIN_SECRET and (value in text or json.dumps(value)[1:-1] in text):
            stand_in = by.placeholder(value)
            text = text.replace(value, stand_in).replace(json.dumps(value)[1:-1], stand_in)
    return text
