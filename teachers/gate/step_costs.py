"""What asking at a step costs, given at which other steps of its context is asked.

Steps of a context share a growing prefix. What the step asked before it had is read from the cache, the rest
is new; where nobody was asked before, all of it is.
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
class Priced:
    """A teacher as far as its costs go. `share` is the share of the steps at which it is asked, where a
    step ends as soon as its label is certain."""

    name: str
    family: str
    price: Price
    share: float = 1.0


def teachers_by_step_cost(teachers: Sequence[Priced], tokens: int) -> list[Priced]:
    """The teachers by what a call with a prompt of so many tokens, cached for the most part, costs."""
    return sorted(
        teachers,
        key=lambda t: TokenCosts.of(t.price).call_usd(tokens, round(0.9 * tokens), ANSWER_TOKENS),
    )


def step_costs_usd(
    questions: Sequence[Question], teachers: Sequence[Priced], asked: Container[str] | None = None
) -> list[float]:
    """What each question is expected to cost in USD: of every teacher what a call costs times its share.
    `asked` has the steps at which is asked too, None: all."""
    shares = [teacher.share for teacher in teachers]
    calls = step_call_costs_usd(questions, teachers, asked)
    return [sum(usd * share for usd, share in zip(costs, shares, strict=True)) for costs in calls]


def step_call_costs_usd(
    questions: Sequence[Question], teachers: Sequence[Priced], asked: Container[str] | None = None
) -> list[list[float]]:
    """What a call to each teacher costs at each question, in USD. `asked` has the steps at which is asked
    too, None: all. Teachers of the student's family cost nothing: they are not asked."""
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


def step_costs_to_go(costs: Sequence[float], shares: Sequence[float]) -> list[float]:
    """Of each teacher what asking it and, as often as it comes to that, those after it costs."""
    found: list[float] = []
    for place, share in enumerate(shares):
        later = zip(costs[place:], shares[place:], strict=True)
        found.append(sum(usd * (min(other / share, 1.0) if share else 1.0) for usd, other in later))
    return found


def _usd(question: Question, teacher: Priced, tokens: int, cached: int) -> float:
    if teacher.family == question.student_family != UNKNOWN:
        return 0.0
    read = min(cached, tokens) if cache_rule(teacher.family).lifetime_s else 0
    return TokenCosts.of(teacher.price).call_usd(tokens, read, ANSWER_TOKENS)
