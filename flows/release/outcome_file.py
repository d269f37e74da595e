"""Read outcomes of sessions that their files do not tell: a verdict of the user's, of CI, of a review."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tracemill.ingesters.common.benchmark_ids import parse_benchmark_outcome
from tracemill.records.errors import ConfigError
from tracemill.records.trace import Outcome

_WANTED = 'a line for each session: {"session": "<id of session, instance or trace>", "resolved": true}'


def read_outcome_file(path: Path | None) -> dict[str, Outcome]:
    """Return outcomes by the name of a session: the stem of its file, its instance id or its trace id.

    Of several lines on one session the last counts. Raises ConfigError for a file that cannot be read and
    for a line that is not an outcome.
    """
    if path is None:
        return {}
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        said = getattr(error, "strerror", None) or "no UTF-8"
        raise ConfigError(f"release.outcomes: {path} cannot be read ({said})", _WANTED) from error
    found: dict[str, Outcome] = {}
    for number, line in enumerate(lines, 1):
        if line.strip():
            name, outcome = _line(path, number, line)
            found[name] = outcome
    return found


def _line(path: Path, number: int, line: str) -> tuple[str, Outcome]:
    try:
        row = json.loads(line)
    except ValueError:
        row = None
    name = row.get("session") if isinstance(row, dict) else None
    outcome: Outcome = parse_benchmark_outcome(row.get("resolved")) if isinstance(row, dict) else "unknown"
    if not isinstance(name, str) or not name or outcome == "unknown":
        raise ConfigError(f"release.outcomes: line {number} of {path} is not an outcome", _WANTED)
    return name, outcome


def outcome_in_file(row: Mapping[str, Any], told: Mapping[str, Outcome]) -> Outcome:
    """Return the outcome that a file records for a trace with this `trace_id`, `origin` or `instance_id`."""
    stem = Path(row["origin"]).stem if row["origin"] else ""
    names = (row["trace_id"], stem, row["instance_id"])
    found: list[Outcome] = [told[name] for name in names if name and name in told]
    return found[0] if found else "unknown"
