"""What the terms of a teacher say about training on its answers, as the card tells it: facts, no advice."""

from teachers.settings import OpenRouterSettings, TeacherSettings

_RESTRICTED = {
    "anthropic": "Anthropic's terms forbid training a competing model on outputs without its approval",
    "openai": "OpenAI's terms forbid using outputs to develop models that compete with its own",
    "google": "Google's terms restrict developing models that compete with its own",
}
_OPEN_WEIGHTS = ("gpt-oss", "gemma")
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
    if teacher.family in _RESTRICTED and not any(name in teacher.model for name in _OPEN_WEIGHTS):
        return False, _RESTRICTED[teacher.family]
    return None, _OWN
