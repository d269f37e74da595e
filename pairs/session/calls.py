"""The calls of a context with their results, and pairs made of them."""

import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from tracemill.harnesses.agents.registry import harness_for
from tracemill.harnesses.operations import find_action_operation
from tracemill.harnesses.presentation import Presentation, present_context
from tracemill.harnesses.text_calls import calls_in_text
from tracemill.pairs.fix_rules import CallAttempt, was_fix_possible
from tracemill.pairs.shown_text import ShownText
from tracemill.pairs.step_pair import pair_at
from tracemill.records.message import Action, ErrorKind, Message, ToolCall, render_arguments
from tracemill.records.pair import DPOPair
from tracemill.records.trace import Context, Trace, TraceState

_RESULT_PREFIXES = ("EXECUTION RESULT of [", "OBSERVATION:")
_NAME = re.compile(r"\w+(?:[./-]\w+)+|\w*[a-z][A-Z]\w*|\w*[_\d]\w*")


def calls_with_results(state: TraceState) -> list[tuple[ToolCall, Message]]:
    """Return the calls of a step that have a result, each with its result."""
    action, harness = state.student_action, state.trace.harness
    if action.tool_calls:
        results = {result.tool_call_id: result for result in state.results}
        return [(call, results[call.id]) for call in action.tool_calls if call.id in results]
    calls, after = calls_in_text(action.text, harness), state.step.cut + 1
    if len(calls) != 1 or after >= len(state.context.messages):
        return []
    result = state.context.messages[after]
    is_result = harness_for(harness).results_as_user or result.content.startswith(_RESULT_PREFIXES)
    return [(calls[0], result)] if result.role == "user" and is_result else []


def is_user_text(message: Message) -> bool:
    """Return whether a user message contains text of a person, not only of the harness."""
    return message.role == "user" and not message.content.lstrip().startswith("<")


@dataclass(frozen=True, slots=True)
class SessionCall:
    """A tool call that was made at a step, with its result."""

    state: TraceState
    attempt: CallAttempt
    result: Message

    @property
    def call(self) -> ToolCall:
        """Return the call."""
        return self.attempt.call

    @property
    def step(self) -> int:
        """Return the index of its step."""
        return self.state.step.index

    @property
    def cut(self) -> int:
        """Return the index of the message that made the call."""
        return self.state.step.cut

    @property
    def succeeded(self) -> bool:
        """Return whether the source names no failure."""
        return not self.result.is_error and not self.result.error_kind

    @property
    def rejected(self) -> bool:
        """Return whether the user rejected or interrupted the call."""
        return self.result.error_kind == ErrorKind.USER_REJECTION


class SessionCalls:
    """The tool calls of a context by step, and the names known at each message.

    Calls that are written in text are left out.
    """

    def __init__(self, trace: Trace, context: Context) -> None:
        self.trace, self.context = trace, context
        self.shown = ShownText(context.messages)
        self.steps: list[list[SessionCall]] = []
        for step in context.steps:
            state = TraceState(trace, context, step)
            made = calls_with_results(state) if state.student_action.tool_calls else []
            self.steps.append(
                [SessionCall(state, CallAttempt.of(call, trace.harness), result) for call, result in made]
            )
        self._first: dict[str, int] = {}

    def after(self, step: int, window: int | None = None) -> Iterator[SessionCall]:
        """Yield the calls of the `window` steps after a step, or of all."""
        for calls in self.steps[step + 1 : None if window is None else step + 1 + window]:
            yield from calls

    def user_texts(self, start: int, end: int) -> list[str]:
        """Return the user's texts in the messages from `start` to `end` (exclusive)."""
        return [each.content for each in self.context.messages[start:end] if is_user_text(each)]

    def was_possible(self, made: SessionCall, later: SessionCall, text: str) -> bool:
        """Return whether a later call used only information known when `made` was.

        `text` is the text that the later call writes or runs.
        """
        possible = was_fix_possible(made.attempt, later.attempt, self.shown, made.cut)
        return possible and not self.learned(text, made.cut, later.cut)

    def learned(self, text: str, cut: int, end: int) -> bool:
        """Return whether results or users first mention a name in the text between messages `cut` and `end`.

        A name has a digit, `_`, an inner capital, or parts that `.`, `/` or `-` join.
        """
        messages, first = self.context.messages, self._first_places()
        places = {first.get(name, -1) for name in _NAME.findall(text)}
        return any(cut < place < end and messages[place].role != "assistant" for place in places)

    def _first_places(self) -> dict[str, int]:
        """Return the index of the message in which each name first occurs."""
        if not self._first:
            for place, message in enumerate(self.context.messages):
                texts = [message.content, *(render_arguments(call.arguments) for call in message.tool_calls)]
                for name in {name for text in texts for name in _NAME.findall(text)}:
                    self._first.setdefault(name, place)
        return self._first


Judge = Callable[[SessionCalls, list[SessionCall]], tuple[Action, str] | str]
"""The calls of a step → the better action and why it is better; else why there is none, "" if that is
nothing to count."""


def pairs_of_steps(trace: Trace, source: str, judge: Judge) -> tuple[list[DPOPair], Counter[str]]:
    """Return the pairs of a label source in step order, and counted reasons for steps without one."""
    pairs: list[DPOPair] = []
    reasons: Counter[str] = Counter()
    for context in trace.contexts:
        session = SessionCalls(trace, context)
        shown: Presentation | None = None
        for calls in filter(None, session.steps):
            found = judge(session, calls)
            if isinstance(found, str):
                reasons[found] += bool(found)
                continue
            shown = shown or present_context(trace, context)
            pairs.append(_pair(calls[0].state, source, *found, shown))
    return pairs, +reasons


def _pair(
    state: TraceState, source: str, chosen: Action, evidence: str, presentation: Presentation
) -> DPOPair:
    """Build a pair; its operations are those of the calls in which the sides differ."""
    rejected = state.student_action
    operations = {
        f"{side}_operation": str(find_action_operation(Action("", calls), state.trace.harness))
        for side, calls in (
            ("chosen", tuple(call for call in chosen.tool_calls if call not in rejected.tool_calls)),
            ("rejected", tuple(call for call in rejected.tool_calls if call not in chosen.tool_calls)),
        )
    }
    pair = pair_at(state, source, chosen, evidence, presentation=presentation)
    return replace(pair, **operations, verified="lookahead")


def replace_calls(action: Action, better: dict[ToolCall, ToolCall]) -> Action:
    """Return the action with some of its calls replaced; its text stays."""
    return Action(action.text, tuple(better.get(call, call) for call in action.tool_calls))
