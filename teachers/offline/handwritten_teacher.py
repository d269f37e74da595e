"""Answer with what a person wrote for the steps of an example: priced, marked in every row."""

from collections.abc import Mapping
from functools import cached_property

import orjson

from tracemill.records.errors import TeacherError
from tracemill.records.message import Action
from tracemill.teachers.client.build_request import count_message_bytes
from tracemill.teachers.core.question import Question, require_redacted
from tracemill.teachers.core.teacher_protocol import AttemptResult
from tracemill.teachers.offline.handwritten_answers import read_handwritten
from tracemill.teachers.offline.recorded_table import RecordedAnswer
from tracemill.teachers.offline.recorded_teacher import RecordedTeacher
from tracemill.teachers.offline.sim_policy import estimate_tokens, sim_message_tokens, sim_tools_tokens


class HandwrittenTeacher(RecordedTeacher):
    """One of several made-up teachers, whose answers are in a folder by session and step.

    At a step without an answer its reply has the failure `not_recorded`, which is free. Tokens are a
    quarter of the bytes.
    """

    simulated = True
    provider = "handwritten"

    @cached_property
    def _written(self) -> tuple[dict[str, Mapping[str, Action]], str]:
        return read_handwritten(self._settings.path)

    @cached_property
    def _version(self) -> str:
        return self._written[1]

    @property
    def _own_name(self) -> str:
        return self.model.rpartition("/")[2]

    async def check(self) -> None:
        """Raise TeacherError if the folder cannot be read or has no answer of the teacher."""
        names = {name for actions in self._written[0].values() for name in actions}
        if self._own_name not in names:
            raise TeacherError(
                f"{self._settings.path} has no answer of {self._own_name!r}",
                f"one of: {', '.join(sorted(names))}",
                "correct `model` of the teacher",
            )

    def bound_nanousd(self, question: Question) -> int:
        """Return the most that an answer can cost, in nano-USD, from the bytes of the request."""
        size = count_message_bytes(question.messages) + len(orjson.dumps(question.wire_tools()))
        return self._price.bound_nanousd(size, self._settings.max_tokens)

    async def ask(self, question: Question, sample: int) -> AttemptResult:
        """Return the answer to the step of the question, the same for every sample."""
        require_redacted([question])
        found = self._written[0].get(question.step_id, {}).get(self._own_name)
        if found is None:
            return self.reply_with(question, sample, None)
        message = self._action(found).to_message().to_wire()
        asked = sim_tools_tokens(question.wire_tools()) + sum(
            map(sim_message_tokens, question.wire_messages())
        )
        given = estimate_tokens(orjson.dumps(message).decode())
        return self.reply_with(question, sample, RecordedAnswer(found, asked, given))
