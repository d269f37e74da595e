"""Build the contexts of one agent from its model calls, each of which has its recorded prompt.

A prompt that begins with all messages of a context, and offers the same tools, continues it, also where calls
of another conversation stand between. Any other starts a new context.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tracemill.ingesters.common.growing_context import StepMetadata
from tracemill.records.message import Message, ToolSpec
from tracemill.records.trace import Context, ContextStart, Fidelity, Step


@dataclass(frozen=True, slots=True)
class ModelCall:
    """One call of a model: its prompt, its answer, and whether the log holds all of the prompt."""

    prompt: Sequence[Message]
    tools: tuple[ToolSpec, ...]
    action: Message
    metadata: StepMetadata
    whole: bool


@dataclass(slots=True)
class _Draft:
    start: ContextStart
    tools: tuple[ToolSpec, ...]
    messages: list[Message] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    lost_from: int | None = None


@dataclass(slots=True)
class AgentContexts:
    """Builder of the contexts of one agent; `compacted` is True after a recorded compaction."""

    drafts: list[_Draft] = field(default_factory=list)
    compacted: bool = False

    def add(self, call: ModelCall) -> None:
        """Add the next call."""
        fitting = [draft for draft in self.drafts if _is_prefix(draft.messages, call.prompt)]
        same = [draft for draft in fitting if draft.tools == call.tools]
        if same:
            draft = max(same, key=lambda each: len(each.messages))
            self.drafts.remove(draft)
        else:
            draft = _Draft(self._start(call, bool(fitting) and fitting[-1] is self.drafts[-1]), call.tools)
        self.drafts.append(draft)
        self.compacted = False
        if draft.lost_from is None and not call.whole:
            draft.lost_from = len(draft.steps)
        draft.messages += call.prompt[len(draft.messages) :]
        draft.steps.append(call.metadata.step(len(draft.steps), len(draft.messages)))
        draft.messages.append(call.action)

    def _start(self, call: ModelCall, continues: bool) -> ContextStart:
        """Return why a call starts a context."""
        if not self.drafts:
            return "start"
        if self.compacted:
            return "compaction"
        if continues:
            return "tools_changed"
        last, prompt = self.drafts[-1].messages, call.prompt
        place = len(last) - 1
        if len(prompt) > place and _same(prompt[place], last[place]):
            return "microcompaction"
        talk = next((at for at, message in enumerate(prompt) if message.role != "system"), None)
        begun = talk is not None and len(last) > talk and _is_prefix(last[: talk + 1], prompt)
        return "rewind" if begun else "start"

    def finish(self, results: Mapping[str, Message]) -> tuple[Context, ...]:
        """Return the contexts in the order of their first steps; `results` are those of all calls by id.

        The results of the last action are in no prompt of its context.
        """
        drafts = sorted(self.drafts, key=lambda each: each.steps[0].timestamp or "")
        contexts: list[Context] = []
        for index, draft in enumerate(drafts):
            calls = draft.messages[-1].tool_calls
            found = [results[call.id] for call in calls if call.id in results]
            system = draft.messages[0].role == "system" and bool(draft.messages[0].content)
            unasked = all(message.role != "user" for message in draft.messages[: draft.steps[0].cut])
            lost = 0 if unasked else draft.lost_from
            fidelity = Fidelity(
                "recorded" if system else "absent",
                "recorded" if draft.tools else "absent",
                "complete" if lost is None else "lost",
            )
            messages, steps = (*draft.messages, *found), tuple(draft.steps)
            contexts.append(Context(index, messages, steps, draft.start, draft.tools, fidelity, lost or 0))
        return tuple(contexts)


def _is_prefix(messages: Sequence[Message], prompt: Sequence[Message]) -> bool:
    """Return whether a prompt begins with these messages; the last message is compared first."""
    last = len(messages) - 1
    if len(prompt) <= last or not _same(messages[last], prompt[last]):
        return False
    return all(_same(one, other) for one, other in zip(messages[:last], prompt, strict=False))


def _same(one: Message, other: Message) -> bool:
    """Return whether two messages are equal in a prompt; thoughts are in no prompt."""
    if one is other:
        return True
    shown = (one.role, one.content, one.tool_calls, one.tool_call_id)
    return shown == (other.role, other.content, other.tool_calls, other.tool_call_id)
