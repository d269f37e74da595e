"""Teacher sets that ship with the product, with the prices of 2026-11-21 for offline bounds.

Prices are USD per million tokens from OpenRouter's catalogue (https://openrouter.ai/api/v1/models);
a run over the network reads them afresh.
"""

from dataclasses import dataclass

from teachers.settings import OpenRouterSettings, PriceSettings, SimulatedSettings, TeacherSettings


@dataclass(frozen=True, slots=True)
class Preset:
    """A named set of teachers; `terms` is what its user must know before asking them."""

    name: str
    teachers: tuple[TeacherSettings, ...]
    terms: str


def _price(prompt: str, completion: str, read: str, write: str | None = None) -> PriceSettings:
    return PriceSettings.model_validate(
        {"prompt_usd": prompt, "completion_usd": completion, "cache_read_usd": read, "cache_write_usd": write}
    )


OFFLINE_PRICES: dict[str, PriceSettings] = {
    "deepseek/deepseek-v4-pro-0813": _price("0.66", "1.98", "0.022"),
    "moonshotai/kimi-k3": _price("3", "15", "0.3"),
    "z-ai/glm-5.3": _price("1.4", "4.4", "0.26"),
    "qwen/qwen3.8-27b": _price("0.425", "2.55", "0.085", "0.53"),
    "minimax/minimax-m3": _price("0.3", "1.2", "0.06"),
    "anthropic/claude-sonnet-5.5": _price("2", "10", "0.1", "2.5"),
    "openai/gpt-6.1-sol": _price("2", "10", "0.1", "2.5"),
    "google/gemini-3.1-pro-preview": _price("4", "18", "0.4", "0.75"),
    "simulated/deepseek-a": _price("0.21", "0.84", "0.0042"),
    "simulated/kimi-a": _price("0.6", "2.5", "0.06"),
    "simulated/glm-a": _price("0.4", "1.6", "0.07"),
    "simulated/qwen-a": _price("0.3", "1.2", "0.06"),
}
"""Prices by model id. Where a catalogue prices long prompts higher, this is the higher price."""


def _open(model: str) -> OpenRouterSettings:
    return OpenRouterSettings(model=model, enforce_distillable_text=True)


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
        OpenRouterSettings(model=model)
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
        SimulatedSettings(model=model, prices=OFFLINE_PRICES[model])
        for model in ("simulated/deepseek-a", "simulated/kimi-a", "simulated/glm-a", "simulated/qwen-a")
    ),
    terms="No model answers: these teachers are a deterministic program, and every row says so.",
)

PRESETS: dict[str, Preset] = {preset.name: preset for preset in (OPEN, FRONTIER, SIMULATED)}

DEFAULT_TEACHERS: tuple[TeacherSettings, ...] = OPEN.teachers
