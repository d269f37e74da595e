"""Tell when Claude Code deletes a session file.

At its start Claude Code deletes sessions below the `projects` folder of its configuration that were last
changed more than `cleanupPeriodDays` days ago, 30 by default, 0 for all of them
(https://docs.claude.com/en/docs/claude-code/settings). Copies elsewhere are left alone.
"""

import json
import math
import os
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

DEFAULT_DAYS = 30.0
WARN_DAYS = 7
"""Days before the deletion from which on a session is counted."""
_DAY_S = 86_400.0


def config_folder() -> Path:
    """Return the folder of Claude Code's settings and sessions: `CLAUDE_CONFIG_DIR`, else `~/.claude`."""
    return Path(os.environ.get("CLAUDE_CONFIG_DIR") or Path.home() / ".claude")


def read_cleanup_days(folder: Path) -> float:
    """Return `cleanupPeriodDays` of the user's settings; the default where it is missing or no number."""
    with suppress(OSError, ValueError):
        settings = json.loads((folder / "settings.json").read_text(encoding="utf-8"))
        days = settings.get("cleanupPeriodDays") if isinstance(settings, dict) else None
        if isinstance(days, int | float) and not isinstance(days, bool) and 0 <= days < math.inf:
            return float(days)
    return DEFAULT_DAYS


def count_expiring_sessions(paths: Iterable[Path], now: float) -> Counter[int]:
    """Count the sessions that are deleted within WARN_DAYS, by whole days left.

    `now` is in seconds since 1970. Only sessions in Claude Code's own folder count.
    """
    folder = config_folder()
    projects = folder.resolve() / "projects"
    kept_s = read_cleanup_days(folder) * _DAY_S
    found: Counter[int] = Counter()
    for path in paths:
        with suppress(OSError):
            place = path.resolve()
            if place.parent.parent != projects:
                continue
            left = (place.stat().st_mtime + kept_s - now) / _DAY_S
            if left < WARN_DAYS:
                found[max(0, math.floor(left))] += 1
    return found
