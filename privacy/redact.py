"""The redactor: nothing reaches a teacher or a dataset but through here.

Text is redacted message by message, before anything else is made of it. A trace that went through
carries the version of the rules; one that did not is refused wherever text would leave the machine.
Only types and counts are ever reported, never a value.
"""

import dataclasses
import socket
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from privacy.detectors import Detectors
from privacy.identity import Known, known_from_environment, make_known
from privacy.leaf import LeafRedactor, redact_arguments
from privacy.lists import env_file_variables, make_listed
from records.message import Message, ToolCall, ToolSpec
from records.state import Context, Step, Trace

RULES_VERSION = "r2"


class Redactor:
    """Replaces secrets and personal data by typed placeholders.

    `secrets` are exact values (shorter than 8 characters: ignored), `home` and `user` the user's own,
    `hosts` names of own machines. `key` is the workspace's redaction key
    (`privacy.placeholders.workspace_key`): with another key every placeholder is another one.
    """

    def __init__(
        self,
        *,
        secrets: Iterable[str] = (),
        home: str | None = None,
        user: str | None = None,
        hosts: Iterable[str] = (),
        key: bytes = b"",
    ) -> None:
        self._know(make_known(secrets, [user or ""], [home or ""], hosts))
        self._key = key

    def _know(self, known: Known) -> None:
        self._known = known
        self._detectors = Detectors(known)

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
    ) -> "Redactor":
        """A redactor that knows the values of `environ`'s secret-named variables (8 characters or
        more), those of `env_files`, its home folder and user, and this machine's name; `secrets` come
        on top.

        `redact` and `allow` list exact values and, behind `re:`, patterns. What is allowed stands
        whatever rule finds it; only known secrets do not. Raises ConfigError for a pattern that is none
        and for a file that cannot be read.
        """
        known = known_from_environment(environ, hostname or socket.gethostname())
        more = [make_known(secrets)]
        more += [known_from_environment(env_file_variables(path)) for path in env_files]
        values = {value for each in (known, *more) for value in each.secrets}
        redactor = cls(key=key)
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

    def redact_text(self, text: str, scope: str = "") -> tuple[str, Counter[str]]:
        """A text without what is private, and what was found by type. Placeholders agree inside one
        `scope` (a trace id)."""
        leaf = LeafRedactor(self._detectors, self._key, scope)
        return leaf.redact(text), leaf.findings

    def redact_message(self, message: Message, scope: str = "") -> tuple[Message, Counter[str]]:
        """A message without what is private; the same object where nothing was found."""
        leaf = LeafRedactor(self._detectors, self._key, scope)
        return _message(leaf, message), leaf.findings

    def redact_trace(self, trace: Trace) -> tuple[Trace, Counter[str]]:
        """The trace with every text redacted and `redaction` set, and what was found by type.

        User names that its paths give away are redacted throughout. A message that several contexts
        share is redacted and counted once. A trace that carries this version already is returned as it is.
        """
        if trace.redaction == RULES_VERSION:
            return trace, Counter()
        places = [t for t in (trace.origin, trace.project) if t] + [
            step.cwd for context in trace.contexts for step in context.steps if step.cwd
        ]
        texts = list(dict.fromkeys(_texts(trace)))
        detectors, needs = self._detectors.with_names_of(texts, set(places))
        leaf = LeafRedactor(detectors, self._key, trace.trace_id, needs)
        done: dict[Message, Message] = {}
        fields = {
            name: _maybe(leaf, getattr(trace, name))
            for name in ("project", "repository", "instance_id", "origin")
        }
        contexts = tuple(_context(leaf, context, done) for context in trace.contexts)
        redacted = dataclasses.replace(trace, contexts=contexts, redaction=RULES_VERSION, **fields)
        return redacted, leaf.findings


def _texts(trace: Trace) -> Iterator[str]:
    seen: set[int] = set()
    for context in trace.contexts:
        for message in context.messages:
            if id(message) not in seen:
                seen.add(id(message))
                yield message.content
                if message.reasoning:
                    yield message.reasoning
                yield from (call.arguments for call in message.tool_calls)


def _context(leaf: LeafRedactor, context: Context, done: dict[Message, Message]) -> Context:
    for message in context.messages:
        if message not in done:
            done[message] = _message(leaf, message)
    messages = tuple(done[message] for message in context.messages)
    steps = tuple(_step(leaf, step) for step in context.steps)
    tools = tuple(_tool(leaf, tool) for tool in context.tools)
    same = (
        all(new is old for new, old in zip(messages, context.messages, strict=True))
        and all(new is old for new, old in zip(steps, context.steps, strict=True))
        and all(new is old for new, old in zip(tools, context.tools, strict=True))
    )
    return context if same else dataclasses.replace(context, messages=messages, steps=steps, tools=tools)


def _message(leaf: LeafRedactor, message: Message) -> Message:
    changes: dict[str, Any] = {}
    if (content := leaf.redact(message.content)) != message.content:
        changes["content"] = content
    if message.reasoning and (reasoning := leaf.redact(message.reasoning)) != message.reasoning:
        changes["reasoning"] = reasoning
    if message.role == "user" and message.name and (name := leaf.redact(message.name)) != message.name:
        changes["name"] = name
    calls = tuple(_call(leaf, call) for call in message.tool_calls)
    if any(new is not old for new, old in zip(calls, message.tool_calls, strict=True)):
        changes["tool_calls"] = calls
    return dataclasses.replace(message, **changes) if changes else message


def _call(leaf: LeafRedactor, call: ToolCall) -> ToolCall:
    arguments = redact_arguments(leaf, call.arguments)
    return call if arguments == call.arguments else dataclasses.replace(call, arguments=arguments)


def _step(leaf: LeafRedactor, step: Step) -> Step:
    cwd = _maybe(leaf, step.cwd)
    return step if cwd == step.cwd else dataclasses.replace(step, cwd=cwd)


def _maybe(leaf: LeafRedactor, text: str | None) -> str | None:
    return leaf.redact(text) if text else text


def _tool(leaf: LeafRedactor, tool: ToolSpec) -> ToolSpec:
    description, parameters = leaf.redact(tool.description), _value(leaf, tool.parameters)
    if description == tool.description and parameters == tool.parameters:
        return tool
    return dataclasses.replace(tool, description=description, parameters=parameters)


def _value(leaf: LeafRedactor, value: Any) -> Any:
    """A decoded JSON value with its strings redacted; keys stay, they are the schema."""
    if isinstance(value, str):
        return leaf.redact(value)
    if isinstance(value, Mapping):
        return {key: _value(leaf, item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_value(leaf, item) for item in value]
    return value
