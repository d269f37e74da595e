"""Which teachers are asked at which steps; decided, and written down by the caller, before money."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from tracemill.records.families import UNKNOWN
from tracemill.records.identity import digest
from tracemill.records.reply import Decision
from tracemill.teachers.core.question import Question
from tracemill.teachers.core.teacher_settings import GatePolicy, GateSettings
from tracemill.teachers.gate.pair_value import Valued

GATE_VERSION = "gate-6"
STUDENT_FAMILY = "student family"
NOT_SAMPLED = "not sampled"
ASKED = "every step"
SAMPLED = "sampled"
REASONS: Mapping[GatePolicy, tuple[str, str]] = {
    "voi": ("worth its cost", "not worth its cost"),
    "random": ("drawn", "not drawn"),
    "first_k": ("among the first", "not among the first"),
    "after_error": ("chosen, errors first", "not chosen, errors first"),
    "entropy_only": ("among the least certain", "not among the least certain"),
}
"""By policy why a step is taken, and why another one is not."""
WORTH, NOT_WORTH = REASONS["voi"]
TAKEN = frozenset(taken for taken, _ in REASONS.values())
PASSED_OVER = frozenset(left for _, left in REASONS.values())
EXPLORED = "explored"
"""The reason of a step that every teacher is asked at, whatever the others said: figures on agreement and
estimated totals rest on these steps."""


@dataclass(frozen=True, slots=True)
class Ahead:
    """What a stop by value goes by before a teacher is asked: its `place` among those asked at the step, the
    `price` of money in worth per USD, and what asking it and those after it is expected to cost."""

    place: int
    price: float
    to_go_usd: float


@dataclass(frozen=True, slots=True)
class Choice:
    """What a gate that chooses made of a step: whether it is `taken`, and why; one that is not is asked with
    the probability `explore`."""

    step: Valued
    taken: bool
    version: str
    explore: float
    ahead: Mapping[str, Ahead] = field(default_factory=dict[str, Ahead])
    """By teacher, where asking may stop by value between them."""


class Named(Protocol):
    """What the gate needs of a teacher or of its settings."""

    @property
    def name(self) -> str:
        """Unique in a run."""
        ...

    @property
    def family(self) -> str:
        """Vendor family."""
        ...


def coin(seed: int, step_id: str) -> float:
    """A number in [0, 1) that depends on seed and step; all teachers of a step share it, so that a
    step is asked by all or by none."""
    return int(digest("coin", str(seed), step_id, size=7), 16) / 2**56


def make_gate_decisions(
    questions: Iterable[Question],
    teachers: Sequence[Named],
    seed: int,
    settings: GateSettings,
    choices: Mapping[str, Choice] | None = None,
) -> list[Decision]:
    """One decision for each question and teacher, in that order; the same inputs, the same decisions.

    With `choices`, by step id, a taken step is asked and another one with the probability they say; without
    them a step is asked with the probability `fraction`.
    """
    return [
        _decide(question, teacher, drawn, settings, choice)
        for question in questions
        for drawn, choice in ((coin(seed, question.step_id), (choices or {}).get(question.step_id)),)
        for teacher in teachers
    ]


def _decide(
    question: Question, teacher: Named, drawn: float, settings: GateSettings, choice: Choice | None
) -> Decision:
    own = settings.skip_student_family and teacher.family == question.student_family != UNKNOWN
    probability = 0.0 if own else _probability(settings, choice)
    ask = drawn < probability
    decision = Decision(
        step_id=question.step_id,
        teacher=teacher.name,
        verdict="ask" if ask else "skip",
        reason=STUDENT_FAMILY if own else _reason(drawn, probability, settings, choice),
        gate=choice.version if choice else GATE_VERSION,
        probability=probability,
        coin=drawn,
    )
    return decision if choice is None else _with_reasons(decision, choice)


def _probability(settings: GateSettings, choice: Choice | None) -> float:
    """That a step is asked: `explore + (1 - explore) [taken]`."""
    if choice is None:
        return settings.fraction
    return 1.0 if choice.taken else choice.explore


def _reason(drawn: float, probability: float, settings: GateSettings, choice: Choice | None) -> str:
    if choice is not None:
        taken, left = REASONS[settings.policy]
        return EXPLORED if drawn < choice.explore else taken if choice.taken else left
    if drawn >= probability:
        return NOT_SAMPLED
    if drawn < probability * settings.explore:
        return EXPLORED
    return ASKED if probability == 1.0 else SAMPLED


def _with_reasons(decision: Decision, choice: Choice) -> Decision:
    step, ahead = choice.step, choice.ahead.get(decision.teacher)
    return replace(
        decision,
        features=step.facts.words,
        belief=step.belief,
        utility=step.utility,
        expected_usd=step.expected_usd,
        explore=choice.explore,
        place=None if ahead is None else ahead.place,
        price=None if ahead is None else ahead.price,
        to_go_usd=None if ahead is None else ahead.to_go_usd,
    )
