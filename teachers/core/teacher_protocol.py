"""What a teacher is, and what one attempt at an answer gives."""

from dataclasses import dataclass
from typing import Literal, Protocol, runtime_checkable

from tracemill.records.reply import FINAL_FAILURES, TeacherReply
from tracemill.teachers.core.price import Price
from tracemill.teachers.core.question import Question


@dataclass(frozen=True, slots=True)
class Asked:
    """One attempt: the reply, and what it means for the money and for the next attempt.

    `cost_nusd` is what it cost, 0 where nothing can have been billed, None where it may have been and
    nobody says how much: then the whole reservation counts. `retry` is True for a fault that may pass;
    `retry_after_s` is the server's own wish, `account` that it holds for every call of the run: the limit
    met is that of the account. `halt` says that no further call of this teacher, or of the whole run, can
    succeed. `why` is what the user is told of the fault: `answers 503`. `bill_id` names an answer that did
    not say what it cost, where the server can be asked afterwards. `sent` is False where no request was
    made: it would fail like one before. `stated_nusd` is the part of the cost that the server itself stated:
    what was charged is no less. `claimed_nusd` is what the answer states, believed or not; None where it
    states nothing.
    """

    reply: TeacherReply
    cost_nusd: int | None
    retry: bool = False
    retry_after_s: float | None = None
    halt: Literal["", "teacher", "run"] = ""
    why: str = ""
    account: bool = False
    bill_id: str = ""
    sent: bool = True
    stated_nusd: int = 0
    claimed_nusd: int | None = None

    @property
    def final(self) -> bool:
        """Whether the reply is what this request will always give, and is kept in the ledger."""
        return self.reply.failure is None or self.reply.failure in FINAL_FAILURES


class Teacher(Protocol):
    """Anything that answers questions.

    `ask` makes exactly one attempt and raises nothing for a fault of the call: that is a reply with a
    `failure`. Retries, reservations and the ledger belong to the replay.
    """

    @property
    def name(self) -> str:
        """Unique in a run."""
        ...

    @property
    def family(self) -> str:
        """Vendor family, the unit votes are counted in."""
        ...

    @property
    def model(self) -> str:
        """Pinned model id."""
        ...

    @property
    def simulated(self) -> bool:
        """True where no model answers."""
        ...

    @property
    def price(self) -> Price:
        """What its tokens cost."""
        ...

    @property
    def context_tokens(self) -> int | None:
        """The longest prompt and answer together; None where nobody said."""
        ...

    def request_key(self, question: Question, sample: int) -> str:
        """What the answer is bought under; needs no network."""
        ...

    async def check(self) -> None:
        """Called once before the first call of a run. Raises TeacherError where no call can succeed."""
        ...

    def bound_nusd(self, question: Question) -> int:
        """The most one attempt can cost, in nano-USD; `check` has been called."""
        ...

    def recall(self, question: Question, reply: TeacherReply) -> None:
        """An answer of this teacher that was bought before: what it counted bounds the steps that follow."""
        ...

    async def ask(self, question: Question, sample: int) -> Asked:
        """One attempt; `reply.order` is left 0."""
        ...

    async def billed_nusd(self, bill_id: str) -> int | None:
        """What the server says an answer cost that did not say so itself, in nano-USD; None where it does
        not say, or not yet."""
        ...

    async def close(self) -> None:
        """Gives connections back."""
        ...


@runtime_checkable
class HasAccount(Protocol):
    """A teacher whose server says what was charged in all."""

    @property
    def account(self) -> str:
        """What the account is known by; nothing of its key can be read from it. "" where nobody can ask."""
        ...

    async def usage_nusd(self, fresh: bool) -> int | None:
        """Return what the account was charged so far, in nano-USD: as read lately, or `fresh`; None where it
        is not said. It may lag behind by minutes."""
        ...

    async def billed_nusd(self, bill_id: str) -> int | None:
        """As every teacher has it."""
        ...


def account_of(teacher: Teacher) -> str:
    """Return the account that calls of a teacher are charged to, "" where nobody can look at it."""
    return teacher.account if isinstance(teacher, HasAccount) else ""


def reply_to(teacher: Teacher, question: Question, sample: int, key: str) -> TeacherReply:
    """The reply of a teacher to a question before anything is known of it: who was asked what, under which
    request key."""
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
