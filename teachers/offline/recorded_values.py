"""The numbers beside an action of a recorded table, as its writer may have left them."""

import math
from collections.abc import Mapping
from typing import Any

REWARDS = ("reward", "correct")
"""What an action was worth, by any of these names."""
ENDINGS = ("episode_success", "resolved", *REWARDS[::-1])
"""How a session ended with an action, by the first of these names that says so."""
MOST_TOKENS = 1_000_000_000
MOST_S = 31_536_000.0
"""Tokens and seconds (a year) that no call can have."""
_TOKENS = (("in", "prompt_tokens"), ("out", "completion_tokens"))


def recorded_reward_value(given: Mapping[str, Any]) -> float | None:
    """The first reward that is a finite number, or a text of one; None where there is none."""
    found = (_number(given.get(name)) for name in REWARDS)
    return next((value for value in found if value is not None), None)


def recorded_ending_value(given: Mapping[str, Any]) -> float | None:
    """How the session ended with an action: 1 or more where it solved its task, None where nothing says."""
    found = (_number(given.get(name)) for name in ENDINGS)
    return next((value for value in found if value is not None), None)


def is_unrewarded(given: Mapping[str, Any]) -> bool:
    """Whether an action has a reward that is no finite number, and none that is."""
    said = any(given.get(name) is not None for name in REWARDS)
    return said and recorded_reward_value(given) is None


def recorded_usage_values(given: Mapping[str, Any]) -> tuple[int, int, float] | None:
    """Tokens of the prompt and of the answer, and the latency in seconds: 0 where the table does not say.
    None where any of them is no number, below 0, or more than any call has."""
    usage = given.get("usage")
    if usage is None:
        return 0, 0, 0.0
    if not isinstance(usage, Mapping):
        return None
    said = [next((usage[name] for name in names if usage.get(name)), 0) for names in _TOKENS]
    values = [_number(value) for value in (*said, usage.get("latency_s") or 0)]
    for value, most in zip(values, (MOST_TOKENS, MOST_TOKENS, MOST_S), strict=True):
        if value is None or not 0 <= value <= most:
            return None
    prompt, answer, latency_s = (value or 0.0 for value in values)
    return int(prompt), int(answer), latency_s


def _number(value: Any) -> float | None:
    """A finite number, also written as a text; None for everything else."""
    if not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):  # no number, or a whole one beyond any float
        return None
    return number if math.isfinite(number) else None
