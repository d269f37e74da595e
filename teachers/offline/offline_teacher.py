"""What teachers have in common that answer in this process and send nothing."""

from tracemill.records.reply import TeacherReply
from tracemill.teachers.core.price import Price, price_of
from tracemill.teachers.core.question import Question
from tracemill.teachers.core.teacher_settings import BaseTeacherSettings, PriceSettings


class OfflineTeacher:
    """The part of a `Teacher` that needs no server: its names, its price list, and no connection."""

    def __init__(self, settings: BaseTeacherSettings, prices: PriceSettings | None) -> None:
        self.name = settings.name
        self.family = settings.family
        self.model = settings.model
        self._price = price_of(prices) if prices else Price()

    @property
    def price(self) -> Price:
        """What its price list says."""
        return self._price

    @property
    def context_tokens(self) -> int | None:
        """No end."""
        return None

    async def check(self) -> None:
        """Nothing: it can always answer."""

    def recall(self, question: Question, reply: TeacherReply) -> None:
        """Nothing: its bounds are bytes."""

    async def billed_nusd(self, bill_id: str) -> int | None:
        """Nobody: every answer says what it cost."""
        return None

    async def close(self) -> None:
        """Nothing is open."""
