"""Compare the clock of this machine with those of the servers it works with.

Schedules, leases of calls and the caps of a day go by the clock.
"""

from collections.abc import Sequence
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import NamedTuple

from tracemill.flows.live_checks.live_check import LiveCheck

MAX_SKEW_S = 30.0


class ClockReading(NamedTuple):
    """The seconds that the clock of a server is ahead of this machine's."""

    server: str
    ahead_s: float


def read_http_date(server: str, date: str | None, asked_at: datetime) -> ClockReading | None:
    """Return the reading of a `Date` header (whole seconds); None if it is missing or invalid.

    The answer was written between `asked_at` and now; a clock within that time counts as right.
    """
    try:
        theirs = parsedate_to_datetime(date or "")
    except ValueError:
        return None
    return compare_clock(server, theirs, asked_at, resolution_s=1.0)


def compare_clock(
    server: str, theirs: datetime, asked_at: datetime, resolution_s: float = 0.0
) -> ClockReading:
    """Return how far `theirs`, read between `asked_at` and now, is ahead; 0 if it is within that time."""
    early = (theirs - asked_at).total_seconds() + resolution_s
    late = (theirs - datetime.now(UTC)).total_seconds()
    return ClockReading(server, early if early < 0 else max(late, 0.0))


def check_clock(readings: Sequence[ClockReading]) -> LiveCheck:
    """Return whether this machine's clock is within MAX_SKEW_S of every server that was read."""
    if not readings:
        return LiveCheck(
            "clock", "ok", f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC, no server to compare with"
        )
    worst = max(readings, key=lambda each: abs(each.ahead_s))
    if abs(worst.ahead_s) > MAX_SKEW_S:
        way = "behind" if worst.ahead_s > 0 else "ahead of"
        said = f"{abs(worst.ahead_s):,.0f} s {way} the {worst.server}; expected at most {MAX_SKEW_S:g} s"
        return LiveCheck("clock", "failed", f"{said}; set the clock, for example with NTP")
    names = " and ".join(f"the {each.server}" for each in readings)
    return LiveCheck("clock", "ok", f"within {max(1.0, abs(worst.ahead_s)):.0f} s of {names}")
