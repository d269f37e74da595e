"""A recorded session (Trace) and the state at each of its steps (TraceState).

A trace holds contexts; a context is one run of messages that only grew. A step is a cut in it: the agent saw
`messages[:cut]` and answered with `messages[cut]`; the results of its calls come after. A TraceState is a
view of such a cut and copies nothing, so all states of a trace of T steps cost O(T).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import takewhile
from typing import Any, Literal, overload

from tracemill.records.identity import StepId
from tracemill.records.message import Action, Message, ToolSpec, call_names
from tracemill.records.printable import printable, printable_count
from tracemill.records.project import Project

Outcome = Literal["resolved", "not_resolved", "unknown"]
ContextStart = Literal[
    "start", "compaction", "microcompaction", "clear", "rewind", "tools_changed", "rewritten"
]
"""Why a context begins. `rewritten`: from here on the harness shows earlier messages in another form."""


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens and cost as the source reported them; None if it did not. `prompt_tokens` includes cached."""

    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cached_tokens: int | None = None
    cost_usd: float | None = None


@dataclass(frozen=True, slots=True)
class Step:
    """One action of the agent: it saw `context.messages[:cut]` and did `context.messages[cut]`.

    `native_id` is the source's own id of the model response; `cwd` the working directory then, if known. A
    message that is not a whole action of a model (synthetic, API error, cut off) is not a Step.
    """

    index: int
    cut: int
    model: str | None = None
    family: str = "unknown"
    native_id: str | None = None
    usage: Usage = Usage()
    cwd: str | None = None
    timestamp: str | None = None


@dataclass(frozen=True, slots=True)
class Fidelity:
    """The parts of the agent's prompts that the source recorded.

    `context` is `complete` if every prefix is the prompt that was sent, `lost` if the beginning is missing.
    It is `approximate` if the harness may have shortened older messages without recording it, or if a
    stand-in replaces unrecorded text.
    """

    system: Literal["recorded", "absent"] = "absent"
    tools: Literal["recorded", "absent"] = "absent"
    context: Literal["complete", "approximate", "lost"] = "complete"


@dataclass(frozen=True, slots=True)
class Context:
    """One run of messages that only grew. `tools` are the recorded ones, empty if none were.

    Where `fidelity.context` is "lost", it is so from step `lost_from` on; the steps before it saw the
    recorded messages and nothing else. Likewise, a prefix may hold a stand-in from step `approximate_from`
    on, None if the first such step is unknown.
    """

    index: int
    messages: tuple[Message, ...]
    steps: tuple[Step, ...]
    start: ContextStart = "start"
    tools: tuple[ToolSpec, ...] = ()
    fidelity: Fidelity = Fidelity()
    lost_from: int = 0
    approximate_from: int | None = None


@dataclass(frozen=True, slots=True)
class Trace:
    """One recorded session, or one subagent of one.

    `source` names the format it was read from, `harness` the row of `harnesses/` the agent ran in.
    `redaction` is the version of the redaction rules applied, None for text as recorded: such a trace is
    refused wherever text would leave the machine. `seen_tools` are names of tools known to have been
    available beyond those called. `worked_in` lists every project the session worked in; redaction sets it.
    """

    trace_id: str
    source: str
    dialect: str
    harness: str
    contexts: tuple[Context, ...]
    harness_version: str | None = None
    kind: Literal["main", "side"] = "main"
    parent_trace_id: str | None = None
    parent_call_id: str | None = None
    project: str | None = None
    repository: str | None = None
    instance_id: str | None = None
    licence: str | None = None
    outcome: Outcome = "unknown"
    started_at: str | None = None
    origin: str | None = None
    seen_tools: tuple[str, ...] = ()
    redaction: str | None = None
    notes: Mapping[str, int] = field(default_factory=dict)
    worked_in: tuple[Project, ...] = ()

    def __repr__(self) -> str:
        """Describe the trace in a line, without its text or project."""
        steps = printable_count(self.step_count, "step")
        contexts = printable_count(len(self.contexts), "context")
        redacted = "redacted" if self.redaction else "not redacted"
        place = printable(self.trace_id, 48)
        return f"Trace({place}, {steps} in {contexts}, outcome {self.outcome}, {redacted})"

    def to_messages(self, context: int = -1) -> list[dict[str, Any]]:
        """Return the messages of one context as OpenAI chat messages, by default of the last one.

        A session has several contexts if the agent's history was cleared, compacted or rewound. Fields of
        the recording alone (reasoning, why a call failed) are left out.
        """
        return [message.to_wire() for message in self.contexts[context].messages]

    def states(self) -> Iterator["TraceState"]:
        """Yield every step as a state, in the order of contexts and steps."""
        for context in self.contexts:
            for step in context.steps:
                yield TraceState(self, context, step)

    def state(self, step_id: StepId) -> "TraceState":
        """Return the state of one step. Raises KeyError if the trace has no such step."""
        if step_id.trace_id != self.trace_id:
            raise KeyError(str(step_id))
        for context in self.contexts:
            if context.index == step_id.context and step_id.step < len(context.steps):
                return TraceState(self, context, context.steps[step_id.step])
        raise KeyError(str(step_id))

    @property
    def step_count(self) -> int:
        """Return the number of steps in all contexts."""
        return sum(len(context.steps) for context in self.contexts)


