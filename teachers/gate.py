"""Which teachers are asked at which steps; decided, and written down by the caller, before money."""

from collections.abc import Iterable, Sequence
from typing import Protocol

from records.families import UNKNOWN
from records.identity import digest
from records.reply import Decision
from teachers.question import Question
from teachers.settings import GateSettings

GATE_VERSION = "all-2"
STUDENT_FAMILY = "student family"
NOT_SAMPLED = "not sampled"
ASKED = "every step"
SAMPLED = "sampled"
EXPLORED = "explored"
"""The reason of a step that every teacher is asked at, whatever the others said: figures on agreement
rest on these steps alone."""


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


def _decide(question: Question, teacher: Named, drawn: float, settings: GateSettings) -> Decision:
    own = settings.skip_student_family and teacher.family == question.student_family != UNKNOWN
    probability = 0.0 if own else settings.fraction
    ask = drawn < probability
    explored = drawn < probability * settings.explore
    taken = EXPLORED if explored else ASKED if probability == 1.0 else SAMPLED
    reason = STUDENT_FAMILY if own else taken if ask else NOT_SAMPLED
    return Decision(
        step_id=question.step_id,
        teacher=teacher.name,
        verdict="ask" if ask else "skip",
        reason=reason,
        gate=GATE_VERSION,
        probability=probability,
        coin=drawn,
    )


def decide(
    questions: Iterable[Question], teachers: Sequence[Named], seed: int, settings: GateSettings
) -> list[Decision]:
    """One decision for each question and teacher, in that order; the same inputs, the same decisions."""
    return [
        _decide(question, teacher, drawn, settings)
        for question in questions
        for drawn in (coin(seed, question.step_id),)
        for teacher in teachers
    ]
