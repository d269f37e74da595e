"""Count who wrote the hints of a training, and say it."""

from collections import Counter
from collections.abc import Container, Iterable, Mapping
from typing import Any


def count_writers(rows: Iterable[Mapping[str, Any]], used: Container[str]) -> dict[str, dict[str, int]]:
    """Count the hints at the `used` steps by writer, as `writers`, `fallbacks` and `simulated_hints`.

    `fallbacks` counts, by reason, hints of a template in place of a model's. Empty for rows that do not say
    who wrote them.
    """
    told = [row for row in rows if row["step_id"] in used and "writer" in row]
    found = {
        "writers": Counter(str(row["writer"]) for row in told),
        "fallbacks": Counter(str(row["fallback"]) for row in told if row.get("fallback")),
        "simulated_hints": Counter(str(row["writer"]) for row in told if row.get("simulated")),
    }
    return {name: dict(sorted(counts.items())) for name, counts in found.items() if counts}


def origin_lines(channel: Mapping[str, Any]) -> list[str]:
    """Return lines for people on who wrote the hints of a channel, and on how many states are simulated."""
    simulated = channel.get("simulated_hints", {})
    lines = [
        f"{count:,} written by {name}"
        + (f", {simulated[name]:,} of them simulated" if name in simulated else "")
        for name, count in channel.get("writers", {}).items()
    ]
    if states := channel.get("simulated_states"):
        lines.append(f"{states:,} with simulated answers")
    return lines + [
        f"{count:,} of a template, as the writer's answer is missing: {why}"
        for why, count in channel.get("fallbacks", {}).items()
    ]
