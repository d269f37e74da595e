"""Verdicts that an evaluation left beside the runs it judged.

| file | holds |
|---|---|
| `results.json` | lists of instance ids: `resolved` or `resolved_ids`, and who else was judged |
| `report.json` | `{instance: {resolved: bool, ...}}`, of one instance or many |

Both are looked for in the folder of the run and in the one above it (SWE-bench, sb-cli, SWE-agent).
"""

import os
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path
from typing import Any

import orjson

from tracemill.ingesters.common.benchmark_ids import parse_benchmark_outcome
from tracemill.records.ingest_report import IngestReport
from tracemill.records.trace import Outcome

BROKEN = "results beside the run do not parse"

NAMES = ("report.json", "results.json")
"""Where verdicts stand, in the folder of a run or the one above."""

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
_LARGEST = 64_000_000


class Verdicts:
    """The verdicts around the runs of one ingest; each file is read once."""

    def __init__(self) -> None:
        self._read: dict[str, Any] = {}

    def outcome(self, path: Path, instances: Iterable[str | None], report: IngestReport) -> Outcome:
        """The verdict on a run under any of its instance ids; `unknown` where none is near."""
        names = [name for name in dict.fromkeys(instances) if name]
        for place in verdict_file_places(path):
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
                path = existing_verdict_file(place)
                if path is not None and path.is_file() and path.stat().st_size <= _LARGEST:
                    self._read[place] = orjson.loads(path.read_bytes())
            except (OSError, ValueError):
                report.flags[BROKEN] += 1
        return self._read[place]


def existing_verdict_file(place: str) -> Path | None:
    """The path of a file that is there; None, at once, for one that is not. Raises OSError."""
    try:
        os.lstat(place)
    except (FileNotFoundError, NotADirectoryError):
        return None
    return Path(place)


def verdict_file_places(path: Path) -> tuple[str, ...]:
    """Where verdicts on a run may stand, the nearest first."""
    folder, slash, _ = str(path).rpartition("/")
    return _places(folder or slash or ".")


@lru_cache(maxsize=256)
def _places(folder: str) -> tuple[str, ...]:
    above = Path(folder).parent
    return tuple(f"{place}/{name}" for place in (folder, above) for name in NAMES)


def find_eval_verdict(instance: str, results: Any) -> Outcome:
    """What a results file says of an instance."""
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
