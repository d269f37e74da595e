"""Answer from a table of recorded answers of real models."""

from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from hashlib import blake2b

import orjson

from tracemill.records.errors import TeacherError
from tracemill.records.identity import request_key
from tracemill.records.message import Action, Message, ToolCall
from tracemill.records.reply import FailureKind, TeacherUsage
from tracemill.teachers.client.build_request import count_message_bytes
from tracemill.teachers.core.price import nanousd_to_usd
from tracemill.teachers.core.question import Question, require_redacted
from tracemill.teachers.core.teacher_protocol import AttemptResult, reply_to
from tracemill.teachers.core.teacher_settings import HandwrittenTeacherSettings, RecordedTeacherSettings
from tracemill.teachers.offline.offline_teacher import OfflineTeacher
from tracemill.teachers.offline.recorded_table import RecordedAnswer, read_recorded, recorded_table_state_key


class RecordedTeacher(OfflineTeacher):
    """One model of a table of recorded answers; it sends nothing.

    At states that the table lacks its reply has the failure `not_recorded`, which is free.
    """

    simulated = False
    provider = "recorded"

    def __init__(
        self,
        settings: RecordedTeacherSettings | HandwrittenTeacherSettings,
        redact: Callable[[str], str] = str,
    ) -> None:
        """Set up the teacher; `redact` is applied to the table, so that redacted questions match."""
        super().__init__(settings, settings.prices)
        self._settings = settings
        self._redact = redact

    @cached_property
    def _answers(self) -> dict[str, RecordedAnswer]:
        return {
            recorded_table_state_key([self._redacted(message) for message in state.messages]): state.answers[
                self.model
            ]
            for state in read_recorded(self._settings.path)
            if self.model in state.answers
        }

    @cached_property
    def _version(self) -> str:
        try:
            return blake2b(self._settings.path.read_bytes(), digest_size=8).hexdigest()
        except OSError as error:
            raise TeacherError(
                f"{self._settings.path} cannot be read ({error.strerror})", "a table of recorded answers"
            ) from None

    def _redacted(self, message: Message) -> Message:
        calls = tuple(replace(call, arguments=self._redact(call.arguments)) for call in message.tool_calls)
        return replace(message, content=self._redact(message.content), tool_calls=calls)

    def request_key(self, question: Question, sample: int) -> str:
        """Return the cache key of an answer; it includes a hash of the recorded answers."""
        return request_key(
            prompt_id=question.prompt_id,
            model=self.model,
            provider=f"{self.provider} {self._version}",
            sampling={},
            reasoning={},
            presentation=question.presentation,
            sample=sample,
        )

    async def check(self) -> None:
        """Raise TeacherError if the table cannot be read or has no answer of the model."""
        if not self._answers:
            raise TeacherError(
                f"{self._settings.path} has no answer of {self.model!r}",
                "a model that is in its `actions`",
                "correct `model` of the teacher",
            )

    def bound_nanousd(self, question: Question) -> int:
        """Return the most that an answer can cost, in nano-USD; 0 without `prices`."""
        return self._price.bound_nanousd(count_message_bytes(question.messages), self._settings.max_tokens)

    async def ask(self, question: Question, sample: int) -> AttemptResult:
        """Return the recorded answer, the same for every sample."""
        require_redacted([question])
        return self.reply_with(
            question, sample, self._answers.get(recorded_table_state_key(question.messages))
        )

    def reply_with(self, question: Question, sample: int, found: RecordedAnswer | None) -> AttemptResult:
        """Return the reply for a recorded answer; None is the failure `not_recorded`."""
        reply = replace(
            reply_to(self, question, sample, self.request_key(question, sample)),
            model=self.model,
            provider=self.provider,
        )
        if found is None:
            return AttemptResult(replace(reply, failure=FailureKind.NOT_RECORDED.value), 0)
        cost = self._price.cost_nanousd(found.prompt_tokens, found.completion_tokens)
        action = self._action(found.action)
        return AttemptResult(
            replace(
                reply,
                action=action,
                finish_reason="tool_calls" if action.tool_calls else "stop",
                usage=TeacherUsage(found.prompt_tokens, found.completion_tokens),
                cost_usd=nanousd_to_usd(cost),
                latency_s=found.latency_s,
                raw=orjson.dumps(action.to_message().to_wire()).decode(),
            ),
            cost,
        )

    def _action(self, action: Action) -> Action:
        calls = tuple(
            ToolCall(call.id, call.name, self._redact(call.arguments)) for call in action.tool_calls
        )
        return Action(self._redact(action.text), calls)
