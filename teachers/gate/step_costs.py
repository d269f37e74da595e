"""Estimate what asking at a step costs, given which other steps of its context are asked.

Steps of a context share a growing prefix. The prefix of the last asked step is read from the cache, the rest
is new.
"""

from collections.abc import Container, Sequence
from dataclasses import dataclass

from tracemill.records.families import UNKNOWN
from tracemill.teachers.core.price import Price
from tracemill.teachers.core.question import Question
from tracemill.teachers.planning.replay_plan import ANSWER_TOKENS, replay_plan_lengths
from tracemill.teachers.pricing.cache_rules import cache_rule
from tracemill.teachers.pricing.prompt_cache import TokenCosts


@dataclass(frozen=True, slots=True)
class PricedTeacher:
    """The price of a teacher; `share` is the share of steps at which it is asked."""

    name: str
    family: str
    price: Price
    share: float = 1.0


def teachers_by_step_cost(teachers: Sequence[PricedTeacher], tokens: int) -> list[PricedTeacher]:
    """Return the teachers sorted by the cost of a mostly cached prompt of this many tokens."""
    return sorted(
        teachers,
        key=lambda t: TokenCosts.of(t.price).call_usd(tokens, round(0.9 * tokens), ANSWER_TOKENS),
    )


def step_costs_usd(
    questions: Sequence[Question], teachers: Sequence[PricedTeacher], asked: Container[str] | None = None
) -> list[float]:
    """Return the expected cost of each question in USD: each teacher's call times its share.

    `asked` has the steps that are asked, None for all.
    """
    shares = [teacher.share for teacher in teachers]
    calls = step_call_costs_usd(questions, teachers, asked)
    return [sum(usd * share for usd, share in zip(costs, shares, strict=True)) for costs in calls]


def step_call_costs_usd(
    questions: Sequence[Question], teachers: Sequence[PricedTeacher], asked: Container[str] | None = None
) -> list[list[float]]:
    """Return the cost of a call to each teacher at each question, in USD.

    `asked` has the steps that are asked, None for all. Teachers of the student's family are not asked and
    cost 0.
    """
    sizes = [length.tokens for length in replay_plan_lengths(questions)]
    found: list[list[float]] = []
    context, cached = "", 0
    for question, tokens in zip(questions, sizes, strict=True):
        here = question.context
        if here != context:
            context, cached = here, 0
        found.append([_usd(question, teacher, tokens, cached) for teacher in teachers])
        if asked is None or question.step_id in asked:
            cached = tokens
    return found


def _usd(question: Question, teacher: PricedTeacher, tokens: int, cached: int) -> float:
    if teacher.family == question.student_family != UNKNOWN:
        return 0.0
    read = min(cached, tokens) if cache_rule(teacher.family).lifetime_s else 0
    return TokenCosts.of(teacher.price).call_usd(tokens, read, ANSWER_TOKENS)
