"""Redact a trace part by part: every string that a file or a model gave.

This program's own words stay: roles, names of formats and versions of the rules, where the value is one of
them. A part without anything private stays the same object.
"""

import dataclasses
import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, TypeVar

from tracemill.privacy.core.placeholder_keys import placeholder_as_identifier
from tracemill.privacy.redaction.redact_text import ScopedTextRedactor, redact_arguments
from tracemill.records.message import Message, ToolCall, ToolSpec
from tracemill.records.trace import Context, Step, Trace

_NAME_LENGTH = 64  # characters of a tool's name: https://platform.openai.com/docs/api-reference/chat
_OWN_WORD = re.compile(r"[a-z_]{1,24}")
_TIME = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:?\d\d)?")
_TEXTS = ("harness_version", "project", "repository", "instance_id", "licence", "started_at", "origin")
_MADE_ID = re.compile(r"[a-z_]{1,24}-[0-9a-f]{20}")  # `records.identity.make_trace_id`
_OWN = ("source", "dialect", "harness")  # keys of this program's own tables

_Part = TypeVar("_Part")
_Record = TypeVar("_Record", Message, ToolCall, ToolSpec, Step, Context)


class TraceParts:
    """A redactor of the parts of one trace.

    `leaf` redacts its texts. `ids` redacts what other traces refer to (ids of traces, calls and responses),
    so its scope is no single trace; without it ids stay. `only` limits which messages are redacted.
    """

    def __init__(
        self,
        leaf: ScopedTextRedactor,
        ids: ScopedTextRedactor | None = None,
        only: Collection[Message] | None = None,
    ) -> None:
        self._leaf, self._ids, self._only = leaf, ids, only
        self._messages: dict[Message, Message] = {}
        self._names: dict[str, str] = {}
        self._clean: frozenset[str] = frozenset()

    def trace(self, trace: Trace) -> dict[str, Any]:
        """Return the redacted fields of a trace, except `trace_id`."""
        self._look_ahead(trace)
        fields: dict[str, Any] = {name: _maybe(self._text, getattr(trace, name)) for name in _TEXTS}
        fields |= {name: self._own(getattr(trace, name)) for name in _OWN}
        fields["parent_trace_id"] = _maybe(self._id, trace.parent_trace_id)
        fields["parent_call_id"] = _maybe(self._id, trace.parent_call_id)
        fields["seen_tools"] = tuple(self.name(name) for name in trace.seen_tools)
        fields["notes"] = {self._text(key): count for key, count in trace.notes.items()}
        fields["contexts"] = _each(trace.contexts, self._context)
        return fields

    def message(self, message: Message) -> Message:
        """Return a redacted message."""
        return _changed(
            message,
            content=self._leaf.redact(message.content),
            tool_calls=_each(message.tool_calls, self._call),
            tool_call_id=_maybe(self._id, message.tool_call_id),
            name=_maybe(self.name, message.name),
            error_kind=_maybe(self._own, message.error_kind),
            reasoning=_maybe(self._text, message.reasoning),
        )

    def name(self, name: str) -> str:
        """Return the redacted name of a tool or speaker.

        A changed name is one that model APIs accept, and the same for the same name.
        """
        if not name or name in self._clean:
            return name
        if name not in self._names:
            new = self._leaf.redact(name)
            self._names[name] = (
                name if new == name else placeholder_as_identifier(new, self._leaf.digits(name), _NAME_LENGTH)
            )
        return self._names[name]

    def _look_ahead(self, trace: Trace) -> None:
        """Check all ids and names at once, since most need no detector but that of drawn words."""
        short = dict.fromkeys(_short_strings(trace))
        together = " ".join(short)
        needs = self._leaf.needs_of(together)
        if "\\" not in together and needs.of_words and not self._leaf.detectors.spans(together, needs):
            self._clean = frozenset(short)

    def _context(self, context: Context) -> Context:
        return _changed(
            context,
            messages=_each(context.messages, self._shared_message),
            steps=_each(context.steps, self._step),
            tools=_each(context.tools, self._tool),
        )

    def _shared_message(self, message: Message) -> Message:
        if self._only is not None and message not in self._only:
            return message
        if message not in self._messages:
            self._messages[message] = self.message(message)
        return self._messages[message]

    def _call(self, call: ToolCall) -> ToolCall:
        arguments = redact_arguments(self._leaf, call.arguments)
        return _changed(call, id=self._id(call.id), name=self.name(call.name), arguments=arguments)

    def _step(self, step: Step) -> Step:
        return _changed(
            step,
            model=_maybe(self._text, step.model),
            family=self._own(step.family),
            native_id=_maybe(self._id, step.native_id),
            cwd=_maybe(self._text, step.cwd),
            timestamp=_maybe(self._text, step.timestamp),
        )

    def _tool(self, tool: ToolSpec) -> ToolSpec:
        description, parameters = self._leaf.redact(tool.description), self._value(tool.parameters)
        same = parameters == tool.parameters
        return _changed(
            tool,
            name=self.name(tool.name),
            description=description,
            parameters=tool.parameters if same else parameters,
        )

    def _value(self, value: Any) -> Any:
        """Return a decoded JSON value with its strings and keys redacted."""
        if isinstance(value, str):
            return self._leaf.redact(value)
        if isinstance(value, Mapping):
            return {self._value(key): self._value(item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [self._value(item) for item in value]
        return value

    def _text(self, text: str) -> str:
        if not text or text in self._clean or _TIME.fullmatch(text):
            return text
        return self._leaf.redact(text)

    def _own(self, word: str) -> str:
        return word if not word or _OWN_WORD.fullmatch(word) else self._leaf.redact(word)

    def _id(self, identity: str) -> str:
        if self._ids is None or not identity or identity in self._clean:
            return identity
        return redact_id(self._ids, identity)


def redact_id(ids: ScopedTextRedactor, identity: str) -> str:
    """Return a redacted id in characters that file names and ids allow."""
    new = identity if _MADE_ID.fullmatch(identity) else ids.redact(identity)
    return identity if new == identity else placeholder_as_identifier(new, ids.digits(identity), 128)


def _short_strings(trace: Trace) -> Iterator[str]:
    yield from trace.seen_tools
    for context in trace.contexts:
        for message in context.messages:
            yield from filter(None, (message.tool_call_id, message.name))
            for call in message.tool_calls:
                yield call.id
                yield call.name
        for step in context.steps:
            yield from filter(None, (step.model, step.native_id))


def strings_beside_messages(trace: Trace) -> Iterator[str]:
    """Yield the strings of a trace besides its messages and their ids, each once."""
    found = {text for name in (*_TEXTS, *_OWN) if (text := getattr(trace, name))}
    found.update(trace.seen_tools, trace.notes)
    for context in trace.contexts:
        for step in context.steps:
            found.update(filter(None, (step.model, step.cwd)))
        for tool in context.tools:
            found.update((tool.name, tool.description, json.dumps(tool.parameters, ensure_ascii=False)))
    yield from found


def _maybe(redact: Callable[[str], str], text: str | None) -> str | None:
    return redact(text) if text else text


def _each(items: tuple[_Part, ...], redact: Callable[[_Part], _Part]) -> tuple[_Part, ...]:
    """Return the tuple with every item redacted; the same object where none changed."""
    new = tuple(redact(item) for item in items)
    return items if all(a is b for a, b in zip(new, items, strict=True)) else new


def _changed(record: _Record, **fields: Any) -> _Record:
    """Return the record with these fields; the same object where none changed."""
    changes = {
        name: value
        for name, value in fields.items()
        if value is not (old := getattr(record, name)) and (isinstance(value, tuple) or value != old)
    }
    return dataclasses.replace(record, **changes) if changes else record
