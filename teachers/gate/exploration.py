"""Ask explored steps first where money or time may not last for everything.

In trace order each question reads a prompt cache, so this is the order where all will be asked. Asked first,
explored steps cost full price, and are complete wherever a cap or a deadline ends the run.
"""

from collections.abc import Container, Sequence
from dataclasses import replace
from typing import NamedTuple

from tracemill.teachers.core.price import Price, nanousd_to_usd, usd_up
from tracemill.teachers.planning.prompt_length import prompt_lengths_by_step
from tracemill.teachers.planning.replay_plan import ANSWER_TOKENS, LATENCY_S, WantedAnswer
from tracemill.teachers.planning.strand_state import OutgoingCall
from tracemill.teachers.pricing.prompt_cache import TokenCosts

FREE = Price()
_SAMPLE = 50
"""Items in the sample that shows whether there is plenty of budget."""
_PLENTY = 4.0
"""Ratio of budget to sampled cost from which on costs are not computed item by item."""
SAFETY = 1.5
"""Ratio of budget, or time, to expectation from which on a plan counts as safe."""
MOST_KEPT = 0.5
"""Highest share of the money left that is kept for later explored steps."""


class PlanBudget(NamedTuple):
    """The budget of a plan: nano-USD, and seconds until a deadline if there is one, at `width` calls at once.

    `remaining` is the work that comes after this plan, as a multiple of it.
    """

    nanousd: int
    time_s: float | None
    width: int
    remaining: float = 0.0


def split_exploration_phases(
    items: Sequence[WantedAnswer], explored: Container[str], room: PlanBudget
) -> list[list[WantedAnswer]]:
    """Split the items into phases: one if all fit the budget, else explored steps first.

    The other items leave budget for the expected cost of later explored steps, up to `MOST_KEPT` of the
    money.
    """
    first = [item for item in items if item.question.step_id in explored]
    if not first or _fits(items, room):
        return [list(items)]
    kept = min(
        room.remaining * expected_exploration_usd(first, cached=False),
        MOST_KEPT * nanousd_to_usd(max(room.nanousd, 0)),
    )
    rest = [item for item in items if item.question.step_id not in explored]
    return [phase for phase in (first, [replace(item, leave_nanousd=usd_up(kept)) for item in rest]) if phase]


def _fits(items: Sequence[WantedAnswer], room: PlanBudget) -> bool:
    times = SAFETY * (1 + room.remaining)
    if times * expected_exploration_usd(items, cached=True) > nanousd_to_usd(max(room.nanousd, 0)):
        return False
    return room.time_s is None or times * _expected_s(items, room.width) <= room.time_s


def _expected_s(items: Sequence[WantedAnswer], width: int) -> float:
    """Return the seconds that the items take: all at `width` at once, or the longest trace."""
    steps: dict[str, set[str]] = {}
    for item in items:
        steps.setdefault(item.question.trace_id, set()).add(item.question.step_id)
    return max(len(items) / width, *map(len, steps.values())) * LATENCY_S


def expected_exploration_usd(items: Sequence[WantedAnswer], cached: bool) -> float:
    """Return the cost of the items together in USD, at four bytes a token.

    `cached` is whether each prompt reads the cache that the step before it wrote.
    """
    return sum(expected_costs_usd(items, cached))


def expected_costs_usd(items: Sequence[WantedAnswer], cached: bool) -> list[float]:
    """Return the cost of each item in USD; see `expected_exploration_usd`."""
    costs = {id(item.teacher): TokenCosts.of(item.teacher.price) for item in items}
    lengths = prompt_lengths_by_step(item.question for item in items)
    found: list[float] = []
    for item in items:
        length = lengths[item.question.step_id]
        read = length.shared if cached else 0
        found.append(costs[id(item.teacher)].call_usd(length.tokens, read, ANSWER_TOKENS))
    return found


def expected_if_scarce(items: Sequence[WantedAnswer], room_nanousd: int) -> dict[OutgoingCall, int] | None:
    """Return the expected cost of each item in nano-USD; None if the budget suffices."""
    if not any(item.teacher.price != FREE for item in items):
        return None
    some = items[:: max(len(items) // _SAMPLE, 1)]
    likely = sum(expected_costs_usd(some, cached=False)) / max(len(some), 1) * len(items)
    if _PLENTY * likely <= nanousd_to_usd(max(room_nanousd, 0)):
        return None
    expected = expected_costs_usd(items, cached=True)
    if SAFETY * sum(expected) <= nanousd_to_usd(max(room_nanousd, 0)):
        return None
    return {item.call: usd_up(usd) for item, usd in zip(items, expected, strict=True)}
