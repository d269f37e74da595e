"""Find the prices of a table's models: configured, else listed, else assumed."""

import tomllib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from pydantic import ValidationError

from tracemill.records.errors import ConfigError
from tracemill.teachers.core.bundled_prices import OFFLINE_PRICES
from tracemill.teachers.core.teacher_settings import PriceSettings

SPREAD = "spread"
"""Option value for prices from cheap to expensive, in place of a file."""
SPREAD_ROWS = (
    "z-ai/glm-5.3-flash",
    "qwen/qwen3.8-27b",
    "deepseek/deepseek-v4-pro-0813",
    "z-ai/glm-5.3",
    "moonshotai/kimi-k3.1-pro",
    "anthropic/claude-opus-5.5",
)
"""Rows of the price list, cheap to expensive: a factor of 27 in prompts and 40 in answers."""
ASSUMED = PriceSettings.model_validate({"prompt_usd": "1", "completion_usd": "4", "cache_read_usd": "0.1"})
"""Assumed USD per million tokens of a model without a known price."""


def read_model_prices(path: Path | None) -> Mapping[str, PriceSettings]:
    """Return the prices in a TOML file: a table per model, with the keys of a teacher's `prices`.

    Raises ConfigError if it cannot be read or a key is wrong.
    """
    if path is None:
        return {}
    try:
        given = tomllib.loads(path.read_text(encoding="utf-8"))
        return {str(model): PriceSettings.model_validate(value) for model, value in given.items()}
    except (OSError, ValueError) as error:
        reason = error.errors()[0]["msg"] if isinstance(error, ValidationError) else str(error)
        raise ConfigError(
            f"{path} is not a list of prices ({reason})", 'tables such as ["gpt-4"] with prompt_usd'
        ) from None


def spread_model_prices(models: Sequence[str]) -> dict[str, PriceSettings]:
    """Return prices for models in this order, the first the cheapest.

    With more models than price rows, neighbouring models share one; with fewer, rows in between are
    skipped.
    """
    last = max(len(models) - 1, 1)
    places = (round(at * (len(SPREAD_ROWS) - 1) / last) for at in range(len(models)))
    return {model: OFFLINE_PRICES[SPREAD_ROWS[place]] for model, place in zip(models, places, strict=True)}


def find_model_prices(
    models: Iterable[str], given: Mapping[str, PriceSettings]
) -> dict[str, tuple[PriceSettings, str]]:
    """Return the price of each model and its source: `configured`, `listed` or `assumed`."""
    listed = {name.rpartition("/")[2]: price for name, price in OFFLINE_PRICES.items()} | OFFLINE_PRICES
    found: dict[str, tuple[PriceSettings, str]] = {}
    for model in models:
        if model in given:
            found[model] = (given[model], "configured")
        elif model in listed:
            found[model] = (listed[model], "listed")
        else:
            found[model] = (ASSUMED, "assumed")
    return found
