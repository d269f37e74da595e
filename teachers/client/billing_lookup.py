"""The price of an answer that did not say it, or said less than its tokens cost: looked up once it is there,
and settled on.

OpenRouter's page on an answer (https://openrouter.ai/docs/api-reference/get-a-generation) is there some
seconds after the answer itself. Until then it is HTTP 404.
"""

from collections.abc import Awaitable, Callable
from dataclasses import replace

from tracemill.teachers.core.teacher_protocol import Asked, Teacher

LOOKS = 5
"""Looks at the page before the price is taken for unknown."""


async def with_looked_up_bill(
    teacher: Teacher, asked: Asked, nap: Callable[[float], Awaitable[None]], first_wait_s: float
) -> Asked:
    """The attempt at the price that the server's page says, where the answer did not say its own and the
    page does. Waits between looks double from `first_wait_s`."""
    cost = await look_up_bill(teacher, asked.bill_id, nap, first_wait_s) if asked.bill_id else None
    return asked if cost is None else replace(asked, cost_nusd=cost, stated_nusd=cost)


async def look_up_bill(
    teacher: Teacher,
    bill_id: str,
    nap: Callable[[float], Awaitable[None]],
    first_wait_s: float,
    looks: int = LOOKS,
) -> int | None:
    """Return what the server's page says that an answer cost, in nano-USD; None where the last look finds no
    such page."""
    wait_s = first_wait_s
    for look in range(looks):
        if look:
            await nap(wait_s)
            wait_s *= 2
        cost = await teacher.billed_nusd(bill_id)
        if cost is not None:
            return cost
    return None
