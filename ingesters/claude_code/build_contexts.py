"""Build contexts from drafts: messages, steps, and the step from which on the prefix is incomplete."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from tracemill.harnesses.inferred_tools import infer_tool
from tracemill.ingesters.claude_code.content_blocks import loaded_tools_in_block
from tracemill.ingesters.claude_code.draft_contexts import ContextDraft
from tracemill.ingesters.claude_code.steps import StepUnit, TextUnit
from tracemill.ingesters.claude_code.token_check import (
    ADDED,
    CheckedStep,
    PromptCheck,
    thinking_tokens_for_check,
)
from tracemill.ingesters.common.flags import NO_ACTION
from tracemill.records.families import family_of
from tracemill.records.ingest_report import IngestReport
from tracemill.records.message import Message, ToolSpec
from tracemill.records.trace import Context, Fidelity, Step, Usage

CLEARED = "[Old tool result content cleared]"
"""Replaces a result that a microcompaction cleared."""
NO_PROMPT = "answer that follows no prompt"
"""Flag of an answer without a prompt before it; the version of Claude Code is added."""
ASKED_LATER = "prompt that stands behind its answer"
"""Flag of such an answer where a prompt that waited in the queue stands behind it."""
NO_SUCH_TOOL = "No such tool available"
"""First words of the result of a call to an unknown tool."""
_PLACEHOLDERS = ("[image: ", "[document: ", "[tool loaded: ")


def build_context(
    draft: ContextDraft,
    index: int,
    check: PromptCheck,
    definitions: Mapping[str, ToolSpec],
    report: IngestReport,
) -> Context:
    """Build a context from a draft, with the steps that began in it.

    A draft is the sequence of messages collected for a context. `definitions` are the recorded schemas of
    tools that are loaded by name.
    """
    builder = _ContextBuilder(draft, check, report)
    builder.run()
    prompt = draft.prompt
    recorded = prompt.tools if prompt is not None else None
    return Context(
        index,
        tuple(builder.messages),
        tuple(builder.steps),
        draft.start,
        _all_tools(recorded, builder.messages, definitions, report) if recorded is not None else (),
        Fidelity(
            "recorded" if prompt is not None and prompt.system is not None else "absent",
            "recorded" if recorded is not None else "absent",
            _completeness(builder),
        ),
        builder.lost_from or 0,
        builder.approximate_from,
    )


def _completeness(builder: "_ContextBuilder") -> Literal["complete", "approximate", "lost"]:
    if builder.lost_from is not None:
        return "lost"
    return "complete" if builder.approximate_from is None else "approximate"


def _all_tools(
    recorded: tuple[ToolSpec, ...],
    messages: list[Message],
    definitions: Mapping[str, ToolSpec],
    report: IngestReport,
) -> tuple[ToolSpec, ...]:
    """Return the recorded tools, then those that were loaded by name or called without being declared.

    Their schema is the recorded definition, else inferred from the calls.
    """
    names = {tool.name for tool in recorded}
    calls = [call for message in messages for call in message.tool_calls]
    refused = {m.tool_call_id for m in messages if m.role == "tool" and NO_SUCH_TOOL in m.content[:200]}
    used = {call.name: None for call in calls if call.name and call.id not in refused}
    loaded = {name: None for m in messages if m.role == "tool" for name in loaded_tools_in_block(m)}
    more: list[ToolSpec] = []
    for name in {**loaded, **used}:
        if name in names:
            continue
        if name in definitions:
            more.append(definitions[name])
        elif name in used:
            report.flags["tool that was used and not declared"] += 1
            more.append(infer_tool(name, calls))
    return (*recorded, *more)


@dataclass(slots=True)
class _ContextBuilder:
    """A context under construction; `chars` counts the characters of the messages so far."""

    draft: ContextDraft
    check: PromptCheck
    report: IngestReport
    messages: list[Message] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    lost_from: int | None = None
    chars: int = 0
    last_thinking_tokens: int = 0
    all_thinking_tokens: int = 0
    last_result_line: int = 0
    shared_step: CheckedStep | None = None
    check_started: bool = False
    checked: int = 0
    unanswered: bool = False
    without_prompt: bool = False
    unread: bool = False
    is_stand_in: bool = False
    approximate_from: int | None = None

    def run(self) -> None:
        """Add all units of the draft."""
        draft = self.draft
        origin = draft.origin
        if origin is not None and origin.lost_at is not None and origin.lost_at < draft.shared:
            draft.lose(origin.lost_at)
        if draft.prompt is not None and draft.prompt.system is not None:
            # The token check compares messages only, so this text is not counted in `chars`.
            self.messages.append(Message("system", draft.prompt.system))
        for place, unit in enumerate(draft.units):
            if isinstance(unit, TextUnit):
                # A first message of role system would be the system prompt, which this is not.
                opens = unit.content.role == "system" and not self.messages
                self.unread = self.unread or unit.unread
                if unit.content.content or not unit.unread:
                    self._add_message(replace(unit.content, role="user") if opens else unit.content)
                self.is_stand_in = self.is_stand_in or unit.is_stand_in or opens
            elif unit is not None:
                self._add_step(unit, place, unit.home == draft.number)

    def _add_step(self, unit: StepUnit, place: int, own: bool) -> None:
        """Add a response and its results; it is a step if it began in this draft and is a whole action."""
        if not unit.acts:
            self.unread = self.unread or unit.unread
            if own:
                self.report.flags[NO_ACTION] += 1
            return
        if self._lacks_prompt(unit):
            self._flag_missing_prompt(unit, place, own)
        if own:
            if self.last_result_line > unit.order:
                # The result stands before this step, which may not have seen it: two clients wrote the file.
                self.report.flags["late tool result"] += 1
                self.draft.lose(place)
            if unit.cut_off:
                self.report.flags["response that the user cut off"] += 1
            elif not unit.unread:
                self._add_own_step(unit, place)
        elif place < self.draft.shared and unit.usage is not None and unit.usage.prompt_tokens:
            self.shared_step = self._checked_step(unit.usage.prompt_tokens)
            self.checked = len(self.messages)
        self._add_response(unit)

    def _add_own_step(self, unit: StepUnit, place: int) -> None:
        index = len(self.steps)
        usage = unit.usage or Usage()
        if self.unanswered:
            self._flag_missing_result(place)
        if usage.prompt_tokens:
            self._check_tokens(usage.prompt_tokens, place)
        if self.lost_from is None and self._is_incomplete(place):
            self.lost_from = index
        if self.is_stand_in and self.approximate_from is None:
            self.approximate_from = index
        self.draft.without_prompt += self.without_prompt and self.lost_from is None
        self.steps.append(
            Step(
                index,
                len(self.messages),
                unit.model,
                family_of(unit.model),
                unit.message_id,
                usage,
                unit.cwd,
                unit.timestamp,
            )
        )

    def _is_incomplete(self, place: int) -> bool:
        """Return whether a message before a place is missing or not understood."""
        return self.unread or (self.draft.lost_at is not None and place >= self.draft.lost_at)

    def _lacks_prompt(self, unit: StepUnit) -> bool:
        """Return whether the model answered twice without a prompt between the answers.

        The prompt is then at another place or missing. Records without links have no such order.
        """
        before = self.messages[-1] if self.messages else None
        return (
            before is not None and before.role == "assistant" and not before.tool_calls and bool(unit.parent)
        )

    def _flag_missing_prompt(self, unit: StepUnit, place: int, own: bool) -> None:
        """Flag that a prompt is missing before an answer.

        Context is lost if a prompt that waited in the queue is then placed after the answer.
        """
        if unit.cut_off:
            return
        self.without_prompt = True
        if not own:
            return
        self.report.flags[f"{NO_PROMPT} ({unit.version or 'no version'})"] += 1
        behind = self.draft.units[place + 1 :]
        if any(isinstance(other, TextUnit) and other.queued and other.typed < unit.order for other in behind):
            self.report.flags[ASKED_LATER] += 1
            self.draft.lose(place)

    def _flag_missing_result(self, place: int) -> None:
        """Flag a call without a result before a later answer: a request includes every result."""
        if self.draft.lost_at is None or self.draft.lost_at > place:
            self.report.flags["call without a result"] += 1
            self.draft.lose(place)

    def _check_tokens(self, tokens: int, place: int) -> None:
        """Compare reported tokens with the prefix; if they disagree, context is lost from here on."""
        draft, first = self.draft, not self.check_started
        lost = self.lost_from is None and self._is_incomplete(place)
        if first:
            self.check_started = True
            # A microcompaction changes the shared steps, so they cannot be compared with.
            self.check.start_context(None if draft.start == "microcompaction" else self.shared_step)
        if lost:
            self.check.start_segment()
        fault = self.check.check_step(self._checked_step(tokens), first, not draft.shared and not lost)
        if fault and not (fault == ADDED and self._has_placeholder()):
            self.report.flags[fault] += 1
            draft.lose(place)
        self.checked = len(self.messages)

    def _has_placeholder(self) -> bool:
        """Return whether a placeholder (image, document, loaded tools) came since the last step."""
        return any(mark in m.content for m in self.messages[self.checked :] for mark in _PLACEHOLDERS)

    def _checked_step(self, tokens: int) -> CheckedStep:
        return CheckedStep(self.chars, tokens, self.last_thinking_tokens, self.all_thinking_tokens)

    def _add_response(self, unit: StepUnit) -> None:
        """Add the response itself and its results."""
        message = unit.message()
        before = self.chars
        self._add_message(message)
        completion = unit.usage.completion_tokens if unit.usage is not None else None
        thinking = len(message.reasoning or "")
        estimate = thinking_tokens_for_check(thinking, self.chars - before, completion)
        self.all_thinking_tokens += estimate
        # Recorded thinking may be a summary; at most it has a token a character.
        self.last_thinking_tokens = max(estimate, thinking)
        self.unanswered = self.unanswered or len(unit.results) < len(unit.calls)
        self.unread = self.unread or unit.unread or not unit.unread_results <= self.draft.cleared
        for call_id, result in unit.results.items():
            is_cleared = call_id in self.draft.cleared
            self._add_message(replace(result, content=CLEARED) if is_cleared else result)
        self.last_result_line = max(self.last_result_line, unit.last_result)

    def _add_message(self, message: Message) -> None:
        self.messages.append(message)
        self.chars += len(message.content)
        for call in message.tool_calls:
            self.chars += len(call.arguments) + len(call.name)
