"""A teacher of somebody else's, with faults."""

from tracemill.records.message import Action
from tracemill.records.reply import TeacherReply
from tracemill.teachers.core.price import Price
from tracemill.teachers.core.question import Question
from tracemill.teachers.core.teacher_protocol import AttemptResult


class Careless:
    """A teacher of somebody else's: it breaks its own bound, or its own code."""

    name, family, model, simulated, price = "careless", "qwen", "careless-1", True, Price()

    def __init__(self, cost_nanousd: int | None) -> None:
        self.cost_nanousd = cost_nanousd

    @property
    def context_tokens(self) -> int | None:
        return None

    def request_key(self, question: Question, sample: int) -> str:
        return f"{question.prompt_id}-{sample}"

    def recall(self, question: Question, reply: TeacherReply) -> None: ...

    async def check(self) -> None: ...

    def bound_nanousd(self, question: Question) -> int:
        return 10

    async def ask(self, question: Question, sample: int) -> AttemptResult:
        if self.cost_nanousd is None:
            raise RuntimeError("a fault of the teacher's own code")
        key = self.request_key(question, sample)
        reply = TeacherReply(question.step_id, key, self.name, self.family, sample, 0, action=Action("done"))
        return AttemptResult(reply, self.cost_nanousd)

    async def billed_nanousd(self, bill_id: str) -> int | None:
        return None

    async def close(self) -> None: ...
