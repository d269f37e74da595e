"""How a teacher stands against the agents it is to correct, without any truth: who is more often with the
consensus of the other teachers.

Teachers weaker than the student make bad labels. At a step that every teacher was asked at, those beside one
teacher often agree among themselves; where they do, and of that teacher and the student just one did the
same, it counts for that one (leave one out, a paired comparison). Where the trace was resolved the student's
way was a way too, and being without the consensus counts half against it.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

STUDENT = "student"
"""What the action of a vote is called that is the student's own."""
WEAKER_BELOW = 0.5
"""Standing below which a teacher is taken for weaker than the student."""
LEAST_COMPARED = 10.0
"""Steps that must tell teacher and student apart before that is said."""


@dataclass(frozen=True, slots=True)
class Heard:
    """A step of the explored slice: what each teacher's action counts as, by teacher, equal where they are
    one and `student` where it is the student's; None for an answer without a vote. `kin` are teachers of the
    student's family: they are not judged here and do not judge."""

    actions: Mapping[str, str | None]
    kin: frozenset[str] = frozenset()
    resolved: bool = False


@dataclass(slots=True)
class TeacherStanding:
    """What the explored slice says of a teacher. `agreed` of `asked`: how often it was with the consensus of
    the others, where they had one. `better` and `worse`: steps at which it was and the student was not, and
    the other way round."""

    agreed: int = 0
    asked: int = 0
    better: float = 0.0
    worse: float = 0.0

    @property
    def compared(self) -> float:
        """The steps that tell teacher and student apart."""
        return self.better + self.worse

    @property
    def standing(self) -> float:
        """Share of those that speak for the teacher, smoothed by one each; 0.5 where nothing is known."""
        return (self.better + 1) / (self.compared + 2)

    @property
    def weaker(self) -> bool:
        """True where enough was compared to say that the student is stronger."""
        return self.compared >= LEAST_COMPARED and self.standing < WEAKER_BELOW


def compare_teachers(steps: Iterable[Heard]) -> dict[str, TeacherStanding]:
    """The standing of each teacher, by name."""
    found: dict[str, TeacherStanding] = {}
    for step in steps:
        judged = {teacher: key for teacher, key in step.actions.items() if teacher not in step.kin}
        for teacher, own in judged.items():
            known = found.setdefault(teacher, TeacherStanding())
            agreed = _consensus([key for other, key in judged.items() if other != teacher])
            if agreed is None:
                continue
            known.asked += 1
            known.agreed += own == agreed
            if own == agreed != STUDENT:
                known.better += 0.5 if step.resolved else 1.0
            elif agreed == STUDENT != own:
                known.worse += 1.0
    return found


def _consensus(keys: Iterable[str | None]) -> str | None:
    """What most of some votes are for, at least two and more than for anything else."""
    ranked = Counter(key for key in keys if key is not None).most_common(2)
    if not ranked or ranked[0][1] < 2 or (len(ranked) == 2 and ranked[1][1] == ranked[0][1]):
        return None
    return ranked[0][0]
