"""What the terms of a teacher say about training on its answers, as the card tells it: facts, no advice."""

from tracemill.data_cards.model.vendor_terms import restriction_of
from tracemill.teachers.core.teacher_settings import OpenRouterSettings, TeacherSettings

_ENFORCED = (
    "asked with enforce_distillable_text: only endpoints whose author allows text distillation answer, as far"
    " as OpenRouter knows"
)
_SIMULATED = "no model answers: a deterministic program"
_OWN = "the licence of the model decides"


def terms_of(teacher: TeacherSettings) -> tuple[bool | None, str]:
    """Whether training on its answers is allowed, None where that is not known, and a sentence on why."""
    if teacher.type == "simulated":
        return None, _SIMULATED
    if not isinstance(teacher, OpenRouterSettings):
        return None, _OWN
    if teacher.enforce_distillable_text:
        return True, _ENFORCED
    if said := restriction_of(teacher.family, teacher.model):
        return False, said
    return None, _OWN
