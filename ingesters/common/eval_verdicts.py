"""Verdicts that an evaluation left beside the runs it judged.

| file | holds |
|---|---|
| `results.json` | lists of instance ids: `resolved` or `resolved_ids`, and other judged ones |
| `report.json` | `{instance: {resolved: bool, ...}}`, of one instance or many |

Both are looked for in the folder of the run and in the one above it (SWE-bench, sb-cli, SWE-agent).
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import orjson

from tracemill.ingesters.common.benchmark_ids import parse_benchmark_outcome
from tracemill.records.ingest_report import IngestReport
from tracemill.records.trace import Outcome

BROKEN = "results beside the run do not parse"

_NAMES = ("report.json", "results.json")

_RESOLVED = ("resolved", "resolved_ids")
_UNRESOLVED = (
    "unresolved_ids",
    "completed_ids",
    "empty_patch_ids",
    "applied",
    "no_apply",
    "no_generation",
    "not_generated",
)
_MAX_BYTES = 64_000_000


class EvalVerdicts:
    """The evaluation verdicts around the runs of one ingest; each file is read once."""

    def __init__(self) -> None:
        self._read: dict[str, Any] = {}

    def outcome(self, path: Path, instances: Iterable[str | None], report: IngestReport) -> Outcome:
        """Return the verdict on a run under any of its instance ids, `unknown` if there is none."""
        names = [name for name in dict.fromkeys(instances) if name]
        for place in verdict_file_paths(path):
            value = self._value(place, report)
            for instance in names if value is not None else ():
                outcome = find_eval_verdict(instance, value)
                if outcome != "unknown":
                    return outcome
        return "unknown"

    def _value(self, place: str, report: IngestReport) -> Any:
        if place not in self._read:
            self._read[place] = None
            try:
                path = Path(place)
                if path.is_file() and path.stat().st_size <= _MAX_BYTES:
                    self._read[place] = orjson.loads(path.read_bytes())
            except (OSError, ValueError):
                report.flags[BROKEN] += 1
        return self._read[place]


def verdict_file_paths(path: Path) -> tuple[str, ...]:
    """Return the possible paths of verdicts on a run, the nearest first."""
    return tuple(str(folder / name) for folder in (path.parent, path.parent.parent) for name in _NAMES)


def find_eval_verdict(instance: str, results: Any) -> Outcome:
    """Return the outcome that a results file gives for an instance."""
    if not isinstance(results, dict):
        return "unknown"
    own = results.get(instance)
    if isinstance(own, dict):
        return parse_benchmark_outcome(own.get("resolved"))
    if any(_lists(results.get(key), instance) for key in _RESOLVED):
        return "resolved"
    listed = any(_lists(results.get(key), instance) for key in _UNRESOLVED)
    return "not_resolved" if listed else "unknown"


def _lists(value: Any, instance: str) -> bool:
    return isinstance(value, list) and instance in value
