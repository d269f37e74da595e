"""List prices of models for estimates without network; a run reads current prices.

USD per million tokens, from OpenRouter's catalogue (https://openrouter.ai/api/v1/models).
"""

from tracemill.teachers.core.price import Price, price_of
from tracemill.teachers.core.teacher_settings import PriceSettings

OFFLINE_DAY = "2026-11-21"
"""Date of the prices (UTC)."""


def _price(
    prompt: str,
    completion: str,
    read: str | None = None,
    write: str | None = None,
    tiers: tuple[dict[str, object], ...] = (),
) -> PriceSettings:
    return PriceSettings.model_validate(
        {
            "prompt_usd": prompt,
            "completion_usd": completion,
            "cache_read_usd": read,
            "cache_write_usd": write,
            "tiers": tiers,
        }
    )


def _above(tokens: int, prompt: str, completion: str, read: str, write: str) -> tuple[dict[str, object], ...]:
    given = {"prompt_usd": prompt, "completion_usd": completion}
    return ({"above_tokens": tokens, **given, "cache_read_usd": read, "cache_write_usd": write},)


OFFLINE_PRICES: dict[str, PriceSettings] = {
    "anthropic/claude-fable-5.1": _price("10", "50", "0.25", "12.5"),
    "anthropic/claude-opus-5.5": _price("4", "20", "0.2", "5"),
    "anthropic/claude-opus-5": _price("5", "25", "0.5", "6.25"),
    "anthropic/claude-sonnet-5.5": _price("2", "10", "0.1", "2.5"),
    "anthropic/claude-sonnet-4.6": _price("3", "15", "0.3", "3.75"),
    "anthropic/claude-haiku-5.5": _price(
        "0.1", "0.5", "0.01", "0.125", _above(100_000, "0.5", "2.5", "0.05", "0.625")
    ),
    "openai/gpt-6-astra": _price("10", "50", "1", "12.5", _above(272_000, "20", "75", "2", "25")),
    "openai/gpt-6.1-sol": _price("2", "10", "0.1", "2.5", _above(272_000, "4", "15", "0.2", "5")),
    "openai/gpt-6.1-terra": _price("1", "5", "0.05", "1.25", _above(272_000, "2", "7.5", "0.1", "2.5")),
    "openai/gpt-6-luna": _price(
        "0.1", "0.5", "0.01", "0.125", _above(272_000, "0.2", "0.75", "0.02", "0.25")
    ),
    "google/gemini-3.1-pro-preview": _price(
        "2", "12", "0.2", "0.375", _above(200_000, "4", "18", "0.4", "0.75")
    ),
    "google/gemini-3.8-flash": _price("0.75", "3.75", "0.075", "0.042"),
    "x-ai/grok-4.7": _price("2", "6", "0.5"),
    "deepseek/deepseek-v4-pro-0813": _price("0.66", "1.98", "0.022"),
    "deepseek/deepseek-v4.1-flash": _price("0.21", "0.84", "0.0042"),
    "moonshotai/kimi-k3.1-pro": _price("2", "10", "0.2"),
    "moonshotai/kimi-k3": _price("3", "15", "0.3"),
    "z-ai/glm-5.3": _price("1.4", "4.4", "0.26"),
    "z-ai/glm-5.3-flash": _price("0.15", "0.5", "0.03"),
    "minimax/minimax-m3": _price("0.3", "1.2", "0.06"),
    "qwen/qwen3.8-max-0902": _price("2", "6", "0.25"),
    "qwen/qwen3.8-27b": _price("0.425", "2.55", "0.085", "0.53"),
    "xiaomi/mimo-v2.6-pro": _price("0.435", "0.87", "0.0036"),
    "simulated/deepseek-a": _price("0.21", "0.84", "0.0042"),
    "simulated/kimi-a": _price("0.6", "2.5", "0.06"),
    "simulated/glm-a": _price("0.4", "1.6", "0.07"),
    "simulated/qwen-a": _price("0.3", "1.2", "0.06"),
}
"""Prices by model id."""


def find_bundled_price(model: str) -> Price | None:
    """Return the price of a model per token, None if the table has none."""
    found = OFFLINE_PRICES.get(model)
    return None if found is None else price_of(found)
