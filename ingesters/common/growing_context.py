"""A context while it grows, event by event.

Keeps a prefix valid whatever order the events came in: an action, then the results of its calls, then
what was said meanwhile. So the prefix of a step never holds its own results, and every answered call
has its result once.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from tracemill.records.families import family_of
from tracemill.records.message import Message, ToolSpec
from tracemill.records.trace import Context, ContextStart, Fidelity, Step, Usage

DUPLICATE_RESULT = "second result of one call"
ORPHAN_RESULT = "result without its call"
_NOT_REPORTED = Usage()
_ENDING = frozenset({"finish", "submit"})  # calls that end a session, and so are never answered


@dataclass(slots=True)
class StepFacts:
    """What is known of a step beside its message."""

    model: str | None = None
    native_id: str | None = None
    usage: Usage = _NOT_REPORTED
    cwd: str | None = None
    timestamp: str | None = None


@dataclass(frozen=True, slots=True)
class Manner:
    """How a harness shows a conversation to its model.

    A user text behind a user text is merged into it (`merges_users`) or has `user_gap` in front. Results
    stand in the order of their calls, or else (`by_arrival`) in the order they came.
    """

    user_gap: str = ""
    merges_users: bool = False
    by_arrival: bool = False


@dataclass(slots=True)
class _OpenCall:
    """A call of the action on top, its result once that is in, and as the how-manieth it came."""

    id: str
    name: str
    result: Message | None = None
    arrival: int = 0


class GrowingContext:
    """One context under construction, on top of the `messages` it begins with.

    `unfinished` while calls of the last action have no result; `displaced` once a text had to go behind
    results that came after it.
    """

    def __init__(
        self, start: ContextStart = "start", manner: Manner | None = None, messages: Iterable[Message] = ()
    ) -> None:
        self.start: ContextStart = start
        self.messages: list[Message] = []
        self.steps: list[Step] = []
        self.unanswered = 0  # calls that got no result though they do not end a session
        self.displaced = False
        self._manner = manner or Manner()
        self._open: list[_OpenCall] = []
        self._waiting: list[Message] = []
        self._called: set[str] = set()
        for message in messages:
            self._append(message)
            self._called.update(call.id for call in message.tool_calls)

    @property
    def unfinished(self) -> bool:
        """Whether calls of the last action have no result yet."""
        return bool(self._open)

    def say(self, message: Message) -> None:
        """A message that is no action; behind the results where calls are still open."""
        if self._open:
            self._waiting.append(message)
        else:
            self._append(message)

    def act(self, message: Message, facts: StepFacts) -> None:
        """An action of the agent: a step."""
        if self._open or self._waiting:
            self.settle()
        self.steps.append(
            Step(
                len(self.steps),
                len(self.messages),
                facts.model,
                family_of(facts.model),
                facts.native_id,
                facts.usage,
                facts.cwd,
                facts.timestamp,
            )
        )
        self.messages.append(message)
        for call in message.tool_calls:
            call_id = call.id
            self._open.append(_OpenCall(call_id, call.name))
            self._called.add(call_id)

    def report_usage(self, usage: Usage) -> None:
        """Usage of the last step that came after it."""
        if self.steps and self.steps[-1].usage == Usage():
            self.steps[-1] = replace(self.steps[-1], usage=usage)

    def answer(self, message: Message) -> str:
        """A tool result: goes behind its call. Gives "" or, for one that is left out, the reason."""
        call_id = message.tool_call_id or ""
        if len(self._open) == 1 and self._open[0].id == call_id and not self._waiting:
            self._open.clear()
            self.messages.append(message)
            return ""
        answered = 0
        free: _OpenCall | None = None
        for slot in self._open:
            if slot.result is not None:
                answered += 1
            elif free is None and slot.id == call_id:
                free = slot
        if free is None:
            return DUPLICATE_RESULT if call_id in self._called else ORPHAN_RESULT
        free.result, free.arrival = message, answered
        if answered + 1 == len(self._open):
            self.displaced |= bool(self._waiting)
            self.settle()
        return ""

    def settle(self) -> None:
        """Nothing more will answer the open calls: their results, then what waited."""
        if not self._open and not self._waiting:
            return
        slots, waiting = self._open, self._waiting
        self._open, self._waiting = [], []
        if self._manner.by_arrival and len(slots) > 1:
            slots = sorted(slots, key=lambda slot: slot.arrival)
        for slot in slots:
            if slot.result is not None:
                self._append(slot.result)
            elif slot.name not in _ENDING:
                self.unanswered += 1
        for message in waiting:
            self._append(message)

    def finish(self, index: int, tools: tuple[ToolSpec, ...], lost: bool = False) -> Context:
        """The context as it is now. Its record of the prompt is complete only where a user spoke
        before the first step and `lost` is False."""
        self.settle()
        return make_grown_context(index, self.messages, self.steps, self.start, tools, lost)

    def _append(self, message: Message) -> None:
        last = self.messages[-1] if message.role == "user" and self.messages else None
        if last is not None and last.role == "user" and message.content:
            if self._manner.merges_users:
                joined = f"{last.content}\n{message.content}" if last.content else message.content
                self.messages[-1] = replace(last, content=joined)
                return
            message = replace(message, content=self._manner.user_gap + message.content)
        self.messages.append(message)


def make_grown_context(
    index: int,
    messages: Iterable[Message],
    steps: Iterable[Step],
    start: ContextStart,
    tools: tuple[ToolSpec, ...],
    lost: bool = False,
) -> Context:
    """A context with what its record lacks: read off the messages, or known to the caller (`lost`)."""
    said, made = tuple(messages), tuple(steps)
    first = made[0].cut if made else len(said)
    unasked = bool(made) and all(message.role != "user" for message in said[:first])
    fidelity = Fidelity(
        system="recorded" if said and said[0].role == "system" else "absent",
        tools="recorded" if any(tool.origin == "recorded" for tool in tools) else "absent",
        context="lost" if lost or unasked else "complete",
    )
    return Context(index, said, made, start, tools, fidelity)
