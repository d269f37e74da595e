"""A teacher of somebody else's, with faults."""

from tracemill.records.message import Action
from tracemill.records.reply import TeacherReply
from tracemill.teachers.core.price import Price
from tracemill.teachers.core.question import Question
from tracemill.teachers.core.teacher_protocol import Asked


class Careless:
    """A teacher of somebody else's: it breaks its own bound, or its own code."""

    name, family, model, simulated, price = "careless", "qwen", "careless-1", True, Price()

    def __init__(self, cost_nusd: int | None) -> None:
        self.cost_nusd = cost_nusd

    @property
    def context_tokens(self) -> int | None:
        return None

    def request_key(self, question: Question, sample: int) -> str:
        return f"{question.prompt_id}-{sample}"

    def recall(self, question: Question, reply: TeacherReply) -> None: ...

    async def check(self) -> None: ...

    def bound_nusd(self, question: Question) -> int:
        return 10

    async def ask(self, question: Question, sample: int) -> Asked:
        if self.cost_nusd is None:
            raise RuntimeError("a fault of the teacher's own code")
        key = self.request_key(question, sample)
        reply = TeacherReply(question.step_id, key, self.name, self.family, sample, 0, action=Action("done"))
        return Asked(reply, self.cost_nusd)

    async def billed_nusd(self, bill_id: str) -> int | None:
        return None

    async def close(self) -> None: ...
