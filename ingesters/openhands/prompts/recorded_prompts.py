"""Contexts rebuilt from events, put under the prompts that completion logs recorded.

A log is found by the id of its response. Where a step has one, its prompt and tools are the logged ones,
message by message; what only the events know (which results failed, the step's time and folder) is kept.
A context goes on as long as one prompt extends the other, so that a past shown in another form than
before begins a context of its own.
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
    """A step to place: `prompt` as rebuilt, `tail` what followed it there, `call` its log."""

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
    """The contexts under their logged prompts; as they are where no log fits. `calls` in order of time.

    As many as `lost_steps` calls that no step bears are taken for the steps that the events lost, where
    their prompts go on from the step before. `report.flags` says how many steps have a logged prompt, how
    many lost ones were found, and how many logs are of no step.
    """
    if not calls:
        return list(contexts)
    acted = {step.native_id: c.messages[step.cut] for c in contexts for step in c.steps if step.native_id}
    fitting = (c for c in calls if c.response_id in acted and _fits(c, acted[c.response_id]))
    matched = {call.response_id: call for call in fitting}
    merge = _Merge(contexts, lost_steps)
    for entry in _entries(contexts, matched, calls) if matched else ():
        merge.place(entry)
    report.flags.update({FROM_LOG: len(matched)} if matched else {})
    report.flags.update({FOUND: merge.found} if merge.found else {})
    unused = len(calls) - len(matched) - merge.found
    report.flags.update({UNUSED: unused} if unused else {})
    return merge.contexts(harness) if matched else list(contexts)


class _Merge:
    """Places steps in order, each under the prompt it is known to have had."""

    def __init__(self, contexts: Sequence[Context], lost_steps: int) -> None:
        self.found = 0
        self._missing = lost_steps
        self._drafts: list[_Draft] = []
        self._tail: Sequence[Message] = ()
        results = (m for context in contexts for m in context.messages if m.role == "tool")
        self._results = {m.tool_call_id or "": m for m in results}

    def place(self, entry: _Entry) -> None:
        """One step; a guess only where it goes on from the step before."""
        call = entry.call
        prompt = [self._with_verdict(m) for m in call.prompt] if call else entry.prompt
        goes_on = bool(self._drafts) and _goes_on(self._drafts[-1], prompt, entry)
        if entry.is_guess:
            if not goes_on or self.found == self._missing:
                return
            self.found += 1
        if goes_on:
            draft = self._drafts[-1]
            _take_shown_form(draft, prompt)
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
        """The contexts made, in order."""
        self._end()
        made: list[Context] = []
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
            made.append(context)
        return made

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
        """What followed the last step goes behind it."""
        if self._drafts:
            draft = self._drafts[-1]
            draft.messages.extend(map(completion_log_result, self._tail) if draft.in_text else self._tail)
        self._tail = ()

    def _with_verdict(self, message: Message) -> Message:
        """A logged result with what the events say of its failure."""
        known = self._results.get(message.tool_call_id or "") if message.role == "tool" else None
        if known is None:
            return message
        return replace(
            message, name=message.name or known.name, is_error=known.is_error, error_kind=known.error_kind
        )


def _fits(call: LoggedCall, action: Message) -> bool:
    """Whether a logged answer is the action the events have: the same calls, or where there are none the
    same words. Of calls in text the names alone compare."""
    words, called = _said_and_called(call.answer)
    acted_words, acted = _said_and_called(action)
    if call.in_text:
        return [name for name, _ in called] == [name for name, _ in acted]
    return called == acted and (bool(called) or words == acted_words)


def _entries(
    contexts: Sequence[Context], matched: dict[str | None, LoggedCall], calls: Sequence[LoggedCall]
) -> Iterator[_Entry]:
    """Every step in order, with the calls of no step between them as guesses."""
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
    """Calls that no event bears, as steps to try behind `last`; only those that call tools."""
    for call in calls:
        acts = call.answer.tool_calls or (call.in_text and calls_in_text(call.answer.content, "openhands"))
        if last is not None and acts and call.response_id not in matched:
            step = Step(0, 0, native_id=call.response_id, cwd=last.step.cwd)
            yield replace(last, step=step, tail=(), call=call, start="rewritten", is_guess=True)


def _goes_on(draft: _Draft, prompt: Sequence[Message], entry: _Entry) -> bool:
    """Whether a prompt is what the draft holds and more, with the same tools."""
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


def _take_shown_form(draft: _Draft, prompt: Sequence[Message]) -> None:
    """The last action as later prompts show it, where that differs in form alone."""
    acted = draft.steps[-1].cut
    mine = draft.messages[acted]
    draft.messages[acted] = replace(prompt[acted], reasoning=mine.reasoning)


def _wire(message: Message) -> tuple[Any, ...]:
    return message.role, message.content, message.tool_calls, message.tool_call_id


def _same_turn(mine: Message, theirs: Message) -> bool:
    """Whether two renderings are of one answer: equal words, equal calls."""
    return mine.role == theirs.role and _said_and_called(mine) == _said_and_called(theirs)


def _said_and_called(message: Message) -> tuple[str, list[Any]]:
    calls = message.tool_calls or calls_in_text(message.content, "openhands")
    words = message.content if message.tool_calls else message.content.partition("<function=")[0]
    return words.strip(), [(call.name, call.parsed() or call.arguments) for call in calls]


def _with_log(step: Step, call: LoggedCall) -> Step:
    """A step with what its log says of model and usage."""
    model = call.model or step.model
    usage = step.usage if step.usage != Usage() else call.usage
    return replace(step, model=model, family=family_of(model), usage=usage)
