"""Check before any money is spent that the teachers of a run can make a vote."""

from collections.abc import Collection, Sequence

from tracemill.records.errors import ConfigError
from tracemill.records.families import UNKNOWN
from tracemill.teachers.core.teacher_settings import BaseTeacherSettings


def eligible_families(
    teachers: Sequence[BaseTeacherSettings], student_family: str, exclude_student_family: bool = True
) -> set[str]:
    """Return the vendor families that may vote on steps of a student of `student_family`."""
    families = {teacher.family for teacher in teachers} - {UNKNOWN}
    return families - {student_family} if exclude_student_family else families


def require_eligible(
    teachers: Sequence[BaseTeacherSettings],
    student_families: Collection[str],
    *,
    threshold: int = 2,
    min_families: int = 2,
    exclude_student_family: bool = True,
) -> None:
    """Raise ConfigError if names repeat, or if too few teachers may vote for a student.

    A vote needs at least `threshold` teachers, and one family more than `min_families`, so that a single
    failed teacher does not make it impossible.
    """
    names = [teacher.name for teacher in teachers]
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise ConfigError(f"teachers share a name: {', '.join(repeated)}", "unique names", "set `name`")
    for student in sorted(student_families) or [UNKNOWN]:
        families = eligible_families(teachers, student, exclude_student_family)
        voters = [teacher for teacher in teachers if teacher.family in families]
        wanted = min_families + 1
        if len(families) >= wanted and len(voters) >= threshold:
            continue
        raise ConfigError(
            f"{len(families)} families ({', '.join(sorted(families)) or 'none'}) may vote on steps of the "
            f"family {student!r}",
            f"{wanted} families and {threshold} teachers",
            "add teachers of other families, or set `family` if the model id does not show it",
        )
