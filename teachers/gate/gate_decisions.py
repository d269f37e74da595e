"""Decide which teachers are asked at which steps, before any money is spent."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from tracemill.records.families import UNKNOWN
from tracemill.records.identity import digest
from tracemill.records.reply import Decision
from tracemill.teachers.core.question import Question
from tracemill.teachers.core.teacher_settings import GatePolicy, GateSettings
from tracemill.teachers.gate.pair_value import ValuedStep

GATE_VERSION = "gate-7"
STUDENT_FAMILY = "student family"
NOT_SAMPLED = "not sampled"
ASKED = "every step"
SAMPLED = "sampled"
REASONS: Mapping[GatePolicy, tuple[str, str]] = {
    "voi": ("worth its cost", "not worth its cost"),
    "random": ("drawn", "not drawn"),
}
"""By policy: why a step is taken, and why it is not."""
WORTH, NOT_WORTH = REASONS["voi"]
TAKEN = frozenset(taken for taken, _ in REASONS.values())
PASSED_OVER = frozenset(left for _, left in REASONS.values())
EXPLORED = "explored"
"""Reason of a step where every teacher is asked, whatever the others answer: agreement figures and
estimated totals rest on these steps."""


@dataclass(frozen=True, slots=True)
class GateChoice:
    """A gate's choice at a step: whether it is `taken`, else the probability `explore` of asking."""

    step: ValuedStep
    taken: bool
    version: str
    explore: float


class NamedTeacher(Protocol):
    """The properties of a teacher, or of its settings, that the gate needs."""

    @property
    def name(self) -> str:
        """Return the name, unique in a run."""
        ...

    @property
    def family(self) -> str:
        """Return the vendor family."""
        ...


def coin(seed: int, step_id: str) -> float:
    """Return a number in [0, 1) that depends on seed and step.

    All teachers of a step share it, so that a step is asked of all or of none.
    """
    return int(digest("coin", str(seed), step_id, size=7), 16) / 2**56


def make_gate_decisions(
    questions: Iterable[Question],
    teachers: Sequence[NamedTeacher],
    seed: int,
    settings: GateSettings,
    choices: Mapping[str, GateChoice] | None = None,
) -> list[Decision]:
    """Return one decision for each question and teacher, in that order; deterministic.

    With `choices`, by step id, a taken step is asked and another one with its probability `explore`; without
    them every step is asked with the probability `fraction`.
    """
    return [
        _decide(question, teacher, drawn, settings, choice)
        for question in questions
        for drawn, choice in ((coin(seed, question.step_id), (choices or {}).get(question.step_id)),)
        for teacher in teachers
    ]


def _decide(
    question: Question, teacher: NamedTeacher, drawn: float, settings: GateSettings, choice: GateChoice | None
) -> Decision:
    is_own_family = settings.skip_student_family and teacher.family == question.student_family != UNKNOWN
    probability = 0.0 if is_own_family else _probability(settings, choice)
    ask = drawn < probability
    decision = Decision(
        step_id=question.step_id,
        teacher=teacher.name,
        verdict="ask" if ask else "skip",
        reason=STUDENT_FAMILY if is_own_family else _reason(drawn, probability, settings, choice),
        gate=choice.version if choice else GATE_VERSION,
        probability=probability,
        coin=drawn,
    )
    return decision if choice is None else _with_reasons(decision, choice)


def _probability(settings: GateSettings, choice: GateChoice | None) -> float:
    """Return the probability that a step is asked: `explore + (1 - explore) [taken]`."""
    if choice is None:
        return settings.fraction
    return 1.0 if choice.taken else choice.explore


def _reason(drawn: float, probability: float, settings: GateSettings, choice: GateChoice | None) -> str:
    if choice is not None:
        taken, left = REASONS[settings.policy]
        return EXPLORED if drawn < choice.explore else taken if choice.taken else left
    if drawn >= probability:
        return NOT_SAMPLED
    if drawn < probability * settings.explore:
        return EXPLORED
    return ASKED if probability == 1.0 else SAMPLED


def _with_reasons(decision: Decision, choice: GateChoice) -> Decision:
    step = choice.step
    return replace(
        decision,
        features=step.facts.words,
        belief=step.belief,
        utility=step.utility,
        expected_usd=step.expected_usd,
        explore=choice.explore,
    )
