"""Define the teacher presets that ship with the product."""

from dataclasses import dataclass

from tracemill.teachers.core.bundled_prices import OFFLINE_PRICES
from tracemill.teachers.core.teacher_settings import (
    BaseTeacherSettings,
    OpenRouterTeacherSettings,
    SimulatedTeacherSettings,
)


@dataclass(frozen=True, slots=True)
class Preset:
    """A named set of teachers; `terms` is a note that its user must read before asking them."""

    name: str
    teachers: tuple[BaseTeacherSettings, ...]
    terms: str


def _open(model: str) -> OpenRouterTeacherSettings:
    return OpenRouterTeacherSettings(model=model, enforce_distillable_text=True)


OPEN = Preset(
    name="open",
    teachers=(
        _open("deepseek/deepseek-v4-pro-0813"),
        _open("moonshotai/kimi-k3"),
        _open("z-ai/glm-5.3"),
        _open("qwen/qwen3.8-27b"),
    ),
    terms=(
        "Asked with provider.enforce_distillable_text: only endpoints whose author allows text "
        "distillation answer. That is OpenRouter's best effort; check each model's licence yourself."
    ),
)

FRONTIER = Preset(
    name="frontier",
    teachers=tuple(
        OpenRouterTeacherSettings(model=model)
        for model in (
            "anthropic/claude-sonnet-5.5",
            "openai/gpt-6.1-sol",
            "google/gemini-3.1-pro-preview",
            "deepseek/deepseek-v4-pro-0813",
        )
    ),
    terms=(
        "Anthropic, OpenAI and Google restrict in their terms what their models' outputs may be used for; "
        "training a model that competes with theirs is named there. Whether your use is allowed is for "
        "you to settle before you train on these answers or publish them."
    ),
)

SIMULATED = Preset(
    name="simulated",
    teachers=tuple(
        SimulatedTeacherSettings(model=model, prices=OFFLINE_PRICES[model])
        for model in ("simulated/deepseek-a", "simulated/kimi-a", "simulated/glm-a", "simulated/qwen-a")
    ),
    terms="No model answers: these teachers are a deterministic program, and every row says so.",
)

PRESETS: dict[str, Preset] = {preset.name: preset for preset in (OPEN, FRONTIER, SIMULATED)}

DEFAULT_TEACHERS: tuple[BaseTeacherSettings, ...] = OPEN.teachers
"""The teachers of the preset `open`: four open-weight model families through OpenRouter."""
