"""Say what a teacher's terms say about training on its answers: facts, no advice."""

from collections.abc import Iterable

from tracemill.data_cards.model.vendor_terms import find_vendor_restriction
from tracemill.records.errors import ConfigError
from tracemill.teachers.core.teacher_settings import BaseTeacherSettings

_ENFORCED = (
    "asked with enforce_distillable_text: only endpoints whose author allows text distillation answer, as far"
    " as OpenRouter knows"
)
_STAND_INS = {
    "simulated": "no model answers: a deterministic program",
    "written by hand": "no model answers: a person wrote the answers for an example",
}
_ALLOWED = {"allowed": True, "forbidden": False, "unknown": None}
_OWN = "the licence of the model decides"


def require_training_terms(teachers: Iterable[BaseTeacherSettings]) -> None:
    """Raise ConfigError for the first teacher whose terms are known to restrict training on its answers."""
    for teacher in teachers:
        allowed, said = training_terms(teacher)
        if allowed is False:
            raise ConfigError(
                f"terms of the teacher {teacher.name}: {said}",
                "answers that may be trained on",
                "choose another teacher, or give --accept-terms (accept_terms = true) if this is cleared",
            )


def training_terms(teacher: BaseTeacherSettings) -> tuple[bool | None, str]:
    """Return whether training on its answers is allowed, None if unknown, and the reason."""
    if teacher.simulated:
        return None, _STAND_INS[teacher.stand_in]
    if teacher.terms is not None:
        return _ALLOWED[teacher.terms], f'"{teacher.terms}", as the user of this release says'
    if teacher.data_policy().distillable:
        return True, _ENFORCED
    if teacher.vendor_answers and (said := find_vendor_restriction(teacher.family, teacher.model)):
        return False, said
    return None, _OWN
