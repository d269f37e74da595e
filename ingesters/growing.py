"""A context while it grows, event by event.

Keeps the order a model is shown whatever order the events came in: an action, then the results of its
calls in call order, then what was said meanwhile. So the prefix of a step never holds its own results,
and every answered call has its result once.
"""

from dataclasses import dataclass, field, replace

from records.families import family_of
from records.message import Message, ToolSpec
from records.state import Context, ContextStart, Fidelity, Step, Usage

DUPLICATE_RESULT = "second result of one call"
LATE_RESULT = "result after the next step began"
ORPHAN_RESULT = "result without its call"
_ENDING = frozenset({"finish", "submit"})  # calls that end a session, and so are never answered


@dataclass(frozen=True, slots=True)
class StepFacts:
    """What is known of a step beside its message."""

    model: str | None = None
    native_id: str | None = None
    usage: Usage = field(default_factory=Usage)
    cwd: str | None = None
    timestamp: str | None = None


@dataclass(slots=True)
class _OpenCall:
    """A call of the action on top, and its result once that is in."""

    id: str
    name: str
    result: Message | None = None


class GrowingContext:
    """One context under construction.

    `user_gap` goes in front of a user text that follows another user text (some harnesses do so).
    """

    def __init__(self, start: ContextStart = "start", user_gap: str = "") -> None:
        self.start: ContextStart = start
        self.messages: list[Message] = []
        self.steps: list[Step] = []
        self.unanswered = 0  # calls that got no result though they do not end a session
        self._gap = user_gap
        self._open: list[_OpenCall] = []
        self._waiting: list[Message] = []
        self._answers: dict[str, bool] = {}

    def say(self, message: Message) -> None:
        """A message that is no action; behind the results where calls are still open."""
        if self._open:
            self._waiting.append(message)
        else:
            self._append(message)

    def act(self, message: Message, facts: StepFacts | None) -> None:
        """An action: a step where `facts` are given, else a part of the prefix alone."""
        self.settle()
        if facts is not None:
            self.steps.append(
                Step(
                    index=len(self.steps),
                    cut=len(self.messages),
                    model=facts.model,
                    family=family_of(facts.model),
                    native_id=facts.native_id,
                    usage=facts.usage,
                    cwd=facts.cwd,
                    timestamp=facts.timestamp,
                )
            )
        self._append(message)
        self._open = [_OpenCall(call.id, call.name) for call in message.tool_calls]
        self._answers.update({call.id: False for call in message.tool_calls})

    def answer(self, message: Message) -> str:
        """A tool result: goes behind its call. Gives "" or, for what does not fit, the reason.

        A second result of a call is left out; a late or orphaned one stays where it came.
        """
        call_id = message.tool_call_id or ""
        slots = [slot for slot in self._open if slot.id == call_id]
        free = next((slot for slot in slots if slot.result is None), None)
        if free is not None:
            free.result = message
            self._answers[call_id] = True
            if all(slot.result is not None for slot in self._open):
                self.settle()
            return ""
        if slots or self._answers.get(call_id):
            return DUPLICATE_RESULT
        late = call_id in self._answers
        self._answers[call_id] = True
        self.say(message)
        return LATE_RESULT if late else ORPHAN_RESULT

    def settle(self) -> None:
        """Nothing more will answer the open calls: results in call order, then what waited."""
        slots, waiting = self._open, self._waiting
        self._open, self._waiting = [], []
        for slot in slots:
            if slot.result is not None:
                self._append(slot.result)
            elif slot.name not in _ENDING:
                self.unanswered += 1
        for message in waiting:
            self._append(message)

    def keep_matched(self) -> None:
        """Drop calls without a result, and results without their call, as a harness does that
        shows a shortened history. For contexts without steps of their own only."""
        self.settle()
        answered = {m.tool_call_id for m in self.messages if m.role == "tool"}
        called = {call.id for m in self.messages for call in m.tool_calls}
        kept: list[Message] = []
        for message in self.messages:
            if message.role == "tool" and message.tool_call_id not in called:
                continue
            calls = tuple(call for call in message.tool_calls if call.id in answered)
            if message.tool_calls and not calls:
                continue
            kept.append(message if calls == message.tool_calls else replace(message, tool_calls=calls))
        self.messages = kept

    def finish(self, index: int, tools: tuple[ToolSpec, ...], lost: bool = False) -> Context:
        """The context as it is now. Its record of the prompt is complete only where a user spoke
        before the first step and `lost` is False."""
        self.settle()
        first = self.steps[0].cut if self.steps else len(self.messages)
        unasked = bool(self.steps) and all(m.role != "user" for m in self.messages[:first])
        fidelity = Fidelity(
            system="recorded" if self.messages and self.messages[0].role == "system" else "absent",
            tools="recorded" if any(tool.origin == "recorded" for tool in tools) else "absent",
            context="lost" if lost or unasked else "complete",
        )
        return Context(index, tuple(self.messages), tuple(self.steps), self.start, tools, fidelity)

    def _append(self, message: Message) -> None:
        after_user = bool(self.messages) and self.messages[-1].role == "user"
        if self._gap and after_user and message.role == "user" and message.content:
            message = replace(message, content=self._gap + message.content)
        self.messages.append(message)
