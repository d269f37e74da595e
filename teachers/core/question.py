"""Define the question that is put to teachers at one step."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from tracemill.records.errors import PrivacyError
from tracemill.records.families import UNKNOWN
from tracemill.records.message import Message, ToolCall, ToolSpec


@dataclass(frozen=True, slots=True)
class Question:
    """The prompt that every teacher is shown at one step.

    `messages` is a view on the presented context, never a copy; `tools` are those offered, the same along a
    trace. `prompt_id` is the hash of both. `redaction` is the version of the rules that redacted the text;
    without one the question is refused. `student_family` is the vendor family of the model that took the
    recorded action. `former_prompt_id` is the hash of an earlier presentation whose answers are still
    valid.
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
        """Return the id of the step's context; each prompt of a context begins with the one before."""
        return self.step_id.rpartition(":")[0]

    def wire_messages(self) -> list[dict[str, Any]]:
        """Return the messages in the OpenAI chat shape, built again at each call.

        Lone surrogates, which UTF-8 cannot encode, become "?".
        """
        return [sendable_question_message(message).to_wire() for message in self.messages]

    def wire_tools(self) -> list[dict[str, Any]]:
        """Return the tools in the OpenAI shape."""
        return [tool.to_wire() for tool in self.tools]


def _utf8(text: str) -> str:
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def sendable_question_message(message: Message) -> Message:
    """Return the message, with "?" for lone surrogates, which UTF-8 cannot encode."""
    calls = tuple(ToolCall(_utf8(c.id), _utf8(c.name), _utf8(c.arguments)) for c in message.tool_calls)
    content = _utf8(message.content)
    if content == message.content and calls == message.tool_calls:
        return message
    return replace(message, content=content, tool_calls=calls)


def require_redacted(questions: Sequence[Question]) -> None:
    """Raise PrivacyError if a question has text that was not redacted."""
    raw = sum(1 for question in questions if not question.redaction)
    if raw:
        raise PrivacyError(
            f"{raw} of {len(questions)} questions have text that was not redacted",
            "the version of the redaction rules on every question",
            "redact the traces before they are asked about",
        )
