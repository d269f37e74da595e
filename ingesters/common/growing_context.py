"""A context under construction, event by event.

Every prefix stays valid in whatever order events come: an action, then the results of its calls, then texts
that came meanwhile. So the prefix of a step never holds its own results, and every answered call has one
result. A call id that was used before is made unique, as in `call_2`, with that of its result.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import count

from tracemill.records.families import family_of
from tracemill.records.message import Message, ToolSpec
from tracemill.records.trace import Context, ContextStart, Fidelity, Step, Usage

DUPLICATE_RESULT = "second result of one call"
ORPHAN_RESULT = "result without its call"
_NOT_REPORTED = Usage()
ENDING_CALLS = frozenset({"finish", "submit"})
"""Calls that end a session, and so are never answered."""


@dataclass(slots=True)
class StepMetadata:
    """The model, id, token usage, working directory and time of a step."""

    model: str | None = None
    native_id: str | None = None
    usage: Usage = _NOT_REPORTED
    cwd: str | None = None
    timestamp: str | None = None

    def step(self, index: int, cut: int) -> Step:
        """Return the step with these metadata whose action is message `cut` of its context."""
        family = family_of(self.model)
        return Step(index, cut, self.model, family, self.native_id, self.usage, self.cwd, self.timestamp)


@dataclass(frozen=True, slots=True)
class PromptStyle:
    """The form in which a harness shows a conversation to its model.

    A user text that follows a user text is merged into it (`merges_users`) or begins with `user_gap`.
    Results come in the order of their calls, or of their arrival (`by_arrival`).
    """

    user_gap: str = ""
    merges_users: bool = False
    by_arrival: bool = False


@dataclass(slots=True)
class _OpenCall:
    """A call of the last action, its result if there is one, and the order of the result's arrival.

    `recorded_id` is the id that a result names, `id` the unique one.
    """

    recorded_id: str
    id: str
    name: str
    result: Message | None = None
    arrival: int = 0


class GrowingContext:
    """One context under construction, which begins with `messages`.

    `unfinished` is True while calls of the last action have no result, `displaced` once a text was moved
    after results that came later.
    """

    def __init__(
        self,
        start: ContextStart = "start",
        style: PromptStyle | None = None,
        messages: Iterable[Message] = (),
    ) -> None:
        self.start: ContextStart = start
        self.messages: list[Message] = []
        self.steps: list[Step] = []
        self.unanswered = 0  # calls that got no result though they do not end a session
        self.unanswered_from: int | None = None  # the first step behind such a call
        self.displaced = False
        self._style = style or PromptStyle()
        self._open: list[_OpenCall] = []
        self._waiting: list[Message] = []
        self._called: set[str] = set()
        for message in messages:
            self._append(message)
            self._called.update(call.id for call in message.tool_calls)

    @property
    def unfinished(self) -> bool:
        """Return whether calls of the last action have no result yet."""
        return bool(self._open)

    def add_message(self, message: Message) -> None:
        """Add a message that is not an action; it comes after the results of open calls."""
        if self._open:
            self._waiting.append(message)
        else:
            self._append(message)

    def add_action(self, message: Message, metadata: StepMetadata | None) -> None:
        """Add an action of the agent; it is a step if metadata are given."""
        self.close_calls()
        if metadata is not None:
            self.steps.append(metadata.step(len(self.steps), len(self.messages)))
        repeated = False
        for call in message.tool_calls:
            own_id = call.id
            if own_id in self._called:
                own_id, repeated = self._unused_id(own_id), True
            self._open.append(_OpenCall(call.id, own_id, call.name))
            self._called.add(own_id)
        if repeated:
            own_ids = [call.id for call in self._open]
            calls = zip(message.tool_calls, own_ids, strict=True)
            message = replace(message, tool_calls=tuple(replace(call, id=own_id) for call, own_id in calls))
        self.messages.append(message)

    def _unused_id(self, call_id: str) -> str:
        return next(name for n in count(2) if (name := f"{call_id}_{n}") not in self._called)

    def find_open_call(self, name: str) -> str | None:
        """Return the recorded id of a call without a result: the first of the tool, else the only one."""
        free = [call for call in self._open if call.result is None]
        same = [call.recorded_id for call in free if call.name == name]
        return same[0] if same else free[0].recorded_id if len(free) == 1 else None

    def report_usage(self, usage: Usage) -> None:
        """Set the usage of the last step where it was not reported with it."""
        if self.steps and self.steps[-1].usage == Usage():
            self.steps[-1] = replace(self.steps[-1], usage=usage)

    def add_result(self, message: Message) -> str:
        """Add a tool result after its call; return "", or the reason if it is left out."""
        call_id = message.tool_call_id or ""
        call, answered = None, 0
        for each in self._open:
            if each.result is not None:
                answered += 1
            elif call is None and each.recorded_id == call_id:
                call = each
        if call is None:
            return DUPLICATE_RESULT if call_id in self._called else ORPHAN_RESULT
        call.result = message if call.id == call_id else replace(message, tool_call_id=call.id)
        call.arrival = answered
        if answered + 1 == len(self._open):
            self.displaced |= bool(self._waiting)
            self.close_calls()
        return ""

    def close_calls(self) -> None:
        """Append the results of the open calls, then the messages that waited for them."""
        if not self._open:  # then nothing waits either
            return
        calls, waiting = self._open, self._waiting
        self._open, self._waiting = [], []
        if self._style.by_arrival:
            calls = sorted(calls, key=lambda call: call.arrival)
        for call in calls:
            if call.result is not None:
                self._append(call.result)
            elif call.name not in ENDING_CALLS:
                self.unanswered += 1
                if self.unanswered_from is None:
                    self.unanswered_from = len(self.steps)
        for message in waiting:
            self._append(message)

    def finish(self, index: int, tools: tuple[ToolSpec, ...], lost: bool = False) -> Context:
        """Return the context as it is now.

        Its prompts are complete only where a user spoke before the first step and `lost` is False.
        """
        self.close_calls()
        return make_grown_context(index, self.messages, self.steps, self.start, tools, lost)

    def _append(self, message: Message) -> None:
        last = self.messages[-1] if message.role == "user" and self.messages else None
        if last is not None and last.role == "user" and message.content:
            if self._style.merges_users:
                joined = f"{last.content}\n{message.content}" if last.content else message.content
                self.messages[-1] = replace(last, content=joined)
                return
            message = replace(message, content=self._style.user_gap + message.content)
        self.messages.append(message)


def make_grown_context(
    index: int,
    messages: Iterable[Message],
    steps: Iterable[Step],
    start: ContextStart,
    tools: tuple[ToolSpec, ...],
    lost: bool = False,
) -> Context:
    """Return a context with its fidelity, taken from the messages and from `lost`."""
    messages, steps = tuple(messages), tuple(steps)
    unasked = bool(steps) and all(message.role != "user" for message in messages[: steps[0].cut])
    fidelity = Fidelity(
        system="recorded" if messages and messages[0].role == "system" else "absent",
        tools="recorded" if any(tool.origin == "recorded" for tool in tools) else "absent",
        context="lost" if lost or unasked else "complete",
    )
    return Context(index, messages, steps, start, tools, fidelity)
