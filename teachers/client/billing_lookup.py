"""Look up the price of an answer that did not state it, or stated less than its tokens cost.

OpenRouter's page on an answer (https://openrouter.ai/docs/api-reference/get-a-generation) appears some
seconds after the answer; until then it is HTTP 404.
"""

from collections.abc import Awaitable, Callable
from dataclasses import replace

from tracemill.teachers.core.teacher_protocol import AttemptResult, Teacher

MAX_LOOKUPS = 5
"""Attempts to read the page before the price counts as unknown."""


async def with_looked_up_bill(
    teacher: Teacher, asked: AttemptResult, sleep: Callable[[float], Awaitable[None]], first_wait_s: float
) -> AttemptResult:
    """Return the attempt with the price from the server's billing page, if its own is unknown.

    Waits between lookups double from `first_wait_s` seconds.
    """
    cost = await look_up_bill(teacher, asked.bill_id, sleep, first_wait_s) if asked.bill_id else None
    return asked if cost is None else replace(asked, cost_nanousd=cost, stated_nanousd=cost)


async def look_up_bill(
    teacher: Teacher,
    bill_id: str,
    sleep: Callable[[float], Awaitable[None]],
    first_wait_s: float,
    attempts: int = MAX_LOOKUPS,
) -> int | None:
    """Return the cost of an answer on the server's billing page, in nano-USD; None without a page."""
    wait_s = first_wait_s
    for attempt in range(attempts):
        if attempt:
            await sleep(wait_s)
            wait_s *= 2
        cost = await teacher.billed_nanousd(bill_id)
        if cost is not None:
            return cost
    return None