class MessageView(Sequence[Message]):
    """The first `cut` messages of a tuple, without copying it."""

    __slots__ = ("_cut", "_messages")

    def __init__(self, messages: tuple[Message, ...], cut: int) -> None:
        if not 0 <= cut <= len(messages):
            raise IndexError(f"cut {cut} outside 0..{len(messages)}")
        self._messages = messages
        self._cut = cut

    @property
    def whole(self) -> tuple[Message, ...]:
        """Return all messages of the tuple, also those after the cut."""
        return self._messages

    def __len__(self) -> int:
        return self._cut

    @overload
    def __getitem__(self, index: int) -> Message: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Message, ...]: ...
    def __getitem__(self, index: int | slice) -> Message | tuple[Message, ...]:
        if isinstance(index, slice):
            return self._messages[slice(*index.indices(self._cut))]
        if not -self._cut <= index < self._cut:
            raise IndexError(index)
        return self._messages[index if index >= 0 else index + self._cut]

    def __iter__(self) -> Iterator[Message]:
        for index in range(self._cut):
            yield self._messages[index]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, MessageView | tuple):
            return NotImplemented
        return self._cut == len(other) and self[:] == other[:]

    def __hash__(self) -> int:
        return hash(self[:])

    def __repr__(self) -> str:
        return f"MessageView({self._cut} of {len(self._messages)} messages)"


@dataclass(frozen=True, slots=True)
class TraceState:
    """A view of one step: the messages the agent saw, and its action."""

    trace: Trace
    context: Context
    step: Step

    def __repr__(self) -> str:
        """Describe the state in a line, without its text."""
        did = self.student_action
        calls = f"called {call_names(did.tool_calls)}" if did.tool_calls else "called nothing"
        return f"TraceState({printable(str(self.step_id), 56)}, saw {self.step.cut:,} messages, {calls})"

    @property
    def step_id(self) -> StepId:
        """Return the id of the step, the key of states, decisions, replies and pairs."""
        return StepId(self.trace.trace_id, self.context.index, self.step.index)

    @property
    def fidelity(self) -> Fidelity:
        """Return which parts of the agent's prompt at this step are recorded."""
        context, fidelity, index = self.context, self.context.fidelity, self.step.index
        if fidelity.context == "complete" or (fidelity.context == "lost" and index >= context.lost_from):
            return fidelity
        first = context.approximate_from
        if first is None:
            return fidelity if fidelity.context == "approximate" else replace(fidelity, context="complete")
        return replace(fidelity, context="approximate" if index >= first else "complete")

    @property
    def messages(self) -> MessageView:
        """Return the messages the agent saw, as recorded."""
        return MessageView(self.context.messages, self.step.cut)

    @property
    def student_action(self) -> Action:
        """Return the agent's action."""
        return Action.of(self.context.messages[self.step.cut])

    @property
    def results(self) -> tuple[Message, ...]:
        """Return the tool results right after the action, in the recorded order."""
        after = self.context.messages[self.step.cut + 1 :]
        return tuple(takewhile(lambda message: message.role == "tool", after))
