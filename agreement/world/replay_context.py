"""Replay a context once into the history that the environments of its steps share."""

import re
from collections.abc import Iterator, Sequence

from tracemill.agreement.calls.arguments import line_from_arguments, patch_from_arguments
from tracemill.agreement.files.edits import TEXTS, parse_edit_changes
from tracemill.agreement.files.file_text import FilePiece, parse_numbered_file_text
from tracemill.agreement.shell_effects.command_effects import build_command_effects
from tracemill.agreement.world.world_state import ContextHistory, EnvironmentState
from tracemill.harnesses.agents.registry import harness_for, rule_for
from tracemill.harnesses.core.vocabulary import Operation, ToolRule
from tracemill.harnesses.operations import find_call_operation, resolve_operation_tool
from tracemill.harnesses.shell.operations import join_path
from tracemill.harnesses.shell.patches import read_patch
from tracemill.harnesses.text_calls import tool_or_text_calls
from tracemill.records.message import Action, Message, ToolCall, ToolSpec
from tracemill.records.trace import Context, TraceState

_WINDOW = re.compile(r"\[File: (.+?) \((\d+) lines? total\)\]")
_REWRITES_ALL = re.compile(
    r"\bgit\s+(?:checkout|stash|reset|restore|apply|pull|merge|rebase|switch)\b|\bpatch\b"
)


def replay_context(context: Context, harness: str) -> ContextHistory:
    """Return the history of a context, in one pass over its messages."""
    record = ContextHistory(context.messages)
    cwds = {step.cut: step.cwd for step in context.steps}
    for number, message in enumerate(context.messages):
        if message.role == "assistant":
            for call, at, result in _calls_with_results(context.messages, number, harness):
                if not result.is_error and not result.error_kind:
                    _record_call(record, call, at, result.content, cwds.get(number), harness)
    return record


def environment_at(
    state: TraceState, tools: tuple[ToolSpec, ...], record: ContextHistory | None = None
) -> EnvironmentState:
    """Return the environment at a step.

    `record` is the replayed history of the step's context; it is built where None.
    """
    harness = state.trace.harness
    return EnvironmentState(
        harness,
        state.step.cwd,
        tools,
        record or replay_context(state.context, harness),
        state.step.cut,
    )


def _calls_with_results(
    messages: Sequence[Message], number: int, harness: str
) -> Iterator[tuple[ToolCall, int, Message]]:
    """Yield the calls of an action, each with the index of its result message and that message.

    The next message counts as the result of an action written as text.
    """
    message = messages[number]
    for made in tool_or_text_calls(Action.of(message), harness):
        call = resolve_operation_tool(made, harness)
        for at in range(number + 1, len(messages)):
            answer = messages[at]
            if answer.role == "assistant":
                break
            if not message.tool_calls or answer.tool_call_id == call.id:
                yield call, at, answer
                break


def _record_call(
    record: ContextHistory, call: ToolCall, at: int, text: str, cwd: str | None, harness: str
) -> None:
    rule = rule_for(harness_for(harness), call.name)
    window = _WINDOW.search(text)
    if window:
        record.opened.append((at, join_path(cwd or "", window[1])))
    if rule is None:
        return
    if rule.reading == "shell":
        _record_shell(record, line_from_arguments(call.parsed() or {}, rule) or "", at, cwd)
    elif rule.reading == "patch":
        _record_patch(record, patch_from_arguments(call, rule), at, cwd)
    else:
        operation = find_call_operation(call, harness).operation
        _record_file(record, _path(call, rule, cwd, record, at), operation, call, at, text)
    if window and rule.default_target:
        _record_piece(
            record, join_path(cwd or "", window[1]), at, parse_numbered_file_text(text), int(window[2])
        )


def _path(call: ToolCall, rule: ToolRule, cwd: str | None, record: ContextHistory, at: int) -> str | None:
    given = call.parsed() or {}
    for name in rule.target:
        if name in rule.paths and isinstance(given.get(name), str):
            return join_path(cwd or "", given[name])
    return EnvironmentState(record=record, cut=at).open_file if rule.default_target else None


def _record_file(
    record: ContextHistory, path: str | None, operation: Operation, call: ToolCall, at: int, text: str
) -> None:
    given = call.parsed() or {}
    if path is None:
        return
    events = record.files.setdefault(path, [])
    if operation == Operation.CREATE:
        body = next((given[n] for n in TEXTS if isinstance(given.get(n), str)), None)
        lines = tuple(body.split("\n")) if body is not None else ()
        events.append((at, None, (), None))
        _record_piece(record, path, at, FilePiece(1, lines) if lines else None, len(lines) or None)
    elif operation == Operation.EDIT:
        events.append((at, None, parse_edit_changes(given) or (), None))
        _record_piece(record, path, at, parse_numbered_file_text(text), None)
    elif operation == Operation.READ:
        _record_piece(record, path, at, parse_numbered_file_text(text), None)


def _record_patch(record: ContextHistory, patch: str, at: int, cwd: str | None) -> None:
    for each in read_patch(patch):
        path = join_path(cwd or "", each.path)
        events = record.files.setdefault(path, [])
        events.append((at, None, (), None))
        if each.kind == "Add" and each.readable:
            lines = each.hunks[0].new
            _record_piece(record, path, at, FilePiece(1, lines), len(lines))
        if each.moved_to is not None:
            record.files.setdefault(join_path(cwd or "", each.moved_to), []).append((at, None, (), None))


def _record_piece(
    record: ContextHistory, path: str, at: int, piece: FilePiece | None, total: int | None
) -> None:
    if piece is not None:
        record.files.setdefault(path, []).append((at, piece, (), total))


def _record_shell(record: ContextHistory, line: str, at: int, cwd: str | None) -> None:
    if _REWRITES_ALL.search(line):
        for events in record.files.values():
            events.append((at, None, (), None))
        return
    for effect in build_command_effects(line, cwd):
        if effect.wrote:
            record.files.setdefault(effect.wrote, []).append((at, None, (), None))
