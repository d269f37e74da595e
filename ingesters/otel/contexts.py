"""Build contexts of the recorded prompts, so that every step is shown the messages of its span.

A prompt that begins with all messages of the context, the last answer among them, continues it. Any other
begins a context. A call that a later prompt shows under another id, which no result there names, keeps the id
of its answer: OpenLLMetry writes the ids of items there, and of the calls elsewhere.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from tracemill.ingesters.common.growing_context import StepMetadata
from tracemill.records.message import Message, ToolSpec
from tracemill.records.trace import Context, ContextStart, Fidelity, Step


@dataclass(slots=True)
class PromptTurn:
    """One model call of a span.

    `metadata` is None for an answer that does not count as a step.
    """

    prompt: list[Message]
    answer: Message
    tools: tuple[ToolSpec, ...]
    metadata: StepMetadata | None


@dataclass(slots=True)
class ExactContexts:
    """Builder of contexts from turns."""

    contexts: list[Context] = field(default_factory=list)
    _start: ContextStart = "start"
    _messages: list[Message] = field(default_factory=list)
    _steps: list[Step] = field(default_factory=list)
    _tools: tuple[ToolSpec, ...] = ()

    def add(self, turn: PromptTurn) -> None:
        """Add the next turn."""
        held = self._messages
        turn = replace(turn, prompt=_with_held_ids(held, turn.prompt))
        common = _common(held, turn.prompt)
        if common < len(held) or turn.tools != self._tools:
            start = self._start_of(turn, common) if self._steps or self.contexts else "start"
            self.close()
            self._start, self._tools = start, turn.tools
            self._messages, self._steps = list(turn.prompt), []
        else:
            self._messages += turn.prompt[len(held) :]
        if turn.metadata is not None:
            self._steps.append(turn.metadata.step(len(self._steps), len(self._messages)))
        self._messages.append(turn.answer)

    def add_results(self, results: Sequence[Message]) -> None:
        """Add the results of the last answer, which no later prompt shows."""
        self._messages += results

    def close(self) -> None:
        """End the current context, which is kept if it has a step."""
        if not self._steps:
            return
        first = self._messages[: self._steps[0].cut]
        fidelity = Fidelity(
            system="recorded" if first and first[0].role == "system" and first[0].content else "absent",
            tools="recorded" if any(tool.origin == "recorded" for tool in self._tools) else "absent",
            context="complete" if any(message.role == "user" for message in first) else "lost",
        )
        self.contexts.append(
            Context(
                len(self.contexts),
                tuple(self._messages),
                tuple(self._steps),
                self._start,
                self._tools,
                fidelity,
            )
        )
        self._steps = []

    def _start_of(self, turn: PromptTurn, common: int) -> ContextStart:
        """Return why a prompt does not continue the context."""
        held, prompt = self._messages, turn.prompt
        if common == len(held):
            return "tools_changed"
        said = any(message.role != "system" for message in held[:common])
        if not said and all(message.role in ("system", "user") for message in prompt):
            return "clear"
        if said and all(message.role in ("system", "user") for message in prompt[common:]):
            return "rewind"
        last = len(held) - 1
        if last < len(prompt) and is_same(held[last], prompt[last]):
            return "microcompaction"
        return "compaction" if len(prompt) < len(held) else "rewritten"


def _with_held_ids(held: Sequence[Message], prompt: Sequence[Message]) -> list[Message]:
    """Return a prompt with the call ids that the context uses, if the ids only pair calls with results."""
    answered = {message.tool_call_id for message in prompt if message.role == "tool"}
    shown = list(prompt)
    for place, (ours, theirs) in enumerate(zip(held, prompt, strict=False)):
        if ours is theirs:
            continue
        known = tuple(call.id for call in ours.tool_calls)
        given = tuple(call.id for call in theirs.tool_calls)
        if known != given and len(known) == len(given) and answered.isdisjoint(given):
            calls = tuple(replace(call, id=id_) for call, id_ in zip(theirs.tool_calls, known, strict=True))
            if is_same(ours, replace(theirs, tool_calls=calls)):
                shown[place] = replace(theirs, tool_calls=calls)
    return shown


def _common(held: list[Message], prompt: list[Message]) -> int:
    """Return the length of the common prefix of two lists of messages."""
    shorter = min(len(held), len(prompt))
    return next((at for at in range(shorter) if not is_same(held[at], prompt[at])), shorter)


def is_same(one: Message, other: Message) -> bool:
    """Return whether a prompt shows two messages as equal; thinking is not shown."""
    return one is other or one == other or replace(one, reasoning=None) == replace(other, reasoning=None)
