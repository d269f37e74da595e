"""What the terms of a teacher say about training on its answers, as the card tells it: facts, no advice."""

from tracemill.data_cards.model.vendor_terms import find_vendor_restriction
from tracemill.teachers.core.teacher_settings import BaseTeacherSettings

_ENFORCED = (
    "asked with enforce_distillable_text: only endpoints whose author allows text distillation answer, as far"
    " as OpenRouter knows"
)
_SIMULATED = "no model answers: a deterministic program"
_OWN = "the licence of the model decides"


def training_terms(teacher: BaseTeacherSettings) -> tuple[bool | None, str]:
    """Whether training on its answers is allowed, None where that is not known, and a sentence on why."""
    if teacher.simulated:
        return None, _SIMULATED
    if teacher.data_policy().distillable:
        return True, _ENFORCED
    if teacher.vendor_answers and (said := find_vendor_restriction(teacher.family, teacher.model)):
        return False, said
    return None, _OWN
