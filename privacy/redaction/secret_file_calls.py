# ruff: noqa: E501 (patterns)
"""Redact calls that name a file of secrets, and the results that show it."""

import re
from dataclasses import replace

from tracemill.harnesses.agents.registry import harness_for, rule_of
from tracemill.harnesses.operations import action_command_line
from tracemill.harnesses.text_calls import calls_in_text
from tracemill.privacy.core.placeholder_keys import find_keyed_placeholders
from tracemill.privacy.redaction.redact_json import is_json, redact_json
from tracemill.privacy.redaction.redact_text import ScopedTextRedactor, resolve_redacted_spans
from tracemill.privacy.secrets.secret_file_texts import find_file_secrets, named_secret_file
from tracemill.privacy.secrets.secret_files import FileKind
from tracemill.records.message import Message, ToolCall, read_arguments
from tracemill.records.trace import Context, Trace

_SHOWS_WHOLE = re.compile(
    r"\s*(?:cd [^\n&;]+(?:&&|;)\s*)?(?:sudo )?(?:git(?: -\S+)* (?:show|diff|log|cat-file)|diff|colordiff|comm)\b"
)
_SHOWS = re.compile(
    r"\b(?:cat|bat|head|tail|less|more|nl|tac|[ef]?grep|rg|ag|awk|sed|cut|sort|uniq|strings|diff|colordiff|comm|paste"
    r"|git(?: -\S+)* (?:show|diff|log|cat-file|grep))\b"
)
_PLACE = re.compile(r"(?i)(?:^|_)(?:path|file|filename|command|pattern|cwd|description)$")
_Made = dict[tuple[int, FileKind | None], Message]


def take_secret_files(trace: Trace, leaf: ScopedTextRedactor) -> Trace:
    """Replace the values of secret files in calls and results; same trace where there are none."""
    made: _Made = {}
    contexts = tuple(_context(context, trace.harness, leaf, made) for context in trace.contexts)
    if all(new is old for new, old in zip(contexts, trace.contexts, strict=True)):
        return trace
    return replace(trace, contexts=contexts)


def _context(context: Context, harness: str, leaf: ScopedTextRedactor, made: _Made) -> Context:
    waiting: dict[str, FileKind] = {}
    written: FileKind | None = None  # of the call that is written in the text before
    messages: list[Message] = []
    for message in context.messages:
        kind = None
        if message.tool_calls:
            judged = {call.id: _judge(call, harness) for call in message.tool_calls}
            waiting |= {name: each[0] for name, each in judged.items() if each}
            if any(each and each[1] for each in judged.values()):
                key = id(message), None
                if key not in made:
                    made[key] = _with_calls(message, judged, leaf)
                message = made[key]
        elif message.role == "assistant":
            written = _judge_text(message.content, harness)
        elif message.content and (kind := waiting.get(message.tool_call_id or "") or written):
            key = id(message), kind
            if key not in made:
                content = _redacted(message.content, kind, leaf)
                made[key] = message if content == message.content else replace(message, content=content)
            message = made[key]
        if message.role != "assistant" or message.tool_calls:
            written = None
        messages.append(message)
    if all(new is old for new, old in zip(messages, context.messages, strict=True)):
        return context
    return replace(context, messages=tuple(messages))


def _judge_text(text: str, harness: str) -> FileKind | None:
    """Return the kind of secret file that a call in a text shows, in harnesses that act that way."""
    if not text or not harness_for(harness).results_as_user or not named_secret_file(text):
        return None
    calls = calls_in_text(text, harness)
    judged = _judge(calls[0], harness) if len(calls) == 1 else None
    return judged[0] if judged and not judged[1] else None


def _judge(call: ToolCall, harness: str) -> tuple[FileKind, bool] | None:
    """Return the kind of secret file that a call names, and whether it writes it; else None."""
    if not named_secret_file(call.arguments):  # as JSON spells it
        return None
    rule = rule_of(harness, call.name)
    arguments = read_arguments(call.arguments) if rule else None
    if rule is None or arguments is None:
        return None
    if rule.reading == "shell":
        line = action_command_line(arguments, rule)
        kind = named_secret_file(line) if line and _SHOWS.search(line) else None
        if line is None or kind is None or (kind is FileKind.SECRET and not _SHOWS_WHOLE.match(line)):
            return None
    else:
        paths = [each for name in rule.paths if isinstance(each := arguments.get(name), str)]
        kind = next((each for path in paths if (each := named_secret_file(path))), None)
    return (kind, rule.reading != "shell") if kind else None


def _with_calls(
    message: Message, judged: dict[str, tuple[FileKind, bool] | None], leaf: ScopedTextRedactor
) -> Message:
    calls = tuple(
        replace(call, arguments=_written(call.arguments, each[0], leaf))
        if (each := judged[call.id]) and each[1] and is_json(call.arguments)
        else call
        for call in message.tool_calls
    )
    return message if calls == message.tool_calls else replace(message, tool_calls=calls)


def _written(arguments: str, kind: FileKind, leaf: ScopedTextRedactor) -> str:
    return redact_json(
        arguments,
        lambda value, name: value if not name or _PLACE.search(name) else _redacted(value, kind, leaf),
    )


def _redacted(text: str, kind: FileKind, leaf: ScopedTextRedactor) -> str:
    """Return the text without the values of the file."""
    if len(text) < 4 or is_json(text):
        return text
    pieces: list[str] = []
    done = 0
    for span in resolve_redacted_spans(text, list(find_file_secrets(text, kind))):
        value = text[span.start : span.end]
        if find_keyed_placeholders(value) or leaf.detectors.is_allowed(value):
            continue
        pieces += (text[done : span.start], leaf.take(span.kind, value))
        done = span.end
    return "".join((*pieces, text[done:]))
