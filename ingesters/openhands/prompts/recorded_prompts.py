"""Replace prompts rebuilt from events by the prompts that completion logs recorded.

A log is found by the id of its response. A step with a log has its prompt and tools, message by message; what
only the events know (which results failed, the step's time and folder) is kept. A context continues while one
prompt extends the other; a past in another form begins a context of its own.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tracemill.harnesses.agents.registry import Harness
from tracemill.harnesses.text_calls import calls_in_text
from tracemill.ingesters.common.growing_context import make_grown_context
from tracemill.ingesters.common.openai_messages import collect_message_calls, parse_openai_tools
from tracemill.ingesters.openhands.prompts.completion_log import LoggedCall, completion_log_result
from tracemill.records.families import family_of
from tracemill.records.ingest_report import IngestReport
from tracemill.records.message import Message, ToolSpec
from tracemill.records.trace import Context, ContextStart, Step, Usage

FROM_LOG = "prompt from its completion log"
UNUSED = "completion log of no step"
FOUND = "lost step found in its completion log"


@dataclass(frozen=True, slots=True)
class _Entry:
    """A step to place: its rebuilt prompt, the messages after it (`tail`) and its log (`call`)."""

    step: Step
    prompt: Sequence[Message]
    action: Message
    tail: Sequence[Message]
    start: ContextStart
    tools: tuple[ToolSpec, ...]
    lost: bool
    call: LoggedCall | None
    is_guess: bool = False


@dataclass(slots=True)
class _Draft:
    """A context under construction."""

    start: ContextStart
    messages: list[Message]
    steps: list[Step]
    tools: tuple[ToolSpec, ...]
    offered: Any = None
    in_text: bool = False
    lost: bool = False
    unlogged: int = 0


def apply_recorded_prompts(
    contexts: Sequence[Context],
    calls: Sequence[LoggedCall],
    harness: Harness,
    report: IngestReport,
    lost_steps: int = 0,
) -> list[Context]:
    """Return the contexts under their logged prompts, unchanged where no log fits.

    `calls` are in order of time. Up to `lost_steps` calls without a step become the steps that the events
    lost, where their prompts continue the step before. `report.flags` counts the steps with a logged prompt,
    the lost steps found, and the logs of no step.
    """
    if not calls:
        return list(contexts)
    acted = {step.native_id: c.messages[step.cut] for c in contexts for step in c.steps if step.native_id}
    fitting = (c for c in calls if c.response_id in acted and _fits(c, acted[c.response_id]))
    matched = {call.response_id: call for call in fitting}
    merge = _PromptMerger(contexts, lost_steps)
    for entry in _entries(contexts, matched, calls) if matched else ():
        merge.place(entry)
    report.flags.update({FROM_LOG: len(matched)} if matched else {})
    report.flags.update({FOUND: merge.found} if merge.found else {})
    unused = len(calls) - len(matched) - merge.found
    report.flags.update({UNUSED: unused} if unused else {})
    return merge.contexts(harness) if matched else list(contexts)


class _PromptMerger:
    """Builder that places steps in order, each under its recorded prompt if there is one."""

    def __init__(self, contexts: Sequence[Context], lost_steps: int) -> None:
        self.found = 0
        self._missing = lost_steps
        self._drafts: list[_Draft] = []
        self._tail: Sequence[Message] = ()
        results = (m for context in contexts for m in context.messages if m.role == "tool")
        self._results = {m.tool_call_id or "": m for m in results}

    def place(self, entry: _Entry) -> None:
        """Place one step; a guess is placed only if it continues the step before."""
        call = entry.call
        prompt = [self._with_failure(m) for m in call.prompt] if call else entry.prompt
        continues = bool(self._drafts) and _continues(self._drafts[-1], prompt, entry)
        if entry.is_guess:
            if not continues or self.found == self._missing:
                return
            self.found += 1
        if continues:
            draft = self._drafts[-1]
            _use_later_form(draft, prompt)
            draft.messages.extend(prompt[len(draft.messages) :])
        else:
            draft = self._begin(entry, prompt)
        step = replace(entry.step, index=len(draft.steps), cut=len(draft.messages))
        draft.steps.append(_with_log(step, call) if call else step)
        draft.messages.append(call.answer if call else entry.action)
        draft.lost |= entry.lost and call is None
        draft.unlogged += call is None
        self._tail = entry.tail

    def contexts(self, harness: Harness) -> list[Context]:
        """Return the contexts made, in order."""
        self._end()
        contexts: list[Context] = []
        for index, draft in enumerate(self._drafts):
            calls = collect_message_calls(draft.messages)
            tools = (
                parse_openai_tools(draft.offered, calls, harness)
                if draft.offered is not None
                else draft.tools
            )
            context = make_grown_context(index, draft.messages, draft.steps, draft.start, tools, draft.lost)
            if not draft.unlogged:
                context = replace(context, fidelity=replace(context.fidelity, context="complete"))
            contexts.append(context)
        return contexts

    def _begin(self, entry: _Entry, prompt: Sequence[Message]) -> _Draft:
        self._end()
        start = entry.start if self._drafts else "start"
        draft = _Draft(start, list(prompt), [], entry.tools)
        if entry.call is not None:
            draft.offered, draft.in_text = entry.call.offered, entry.call.in_text
            draft.tools = () if draft.in_text else draft.tools
        self._drafts.append(draft)
        return draft

    def _end(self) -> None:
        """Append the messages after the last step."""
        if self._drafts:
            draft = self._drafts[-1]
            draft.messages.extend(map(completion_log_result, self._tail) if draft.in_text else self._tail)
        self._tail = ()

    def _with_failure(self, message: Message) -> Message:
        """Return a logged result with the failure that the events record."""
        recorded = self._results.get(message.tool_call_id or "") if message.role == "tool" else None
        if recorded is None:
            return message
        return replace(
            message,
            name=message.name or recorded.name,
            is_error=recorded.is_error,
            error_kind=recorded.error_kind,
        )


def _fits(call: LoggedCall, action: Message) -> bool:
    """Return whether a logged answer is the action of the events: equal calls, or equal text without calls.

    Of calls in text only the names are compared.
    """
    log_text, log_calls = _text_and_calls(call.answer)
    text, calls = _text_and_calls(action)
    if call.in_text:
        return [name for name, _ in log_calls] == [name for name, _ in calls]
    return log_calls == calls and (bool(calls) or log_text == text)


def _entries(
    contexts: Sequence[Context], matched: dict[str | None, LoggedCall], calls: Sequence[LoggedCall]
) -> Iterator[_Entry]:
    """Yield every step in order; calls without a step between them are yielded as guesses."""
    place = {call.response_id: index for index, call in enumerate(calls) if call.response_id in matched}
    done, last = 0, None
    for context in contexts:
        lost = context.fidelity.context == "lost"
        for ordinal, step in enumerate(context.steps):
            call = matched.get(step.native_id)
            until = place[step.native_id] if call is not None else done
            yield from _guesses(calls[done:until], matched, last)
            done = max(done, until)
            ends = context.steps[ordinal + 1].cut if ordinal + 1 < len(context.steps) else None
            last = _Entry(
                step,
                () if call else context.messages[: step.cut],
                context.messages[step.cut],
                context.messages[step.cut + 1 : ends],
                "rewritten" if ordinal else context.start,
                context.tools,
                lost,
                call,
            )
            yield last
    yield from _guesses(calls[done:], matched, last)


def _guesses(
    calls: Sequence[LoggedCall], matched: dict[str | None, LoggedCall], last: _Entry | None
) -> Iterator[_Entry]:
    """Yield calls without events, as steps to try after `last`; only those that call tools."""
    for call in calls:
        acts = call.answer.tool_calls or (call.in_text and calls_in_text(call.answer.content, "openhands"))
        if last is not None and acts and call.response_id not in matched:
            step = Step(0, 0, native_id=call.response_id, cwd=last.step.cwd)
            yield replace(last, step=step, tail=(), call=call, start="rewritten", is_guess=True)


def _continues(draft: _Draft, prompt: Sequence[Message], entry: _Entry) -> bool:
    """Return whether a prompt begins with the messages of the draft and has the same tools."""
    call = entry.call
    if call is not None and draft.unlogged < len(draft.steps):
        if call.in_text != draft.in_text or call.offered != draft.offered:
            return False
    elif [tool.name for tool in draft.tools] != [tool.name for tool in entry.tools]:
        return False
    if len(prompt) < len(draft.messages):
        return False
    acted = draft.steps[-1].cut
    return all(
        mine is theirs or _wire(mine) == _wire(theirs) or (place == acted and _same_turn(mine, theirs))
        for place, (mine, theirs) in enumerate(zip(draft.messages, prompt, strict=False))
    )


def _use_later_form(draft: _Draft, prompt: Sequence[Message]) -> None:
    """Replace the last action by its form in later prompts, whose content is the same."""
    acted = draft.steps[-1].cut
    mine = draft.messages[acted]
    draft.messages[acted] = replace(prompt[acted], reasoning=mine.reasoning)


def _wire(message: Message) -> tuple[Any, ...]:
    return message.role, message.content, message.tool_calls, message.tool_call_id


def _same_turn(mine: Message, theirs: Message) -> bool:
    """Return whether two messages are one answer: equal text, equal calls."""
    return mine.role == theirs.role and _text_and_calls(mine) == _text_and_calls(theirs)


def _text_and_calls(message: Message) -> tuple[str, list[Any]]:
    calls = message.tool_calls or calls_in_text(message.content, "openhands")
    text = message.content if message.tool_calls else message.content.partition("<function=")[0]
    return text.strip(), [(call.name, call.parsed() or call.arguments) for call in calls]


def _with_log(step: Step, call: LoggedCall) -> Step:
    """Return a step with model and usage of its log."""
    model = call.model or step.model
    usage = step.usage if step.usage != Usage() else call.usage
    return replace(step, model=model, family=family_of(model), usage=usage)
