"""Build the context of a Cursor conversation: what is known of what the model was sent at each answer.

Cursor records what its window shows, not requests: the texts, the calls, and results as its tools returned
them. So every context is `approximate`. Several messages are one answer: its thinking, its text, its calls.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from tracemill.ingesters.common.flags import BROKEN_OFF, NO_ACTION
from tracemill.ingesters.common.growing_context import GrowingContext, StepMetadata
from tracemill.ingesters.cursor.conversations import USER, Conversation, Record
from tracemill.ingesters.cursor.messages import (
    answer_key,
    has_attachments,
    make_call,
    make_result,
    model_of,
    role_of,
    text_of,
    thought_of,
    time_of,
    tool_of,
    unread_parts,
    usage_of,
)
from tracemill.records.ingest_report import IngestReport, record_type
from tracemill.records.message import Message
from tracemill.records.trace import Context, Fidelity

MISSING = "message that is not in the database"
ATTACHED = "message of the user with attachments that are not recorded as shown"
SUMMARISED = "message behind which Cursor summarised the conversation"
OWN_ARGUMENTS = "call with the arguments that Cursor made of it"
SHARED_USAGE = "usage of several answers together"
SPLIT = "call that may belong to the answer before it"
NO_TEXT = "message of the user without a text"
_STOPPED = ("aborted", "generating", "error")


@dataclass(slots=True)
class _Answer:
    """One answer under construction: its messages, those with calls apart."""

    messages: list[Record] = field(default_factory=list)
    tools: list[Record] = field(default_factory=list)

    def takes(self, message: Record) -> bool:
        """Return whether a message belongs to the answer: text and thinking come before the calls."""
        if not self.tools:
            return True
        key = answer_key(tool_of(message))
        return bool(key) and key == answer_key(self.tools[-1])

    def add(self, message: Record) -> None:
        """Add a message."""
        self.messages.append(message)
        if tool := tool_of(message):
            self.tools.append(tool)


@dataclass(slots=True)
class ConversationContext:
    """Builder of the context of one conversation, message by message."""

    conversation: Conversation
    report: IngestReport
    cwd: str | None = None
    growing: GrowingContext = field(default_factory=GrowingContext)
    answer: _Answer = field(default_factory=_Answer)
    used: Counter[str] = field(default_factory=Counter)
    model: str | None = None
    lost: bool = False
    lost_from: int | None = None
    turn: int = 0

    def run(self) -> Context | None:
        """Return the context, None if it holds no step."""
        messages = self.conversation.messages
        self.model = model_of({"modelInfo": self.conversation.metadata.get("modelConfig")})
        for message in messages:
            self._add(message)
        self._finish_turn(self._broken_off(messages))
        self.growing.close_calls()
        if not self.growing.steps:
            return None
        whole = tuple(self.growing.messages)
        unasked = all(each.role != "user" for each in whole[: self.growing.steps[0].cut])
        lost = unasked or self.lost_from is not None
        fidelity = Fidelity(context="lost" if lost else "approximate")
        start = 0 if unasked else self.lost_from or 0
        return Context(0, whole, tuple(self.growing.steps), "start", (), fidelity, start, 0)

    def _broken_off(self, messages: Sequence[Record | None]) -> bool:
        """Return whether the last answer was stopped: nothing follows it, not even a call of its own."""
        last = messages[-1] if messages else None
        stopped = self.conversation.metadata.get("status") in _STOPPED
        return bool(stopped and last and last.get("type") != USER and not tool_of(last))

    def _may_go_on(self) -> bool:
        """Return whether the next message may hold the calls of the answer: so far it is a text alone."""
        return bool(self.answer.messages) and not self.answer.tools

    def _add(self, message: Record | None) -> None:
        if message is None:
            self._finish_turn(self._may_go_on())
            self.report.skipped[MISSING] += 1
            self.lost = True
            return
        unread = unread_parts(message)
        self.report.unknown.update(f"message {record_type(name)}" for name in unread)
        self.report.records[role_of(message)] += 1
        self.report.flags[SUMMARISED] += bool(message.get("cachedConversationSummary"))
        if unread:
            self._finish_turn(self._may_go_on())
            self.lost = True
        elif message.get("type") == USER:
            self._finish_turn()
            self._add_user(message)
        else:
            if self.answer.messages and not self.answer.takes(message):
                tool = tool_of(message)
                self.report.flags[SPLIT] += bool(tool) and not answer_key(tool)
                self._finish_answer()
            self.answer.add(message)

    def _add_user(self, message: Record) -> None:
        self.model = model_of(message) or self.model
        self.report.flags[ATTACHED] += has_attachments(message)
        text = text_of(message)
        if not text.strip():
            self.report.flags[NO_TEXT] += 1
            return
        self.growing.add_message(Message("user", text))

    def _finish_turn(self, cut: bool = False) -> None:
        """Finish the answer, and with it the response to the user's message."""
        self._finish_answer(cut)
        self.turn = 0

    def _finish_answer(self, cut: bool = False) -> None:
        """Add the answer with its results; it is a step if it is complete."""
        answer, self.answer = self.answer, _Answer()
        if not answer.messages:
            return
        call_ids = [self._call_id(tool) for tool in answer.tools]
        calls = tuple(map(make_call, answer.tools, call_ids))
        text = "\n".join(each for each in map(text_of, answer.messages) if each.strip())
        thought = "\n".join(each for each in map(thought_of, answer.messages) if each)
        if not text and not calls:
            self.report.flags[NO_ACTION] += 1
            return
        self.report.flags[OWN_ARGUMENTS] += sum(
            not tool.get("rawArgs") and bool(tool.get("params")) for tool in answer.tools
        )
        metadata = None
        if cut:
            self.report.flags[BROKEN_OFF] += 1
            self.report.steps_synthetic += 1
        else:
            metadata = self._metadata(answer)
        self.growing.add_action(Message("assistant", text, calls, reasoning=thought or None), metadata)
        for tool, call_id in zip(answer.tools, call_ids, strict=True):
            if (result := make_result(tool, call_id)) is not None:
                self.report.tool_errors += result.is_error is True
                self.growing.add_result(result)

    def _metadata(self, answer: _Answer) -> StepMetadata:
        """Return the metadata of the next step, and mark prompts from the first incomplete one as lost."""
        self.growing.close_calls()
        if self.lost and self.lost_from is None:
            self.lost_from = len(self.growing.steps)
        self.turn += 1
        usage = next((found for each in answer.messages[::-1] if (found := usage_of(each))), None)
        if usage is not None and self.turn > 1:
            self.report.flags[SHARED_USAGE] += 1
            usage = None
        first = answer.messages[0]
        metadata = StepMetadata(
            model=next((model for each in answer.messages if (model := model_of(each))), self.model),
            native_id=_first_of(answer.messages, "serverBubbleId") or _first_of([first], "bubbleId"),
            cwd=self.cwd,
            timestamp=next((time for each in answer.messages if (time := time_of(each))), None),
        )
        if usage is not None:
            metadata.usage = usage
        return metadata

    def _call_id(self, tool: Record) -> str:
        """Return the id of a call; one that was used before is made unique."""
        named = str(tool.get("toolCallId") or "call")
        self.used[named] += 1
        return named if self.used[named] == 1 else f"{named}_{self.used[named]}"


def _first_of(messages: Sequence[Record], key: str) -> str | None:
    return next((each[key] for each in messages if isinstance(each.get(key), str) and each[key]), None)
