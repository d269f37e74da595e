"""Share what teachers have in common that answer in this process."""

from tracemill.records.reply import TeacherReply
from tracemill.teachers.core.price import Price, price_of
from tracemill.teachers.core.question import Question
from tracemill.teachers.core.teacher_settings import BaseTeacherSettings, PriceSettings


class OfflineTeacher:
    """The part of a `Teacher` that needs no server: names, price, and no connection."""

    def __init__(self, settings: BaseTeacherSettings, prices: PriceSettings | None) -> None:
        self.name = settings.name
        self.family = settings.family
        self.model = settings.model
        self._price = price_of(prices) if prices else Price()

    @property
    def price(self) -> Price:
        """Return the configured price."""
        return self._price

    @property
    def context_tokens(self) -> int | None:
        """Return None: there is no limit."""
        return None

    async def check(self) -> None:
        """Do nothing: it can always answer."""

    def recall(self, question: Question, reply: TeacherReply) -> None:
        """Do nothing: its bounds are bytes."""

    async def billed_nanousd(self, bill_id: str) -> int | None:
        """Return None: every answer states its cost."""
        return None

    async def close(self) -> None:
        """Do nothing: no connection is open."""
