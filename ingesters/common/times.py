"""Convert times of sources to ISO 8601."""

from datetime import UTC, datetime, timedelta
from typing import Any

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC).replace(tzinfo=None)


def milliseconds(value: Any) -> float | None:
    """Return a time in milliseconds, None for anything else."""
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def iso_time(value: Any) -> str | None:
    """Return a time in milliseconds since 1970 as ISO 8601, None for anything else."""
    stamp = milliseconds(value)
    try:
        return f"{_utc_text(stamp / 1000, 'milliseconds')}Z" if stamp is not None else None
    except (ValueError, OverflowError):
        return None


def iso_utc(seconds: float) -> str:
    """Return a time in seconds since 1970 as ISO 8601 with its offset.

    Raises ValueError or OverflowError for a time that no calendar has.
    """
    return f"{_utc_text(seconds)}+00:00"


def _utc_text(seconds: float, timespec: str = "auto") -> str:
    """Return a UTC time as ISO 8601 without its offset."""
    return (_EPOCH + timedelta(seconds=seconds)).isoformat(timespec=timespec)
