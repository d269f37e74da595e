"""Read the numbers beside an action of a recorded table."""

import math
from collections.abc import Mapping
from typing import Any

REWARDS = ("reward", "correct")
"""Names of an action's reward."""
ENDINGS = ("episode_success", "resolved", *REWARDS[::-1])
"""Names of the outcome of a session that ends with an action, by priority."""
MOST_TOKENS = 1_000_000_000
MOST_S = 31_536_000.0
"""Upper limits of valid tokens and seconds (a year) of a call."""
_TOKENS = (("in", "prompt_tokens"), ("out", "completion_tokens"))


def recorded_reward_value(given: Mapping[str, Any]) -> float | None:
    """Return the first reward that is a finite number, also as text; None if there is none."""
    found = (_number(given.get(name)) for name in REWARDS)
    return next((value for value in found if value is not None), None)


def recorded_ending_value(given: Mapping[str, Any]) -> float | None:
    """Return the outcome of the session with an action: 1 or more for solved, None if unknown."""
    found = (_number(given.get(name)) for name in ENDINGS)
    return next((value for value in found if value is not None), None)


def is_unrewarded(given: Mapping[str, Any]) -> bool:
    """Return whether an action has only invalid rewards."""
    has_reward = any(given.get(name) is not None for name in REWARDS)
    return has_reward and recorded_reward_value(given) is None


def recorded_usage_values(given: Mapping[str, Any]) -> tuple[int, int, float] | None:
    """Return prompt tokens, answer tokens and latency in seconds; 0 if missing.

    Return None if one is no number, negative, or beyond any call.
    """
    usage = given.get("usage")
    if usage is None:
        return 0, 0, 0.0
    if not isinstance(usage, Mapping):
        return None
    tokens = [next((usage[name] for name in names if usage.get(name)), 0) for names in _TOKENS]
    values = [_number(value) for value in (*tokens, usage.get("latency_s") or 0)]
    for value, most in zip(values, (MOST_TOKENS, MOST_TOKENS, MOST_S), strict=True):
        if value is None or not 0 <= value <= most:
            return None
    prompt, answer, latency_s = (value or 0.0 for value in values)
    return int(prompt), int(answer), latency_s


def _number(value: Any) -> float | None:
    """Return a finite number, also written as text; None for everything else."""
    if not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):  # no number, or an integer beyond any float
        return None
    return number if math.isfinite(number) else None
