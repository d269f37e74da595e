"""A recorded session (Trace) and its frozen moments (TraceState).

A trace holds contexts; a context is one run of messages that only grew. A step is a cut in it: the
agent saw `messages[:cut]` and answered with `messages[cut]`; what its calls returned comes after. A
TraceState is a view on such a cut and copies nothing, so all states of a trace of T steps cost O(T).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, overload

from tracemill.records.fast_dataclass import quick_init
from tracemill.records.identity import StepId
from tracemill.records.message import Action, Message, ToolSpec
from tracemill.records.project import Project

Outcome = Literal["resolved", "not_resolved", "unknown"]
ContextStart = Literal[
    "start", "compaction", "microcompaction", "clear", "rewind", "tools_changed", "rewritten"
]
"""Why a context begins. `rewritten`: from here on the harness shows its past in another form."""


@quick_init
@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens and cost as the source reported them; None where it did not. `prompt_tokens` includes cached."""

    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cached_tokens: int | None = None
    cost_usd: float | None = None


@quick_init
@dataclass(frozen=True, slots=True)
class Step:
    """One action of the agent: it saw `context.messages[:cut]` and did `context.messages[cut]`.

    `native_id` is the source's own id of the model response; `cwd` the working directory then, where
    known. What is no whole action of a model (synthetic, API error, cut off) is no Step at all.
    """

    index: int
    cut: int
    model: str | None = None
    family: str = "unknown"
    native_id: str | None = None
    usage: Usage = Usage()
    cwd: str | None = None
    timestamp: str | None = None


@quick_init
@dataclass(frozen=True, slots=True)
class Fidelity:
    """What the source did and did not record of what the agent saw.

    `context` is `complete` where every prefix is what the agent was sent, `approximate` where the harness
    may have shown older messages shortened and did not record it or where a wording of ours stands for one
    that was not recorded, `lost` where the beginning is missing.
    """

    system: Literal["recorded", "absent"] = "absent"
    tools: Literal["recorded", "absent"] = "absent"
    context: Literal["complete", "approximate", "lost"] = "complete"


@quick_init
@dataclass(frozen=True, slots=True)
class Context:
    """One run of messages that only grew. `tools` are those recorded, empty where none were.

    Where `fidelity.context` is "lost", it is so from step `lost_from` on: the steps before it saw what
    is recorded and nothing else. In the same way, a prefix may hold a wording of ours from step
    `approximate_from` on; None where no step is known to be the first.
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

    `redaction` is the version of the redaction rules applied, None for text as recorded: such a trace
    is refused wherever text would leave the machine. `seen_tools` are tool names known to have been
    available beyond those called. `source` is the name of the format it was read from, `harness` names the
    row of `harnesses/` the agent ran in. `worked_in` is set by the redaction: every project the session
    worked in, as consent knows it.
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

    def states(self) -> Iterator["TraceState"]:
        """Every step as a state, in the order of contexts and steps."""
        for context in self.contexts:
            for step in context.steps:
                yield TraceState(self, context, step)

    def state(self, step_id: StepId) -> "TraceState":
        """The state of one step of this trace. Raises KeyError where it has no such step."""
        if step_id.trace_id != self.trace_id:
            raise KeyError(str(step_id))
        for context in self.contexts:
            if context.index == step_id.context and step_id.step < len(context.steps):
                return TraceState(self, context, context.steps[step_id.step])
        raise KeyError(str(step_id))

    @property
    def step_count(self) -> int:
        """Steps in all contexts."""
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
        """The messages this is the beginning of."""
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
        if not isinstance(other, MessageView):
            return NotImplemented
        return self._cut == other._cut and self[:] == other[:]

    def __hash__(self) -> int:
        return hash(self[:])

    def __repr__(self) -> str:
        return f"MessageView({self._cut} of {len(self._messages)} messages)"


@dataclass(frozen=True, slots=True)
class TraceState:
    """What the agent saw at one step, and what it did: a view, nothing is copied."""

    trace: Trace
    context: Context
    step: Step

    @property
    def step_id(self) -> StepId:
        """Where the step is; the key of states, decisions, replies and pairs."""
        return StepId(self.trace.trace_id, self.context.index, self.step.index)

    @property
    def fidelity(self) -> Fidelity:
        """What is and is not known of what the agent saw at this step."""
        context, whole, at = self.context, self.context.fidelity, self.step.index
        if whole.context == "complete" or (whole.context == "lost" and at >= context.lost_from):
            return whole
        first = context.approximate_from
        if first is None:
            return whole if whole.context == "approximate" else replace(whole, context="complete")
        return replace(whole, context="approximate" if at >= first else "complete")

    @property
    def messages(self) -> MessageView:
        """What the agent saw, as recorded."""
        return MessageView(self.context.messages, self.step.cut)

    @property
    def student_action(self) -> Action:
        """What the agent did."""
        return Action.of(self.context.messages[self.step.cut])

    @property
    def results(self) -> tuple[Message, ...]:
        """What came back for the action: the tool results right behind it, in the order recorded."""
        found: list[Message] = []
        for message in self.context.messages[self.step.cut + 1 :]:
            if message.role != "tool":
                break
            found.append(message)
        return tuple(found)
