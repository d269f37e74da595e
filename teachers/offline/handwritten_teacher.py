"""Answer with what a person wrote for the steps of an example: priced, marked in every row."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cached_property

import orjson

from tracemill.records.errors import TeacherError
from tracemill.records.identity import request_key
from tracemill.records.message import Action, ToolCall
from tracemill.records.reply import FailureKind, TeacherUsage
from tracemill.teachers.client.build_request import count_message_bytes
from tracemill.teachers.core.price import nanousd_to_usd
from tracemill.teachers.core.question import Question, require_redacted
from tracemill.teachers.core.teacher_protocol import AttemptResult, reply_to
from tracemill.teachers.core.teacher_settings import HandwrittenTeacherSettings
from tracemill.teachers.offline.handwritten_answers import read_handwritten
from tracemill.teachers.offline.offline_teacher import OfflineTeacher
from tracemill.teachers.offline.sim_policy import estimate_tokens, sim_message_tokens, sim_tools_tokens

PROVIDER = "handwritten"


class HandwrittenTeacher(OfflineTeacher):
    """One of several made-up teachers, whose answers are in a folder by session and step.

    At a step without an answer its reply has the failure `not_recorded`, which is free. Tokens are a
    quarter of the bytes.
    """

    simulated = True

    def __init__(self, settings: HandwrittenTeacherSettings, redact: Callable[[str], str] = str) -> None:
        """Set up the teacher; `redact` is applied to every answer."""
        super().__init__(settings, settings.prices)
        self._settings = settings
        self._redact = redact

    @cached_property
    def _answers(self) -> tuple[dict[str, Mapping[str, Action]], str]:
        return read_handwritten(self._settings.path)

    @property
    def _own_name(self) -> str:
        return self.model.rpartition("/")[2]

    async def check(self) -> None:
        """Raise TeacherError if the folder cannot be read or has no answer of the teacher."""
        names = {name for actions in self._answers[0].values() for name in actions}
        if self._own_name not in names:
            raise TeacherError(
                f"{self._settings.path} has no answer of {self._own_name!r}",
                f"one of: {', '.join(sorted(names))}",
                "correct `model` of the teacher",
            )

    def request_key(self, question: Question, sample: int) -> str:
        """Return the key of an answer; it depends on the content of the folder."""
        return request_key(
            prompt_id=question.prompt_id,
            model=self.model,
            provider=f"{PROVIDER} {self._answers[1]}",
            sampling={},
            reasoning={},
            presentation=question.presentation,
            sample=sample,
        )

    def bound_nanousd(self, question: Question) -> int:
        """Return the most that an answer can cost, in nano-USD, from the bytes of the request."""
        size = count_message_bytes(question.messages) + len(orjson.dumps(question.wire_tools()))
        return self._price.bound_nanousd(size, self._settings.max_tokens)

    async def ask(self, question: Question, sample: int) -> AttemptResult:
        """Return the answer to the step of the question, the same for every sample."""
        require_redacted([question])
        reply = replace(
            reply_to(self, question, sample, self.request_key(question, sample)),
            model=self.model,
            provider=PROVIDER,
        )
        found = self._answers[0].get(question.step_id, {}).get(self._own_name)
        if found is None:
            return AttemptResult(replace(reply, failure=FailureKind.NOT_RECORDED.value), 0)
        action = self._action(found)
        message = action.to_message().to_wire()
        usage = TeacherUsage(
            sim_tools_tokens(question.wire_tools()) + sum(map(sim_message_tokens, question.wire_messages())),
            estimate_tokens(orjson.dumps(message).decode()),
        )
        cost = self._price.cost_nanousd(usage.prompt_tokens, usage.completion_tokens)
        answered = replace(
            reply,
            action=action,
            finish_reason="tool_calls" if action.tool_calls else "stop",
            usage=usage,
            cost_usd=nanousd_to_usd(cost),
            raw=orjson.dumps(message).decode(),
        )
        return AttemptResult(answered, cost)

    def _action(self, action: Action) -> Action:
        calls = tuple(
            ToolCall(call.id, call.name, self._redact(call.arguments)) for call in action.tool_calls
        )
        return Action(self._redact(action.text), calls)
