"""One step as it is put to teachers."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from tracemill.records.errors import PrivacyError
from tracemill.records.families import UNKNOWN
from tracemill.records.message import Message, ToolCall, ToolSpec


@dataclass(frozen=True, slots=True)
class Question:
    """What every teacher is shown at one step.

    `messages` is a view on the presented context, never a copy; `tools` are those offered, the same
    bytes along a trace. `prompt_id` is the hash of both. `redaction` is the version of the rules the
    text was redacted with: empty means it was not, and such a question is refused. `student_family`
    is the family of the model that took the recorded action. `former_prompt_id` is the hash of the same
    step as it was shown before, where that was another one and answers to it still hold.
    """

    step_id: str
    trace_id: str
    messages: Sequence[Message]
    tools: tuple[ToolSpec, ...]
    prompt_id: str
    presentation: str
    redaction: str
    student_family: str = UNKNOWN
    former_prompt_id: str = ""

    @property
    def context(self) -> str:
        """The context that the step belongs to: its questions are each the beginning of the next."""
        return self.step_id.rpartition(":")[0]

    def wire_messages(self) -> list[dict[str, Any]]:
        """The messages in the OpenAI chat shape; built at each call and kept by nobody. Half a
        surrogate pair, which no UTF-8 can carry, becomes "?"."""
        return [sendable_question_message(message).to_wire() for message in self.messages]

    def wire_tools(self) -> list[dict[str, Any]]:
        """The tools in the OpenAI shape."""
        return [tool.to_wire() for tool in self.tools]


def _utf8(text: str) -> str:
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def sendable_question_message(message: Message) -> Message:
    """The message itself where UTF-8 can carry all of it, else a copy that it can."""
    calls = tuple(ToolCall(_utf8(c.id), _utf8(c.name), _utf8(c.arguments)) for c in message.tool_calls)
    content = _utf8(message.content)
    if content == message.content and calls == message.tool_calls:
        return message
    return replace(message, content=content, tool_calls=calls)


def require_redacted(questions: Sequence[Question]) -> None:
    """Raises PrivacyError where a question holds text that no redaction has passed over."""
    raw = sum(1 for question in questions if not question.redaction)
    if raw:
        raise PrivacyError(
            f"{raw} of {len(questions)} questions hold text that was never redacted",
            "the version of the redaction rules on every question",
            "redact the traces before they are asked about",
        )
