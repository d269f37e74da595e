"""Decide which teachers are asked at which steps, before any money is spent."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from tracemill.records.families import UNKNOWN
from tracemill.records.identity import digest
from tracemill.records.reply import AskDecision
from tracemill.teachers.core.question import Question
from tracemill.teachers.core.teacher_protocol import Teacher
from tracemill.teachers.core.teacher_settings import BaseTeacherSettings, GateSettings
from tracemill.teachers.gate.pair_value import ValuedStep

GATE_VERSION = "gate-8"
STUDENT_FAMILY = "student family"
ASKED = "every step"
WORTH, NOT_WORTH = "worth its cost", "not worth its cost"
EXPLORED = "explored"
"""Reason of a step where every teacher is asked, whatever the others answer: agreement figures and
estimated totals rest on these steps."""


@dataclass(frozen=True, slots=True)
class GateChoice:
    """A gate's choice at a step: whether it is `taken` (selected), else the probability of exploring it."""

    step: ValuedStep
    taken: bool
    version: str
    explore: float


def coin(seed: int, step_id: str) -> float:
    """Return a number in [0, 1) that depends on seed and step.

    All teachers of a step share it, so that either all of them are asked or none.
    """
    return int(digest("coin", str(seed), step_id, size=7), 16) / 2**56


def make_gate_decisions(
    questions: Iterable[Question],
    teachers: Sequence[Teacher | BaseTeacherSettings],
    seed: int,
    settings: GateSettings,
    choices: Mapping[str, GateChoice] | None = None,
) -> list[AskDecision]:
    """Return one decision for each question and teacher, in that order; deterministic.

    With `choices`, by step id, a selected step is asked and another one with its probability `explore`;
    without them every step is asked.
    """
    return [
        _decide(question, teacher, drawn, settings, choice)
        for question in questions
        for drawn, choice in ((coin(seed, question.step_id), (choices or {}).get(question.step_id)),)
        for teacher in teachers
    ]


def _decide(
    question: Question,
    teacher: Teacher | BaseTeacherSettings,
    drawn: float,
    settings: GateSettings,
    choice: GateChoice | None,
) -> AskDecision:
    is_own_family = settings.skip_student_family and teacher.family == question.student_family != UNKNOWN
    probability = 0.0 if is_own_family else _probability(choice)
    ask = drawn < probability
    decision = AskDecision(
        step_id=question.step_id,
        teacher=teacher.name,
        verdict="ask" if ask else "skip",
        reason=STUDENT_FAMILY if is_own_family else _reason(drawn, settings, choice),
        gate=choice.version if choice else GATE_VERSION,
        probability=probability,
        coin=drawn,
    )
    return decision if choice is None else _with_reasons(decision, choice)


def _probability(choice: GateChoice | None) -> float:
    """Return the probability that a step is asked: `explore + (1 - explore) [taken]`."""
    return 1.0 if choice is None or choice.taken else choice.explore


def _reason(drawn: float, settings: GateSettings, choice: GateChoice | None) -> str:
    if choice is None:
        return EXPLORED if drawn < settings.explore else ASKED
    return EXPLORED if drawn < choice.explore else WORTH if choice.taken else NOT_WORTH


def _with_reasons(decision: AskDecision, choice: GateChoice) -> AskDecision:
    step = choice.step
    return replace(
        decision,
        features=step.facts.words,
        belief=step.belief,
        expected_usd=step.expected_usd,
        explore=choice.explore,
    )
