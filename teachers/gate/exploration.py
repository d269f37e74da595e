"""The explored steps go first where the money or the time may not last for all that is asked.

In the order of the traces each of their questions reads a prompt cache, and that is how they go where all
will be asked. First, they are paid in full, and are complete wherever a cap or a deadline ends the run.
"""

from collections.abc import Container, Sequence
from dataclasses import replace
from typing import NamedTuple

from tracemill.teachers.core.price import Price, nusd_to_usd, usd_up
from tracemill.teachers.planning.prompt_length import prompt_lengths_by_step
from tracemill.teachers.planning.replay_plan import ANSWER_TOKENS, LATENCY_S, Item
from tracemill.teachers.planning.strand_state import Call
from tracemill.teachers.pricing.prompt_cache import TokenCosts

FREE = Price()
_SAMPLE = 50
"""Items whose cost is looked at first, to see whether there is plenty."""
_PLENTY = 4.0
"""How many times what they all cost by that sample the room must be for no closer look."""
SAFETY = 1.5
"""How many times its expected cost, or time, a plan must fit into what there is to count as safe."""
MOST_KEPT = 0.5
"""The share of the money left that is kept at most for explored steps still to come."""


class Room(NamedTuple):
    """What there is for a plan: money, and seconds where there is a deadline, at `width` calls at once.
    `later` is how many times as much as this plan is to come after it."""

    nusd: int
    time_s: float | None
    width: int
    later: float = 0.0


def split_exploration_phases(items: Sequence[Item], explored: Container[str], room: Room) -> list[list[Item]]:
    """The items in the phases they are asked in: all at once where they fit into the room, else those at
    explored steps and then the others. The others leave what explored steps to come are expected to cost,
    up to `MOST_KEPT` of the room."""
    first = [item for item in items if item.question.step_id in explored]
    if not first or _fits(items, room):
        return [list(items)]
    kept = min(
        room.later * expected_exploration_usd(first, cached=False), MOST_KEPT * nusd_to_usd(max(room.nusd, 0))
    )
    rest = [item for item in items if item.question.step_id not in explored]
    return [phase for phase in (first, [replace(item, leave_nusd=usd_up(kept)) for item in rest]) if phase]


def _fits(items: Sequence[Item], room: Room) -> bool:
    times = SAFETY * (1 + room.later)
    if times * expected_exploration_usd(items, cached=True) > nusd_to_usd(max(room.nusd, 0)):
        return False
    return room.time_s is None or times * _expected_s(items, room.width) <= room.time_s


def _expected_s(items: Sequence[Item], width: int) -> float:
    """Seconds the items take: all of them at so many at once, or the longest trace step by step."""
    steps: dict[str, set[str]] = {}
    for item in items:
        steps.setdefault(item.question.trace_id, set()).add(item.question.step_id)
    return max(len(items) / width, *map(len, steps.values())) * LATENCY_S


def expected_exploration_usd(items: Sequence[Item], cached: bool) -> float:
    """What the items cost together, by the prices of their teachers and tokens of four bytes; `cached`
    where each reads what the step before it left."""
    return sum(expected_costs_usd(items, cached))


def expected_costs_usd(items: Sequence[Item], cached: bool) -> list[float]:
    """What each of the items costs, likewise."""
    costs = {id(item.teacher): TokenCosts.of(item.teacher.price) for item in items}
    lengths = prompt_lengths_by_step(item.question for item in items)
    found: list[float] = []
    for item in items:
        length = lengths[item.question.step_id]
        read = length.shared if cached else 0
        found.append(costs[id(item.teacher)].call_usd(length.tokens, read, ANSWER_TOKENS))
    return found


def expected_if_scarce(items: Sequence[Item], room_nusd: int) -> dict[Call, int] | None:
    """What each of the items is expected to cost, in nano-USD, where the room may not last for all of them;
    None where it does."""
    if not any(item.teacher.price != FREE for item in items):
        return None
    some = items[:: max(len(items) // _SAMPLE, 1)]
    likely = sum(expected_costs_usd(some, cached=False)) / max(len(some), 1) * len(items)
    if _PLENTY * likely <= nusd_to_usd(max(room_nusd, 0)):
        return None
    expected = expected_costs_usd(items, cached=True)
    if SAFETY * sum(expected) <= nusd_to_usd(max(room_nusd, 0)):
        return None
    return {item.call: usd_up(usd) for item, usd in zip(items, expected, strict=True)}
