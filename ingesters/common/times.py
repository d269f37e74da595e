"""Convert times of sources to ISO 8601."""

from datetime import UTC, datetime
from typing import Any


def milliseconds(value: Any) -> float | None:
    """Return a time in milliseconds, None for anything else."""
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def iso_time(value: Any) -> str | None:
    """Return a time in milliseconds since 1970 as ISO 8601, None for anything else."""
    stamp = milliseconds(value)
    try:
        time = datetime.fromtimestamp(stamp / 1000, UTC) if stamp is not None else None
    except (ValueError, OverflowError, OSError):
        return None
    return time.isoformat(timespec="milliseconds").replace("+00:00", "Z") if time else None
