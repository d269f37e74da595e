"""Define the teacher protocol and the result of one attempt at an answer."""

from dataclasses import dataclass
from typing import Literal, Protocol, runtime_checkable

from tracemill.records.reply import FINAL_FAILURES, TeacherReply
from tracemill.teachers.core.price import Price
from tracemill.teachers.core.question import Question


@dataclass(frozen=True, slots=True)
class AttemptResult:
    """The result of one attempt: the reply, its cost, and whether to try again.

    `cost_nanousd` is 0 if nothing can have been billed, None if the charge is unknown: then the whole
    reservation counts. `stated_nanousd` is the part that the server stated; `claimed_nanousd` is the cost
    that the answer states, even if it is not trusted. `bill_id` is the id for looking up an unknown charge.

    `retry` is True for a fault that may be temporary, `retry_after_s` the wait the server asks for,
    `account` whether it holds for every call of the run. `halt` says that no further call of this teacher,
    or of the run, can succeed. `why` names the fault for the user: `answers 503`. `sent` is False if no
    request was made, because it would fail like an earlier one.
    """

    reply: TeacherReply
    cost_nanousd: int | None
    retry: bool = False
    retry_after_s: float | None = None
    halt: Literal["", "teacher", "run"] = ""
    why: str = ""
    account: bool = False
    bill_id: str = ""
    sent: bool = True
    stated_nanousd: int = 0
    claimed_nanousd: int | None = None

    @property
    def final(self) -> bool:
        """Return whether this request will always get this reply, which is then stored."""
        return self.reply.failure is None or self.reply.failure in FINAL_FAILURES


class Teacher(Protocol):
    """A source of answers to questions.

    `ask` makes exactly one attempt and raises nothing for a failed call: that is a reply with a `failure`.
    Retries, reservations and the ledger belong to the replay.
    """

    @property
    def name(self) -> str:
        """Return the name, unique in a run."""
        ...

    @property
    def family(self) -> str:
        """Return the vendor family, the unit in which votes are counted."""
        ...

    @property
    def model(self) -> str:
        """Return the pinned model id."""
        ...

    @property
    def simulated(self) -> bool:
        """Return whether answers are simulated, not a model's."""
        ...

    @property
    def price(self) -> Price:
        """Return the price per token."""
        ...

    @property
    def context_tokens(self) -> int | None:
        """Return the maximum tokens of prompt and answer together, None if unknown."""
        ...

    def request_key(self, question: Question, sample: int) -> str:
        """Return the key under which an answer is bought, without network."""
        ...

    async def check(self) -> None:
        """Check the teacher before the first call of a run.

        Raises TeacherError if no call can succeed.
        """
        ...

    def bound_nanousd(self, question: Question) -> int:
        """Return the most that one attempt can cost, in nano-USD, after `check`."""
        ...

    def recall(self, question: Question, reply: TeacherReply) -> None:
        """Use a cached answer: its token count bounds later prompts of the context."""
        ...

    async def ask(self, question: Question, sample: int) -> AttemptResult:
        """Make one attempt; `reply.order` is left at 0."""
        ...

    async def billed_nanousd(self, bill_id: str) -> int | None:
        """Return the charge of an answer on the server, in nano-USD; None if it is not known yet."""
        ...

    async def close(self) -> None:
        """Close the connections."""
        ...


@runtime_checkable
class HasAccount(Protocol):
    """A teacher whose server reports the account's total charges."""

    @property
    def account(self) -> str:
        """Return an id of the account that does not reveal its key; "" if its charges cannot be read."""
        ...

    async def usage_nanousd(self, fresh: bool) -> int | None:
        """Return the total charge of the account so far, in nano-USD; None if unknown.

        It is a recent reading unless `fresh`. The server's figure may lag by minutes.
        """
        ...

    async def billed_nanousd(self, bill_id: str) -> int | None:
        """Return the charge of an answer on the server, as `Teacher.billed_nanousd`."""
        ...


def account_of(teacher: Teacher) -> str:
    """Return the account that a teacher's calls are charged to, "" if it cannot be read."""
    return teacher.account if isinstance(teacher, HasAccount) else ""


def reply_to(teacher: Teacher, question: Question, sample: int, key: str) -> TeacherReply:
    """Return an empty reply of a teacher to a question, with its request key."""
    return TeacherReply(
        step_id=question.step_id,
        request_key=key,
        teacher=teacher.name,
        family=teacher.family,
        sample=sample,
        order=0,
        presentation=question.presentation,
        prompt_id=question.prompt_id,
        simulated=teacher.simulated,
    )
