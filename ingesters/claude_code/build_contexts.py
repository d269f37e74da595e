"""Drafts → contexts: messages, steps, and from which step on the record is not all the agent saw."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from tracemill.harnesses.inferred_tools import infer_tool
from tracemill.ingesters.claude_code.content_blocks import loaded_tools_in_block
from tracemill.ingesters.claude_code.draft_contexts import Draft
from tracemill.ingesters.claude_code.steps import StepUnit, TextUnit
from tracemill.ingesters.claude_code.token_check import ADDED, PromptCheck, Seen, thinking_tokens_for_check
from tracemill.records.families import family_of
from tracemill.records.ingest_report import IngestReport
from tracemill.records.message import Message, ToolSpec
from tracemill.records.trace import Context, Fidelity, Step, Usage

CLEARED = "[Old tool result content cleared]"
"""What stands for a result that a microcompaction blanked."""
NO_PROMPT = "answer that follows no prompt"
"""What the self-check flags, with the version of the program that wrote the answer."""
NO_SUCH_TOOL = "No such tool available"
"""How the result of a call begins whose tool there was none of."""
_PLACEHOLDERS = ("[image: ", "[document: ", "[tool loaded: ")


def build_context(
    draft: Draft, index: int, check: PromptCheck, definitions: Mapping[str, ToolSpec], report: IngestReport
) -> Context:
    """One draft as a context; the steps that began in it are its own. `definitions` are the recorded
    schemas of tools that are loaded by name."""
    build = _Build(draft, check, report)
    build.run()
    prompt = draft.prompt
    recorded = prompt.tools if prompt is not None else None
    return Context(
        index,
        tuple(build.messages),
        tuple(build.steps),
        draft.start,
        _declared(recorded, build.messages, definitions, report) if recorded is not None else (),
        Fidelity(
            "recorded" if prompt is not None and prompt.system is not None else "absent",
            "recorded" if recorded is not None else "absent",
            _completeness(build),
        ),
        build.lost_from or 0,
        build.approximate_from,
    )


def _completeness(build: "_Build") -> Literal["complete", "approximate", "lost"]:
    if build.lost_from is not None:
        return "lost"
    return "complete" if build.approximate_from is None else "approximate"


def _declared(
    recorded: tuple[ToolSpec, ...],
    messages: list[Message],
    definitions: Mapping[str, ToolSpec],
    report: IngestReport,
) -> tuple[ToolSpec, ...]:
    """The recorded tools, and behind them those that were loaded by name or called all the same: by their
    recorded definition, else by what their calls show."""
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
class _Build:
    """A context while it is put together. `chars` counts what is shown of the messages so far."""

    draft: Draft
    check: PromptCheck
    report: IngestReport
    messages: list[Message] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    lost_from: int | None = None
    chars: int = 0
    thought: int = 0
    thoughts: int = 0
    latest: int = 0
    shared_step: Seen | None = None
    opened: bool = False
    checked: int = 0
    unanswered: bool = False
    stood_in: bool = False
    approximate_from: int | None = None

    def run(self) -> None:
        """All units of the draft."""
        draft = self.draft
        origin = draft.origin
        if origin is not None and origin.lost_at is not None and origin.lost_at < draft.shared:
            draft.lose(origin.lost_at)
        if draft.prompt is not None and draft.prompt.system is not None:
            # The check holds messages against tokens; what stands before them is its base.
            self.messages.append(Message("system", draft.prompt.system))
        for place, unit in enumerate(draft.units):
            if isinstance(unit, TextUnit):
                self._add(unit.content)
                self.stood_in = self.stood_in or unit.stood_in
            elif unit is not None:
                self._step(unit, place, unit.home == draft.number)

    def _step(self, unit: StepUnit, place: int, own: bool) -> None:
        """A response and its results; a step where it began in this draft and is a whole action."""
        if not unit.acts:
            if own:
                self.report.flags["step without action"] += 1
            return
        if own:
            if self.latest > unit.order:
                # It stands before this step, which may not have seen it: two clients wrote one file.
                self.report.flags["late tool result"] += 1
                self.draft.lose(place)
            if unit.cut_off:
                self.report.flags["response that the user cut off"] += 1
            else:
                self._own_step(unit, place)
        elif place < self.draft.shared and unit.usage is not None and unit.usage.prompt_tokens:
            self.shared_step = self._seen(unit.usage.prompt_tokens)
            self.checked = len(self.messages)
        self._follow(unit)

    def _own_step(self, unit: StepUnit, place: int) -> None:
        index = len(self.steps)
        usage = unit.usage or Usage()
        if self.unanswered:
            self._miss_a_result(place)
        if self._answers_nothing(unit):
            self.report.flags[f"{NO_PROMPT} ({unit.version or 'no version'})"] += 1
        if usage.prompt_tokens:
            self._check(usage.prompt_tokens, place)
        if self.lost_from is None and self.draft.lost_at is not None and place >= self.draft.lost_at:
            self.lost_from = index
        if self.stood_in and self.approximate_from is None:
            self.approximate_from = index
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

    def _answers_nothing(self, unit: StepUnit) -> bool:
        """Whether the model spoke on after it had said all: what it was asked then stands elsewhere, or
        nowhere. Records without links tell no order."""
        before = self.messages[-1] if self.messages else None
        return (
            before is not None and before.role == "assistant" and not before.tool_calls and bool(unit.parent)
        )

    def _miss_a_result(self, place: int) -> None:
        """The model went on from a call whose result is not in the file: no request is sent without one."""
        if self.draft.lost_at is None or self.draft.lost_at > place:
            self.report.flags["call without a result"] += 1
            self.draft.lose(place)

    def _check(self, tokens: int, place: int) -> None:
        """Holds the tokens against the prefix; where they part, something is missing from here on."""
        draft, first = self.draft, not self.opened
        lost = draft.lost_at is not None and place >= draft.lost_at and self.lost_from is None
        if first:
            self.opened = True
            # A microcompaction changes the shared steps themselves, so they tell nothing there.
            self.check.open(None if draft.start == "microcompaction" else self.shared_step)
        if lost:
            self.check.lose()
        fault = self.check.step(self._seen(tokens), first, not draft.shared and not lost)
        if fault and not (fault == ADDED and self._stands_for_more()):
            self.report.flags[fault] += 1
            draft.lose(place)
        self.checked = len(self.messages)

    def _stands_for_more(self) -> bool:
        """Whether a placeholder came since the last step: an image, a document, tools that were loaded."""
        return any(mark in m.content for m in self.messages[self.checked :] for mark in _PLACEHOLDERS)

    def _seen(self, tokens: int) -> Seen:
        return Seen(self.chars, tokens, self.thought, self.thoughts)

    def _follow(self, unit: StepUnit) -> None:
        """The response itself and its results."""
        message = unit.message()
        before = self.chars
        self._add(message)
        completion = unit.usage.completion_tokens if unit.usage is not None else None
        thinking = len(message.reasoning or "")
        about = thinking_tokens_for_check(thinking, self.chars - before, completion)
        self.thoughts += about
        # What is recorded of thinking may be its summary; like all else, it may rise by a token a character.
        self.thought = max(about, thinking)
        self.unanswered = self.unanswered or len(unit.results) < len(unit.calls)
        for result in _results(unit, self.draft.cleared):
            self._add(result)
        self.latest = max(self.latest, unit.last_result)

    def _add(self, message: Message) -> None:
        self.messages.append(message)
        self.chars += len(message.content)
        for call in message.tool_calls:
            self.chars += len(call.arguments) + len(call.name)


def _results(unit: StepUnit, cleared: frozenset[str]) -> Iterator[Message]:
    """The results of a step in the order they came, those that were blanked as placeholders."""
    for call_id, result in unit.results.items():
        yield replace(result, content=CLEARED) if call_id in cleared else result
