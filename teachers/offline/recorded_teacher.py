"""A teacher whose answers were recorded: real models, asked once by somebody else."""

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
from tracemill.teachers.core.price import nusd_to_usd
from tracemill.teachers.core.question import Question, require_redacted
from tracemill.teachers.core.teacher_protocol import Asked, reply_to
from tracemill.teachers.core.teacher_settings import RecordedSettings
from tracemill.teachers.offline.offline_teacher import OfflineTeacher
from tracemill.teachers.offline.recorded_table import RecordedAnswer, read_recorded, recorded_table_state_key

PROVIDER = "recorded"


class RecordedTeacher(OfflineTeacher):
    """One model of a table of recorded answers. Answers the states that the table has; at others its reply
    has the failure `not_recorded`, which costs nothing. Sends nothing."""

    simulated = False

    def __init__(self, settings: RecordedSettings, redact: Callable[[str], str] = str) -> None:
        """`redact` is applied to the table's texts: a question is found whose text is redacted alike."""
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
        """What the answer is kept under; another content of the table is another teacher."""
        return request_key(
            prompt_id=question.prompt_id,
            model=self.model,
            provider=f"{PROVIDER} {self._version}",
            sampling={},
            reasoning={},
            presentation=question.presentation,
            sample=sample,
        )

    async def check(self) -> None:
        """Raises TeacherError where the table cannot be read or has no answer of the model."""
        if not self._answers:
            raise TeacherError(
                f"{self._settings.path} has no answer of {self.model!r}",
                "a model that is in its `actions`",
                "correct `model` of the teacher",
            )

    def bound_nusd(self, question: Question) -> int:
        """The most an answer can cost; 0 without `prices`."""
        return self._price.bound_nusd(count_message_bytes(question.messages), self._settings.max_tokens)

    async def ask(self, question: Question, sample: int) -> Asked:
        """The recorded answer. Every sample is the same: a table has one answer a model."""
        require_redacted([question])
        return self.told(question, sample, self._answers.get(recorded_table_state_key(question.messages)))

    def told(self, question: Question, sample: int, found: RecordedAnswer | None) -> Asked:
        """What the table says to a question, None where it says nothing, as the reply it is."""
        reply = replace(
            reply_to(self, question, sample, self.request_key(question, sample)),
            model=self.model,
            provider=PROVIDER,
        )
        if found is None:
            return Asked(replace(reply, failure=FailureKind.NOT_RECORDED.value), 0)
        cost = self._price.cost_nusd(found.prompt_tokens, found.completion_tokens)
        action = self._action(found.action)
        return Asked(
            replace(
                reply,
                action=action,
                finish_reason="tool_calls" if action.tool_calls else "stop",
                usage=TeacherUsage(found.prompt_tokens, found.completion_tokens),
                cost_usd=nusd_to_usd(cost),
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
