"""Read repository and outcome from instance ids and result fields of benchmarks."""

import re
from collections.abc import Mapping
from typing import Any

from tracemill.records.trace import Outcome

_SAMPLE = re.compile(r"^(?P<instance>.+__.+-\d+)_\d+$")
_INSTANCE = re.compile(
    r"^(?P<owner>[A-Za-z0-9](?:(?!__)[\w.-])*)__(?P<repo>(?:(?!__)[\w.-])+?)(?:-\d+|\.[0-9a-f]{8}\.\S+)$"
)
_TRUE = (True, 1, "true", "True", "1")
_FALSE = (False, 0, "false", "False", "0")


def base_benchmark_id(instance_id: str | None) -> str | None:
    """Return the instance id without the sample number: `owner__repo-12_3` gives `owner__repo-12`."""
    match = _SAMPLE.match(instance_id or "")
    return match.group("instance") if match else instance_id


def benchmark_repository(instance_id: str | None) -> str | None:
    """Return `owner/repo` of an instance id, None if the id has another style.

    The styles are those of SWE-bench (`owner__repo-12`) and SWE-smith (`owner__repo.<commit>.<fault>`).
    """
    match = _INSTANCE.match(base_benchmark_id(instance_id) or "")
    return f"{match.group('owner')}/{match.group('repo')}" if match else None


def parse_benchmark_outcome(value: Any) -> Outcome:
    """Return the outcome of a verdict in any type in use: bool, 0 and 1, or their texts."""
    if value is None or isinstance(value, Mapping | list):
        return "unknown"
    if value in _TRUE:
        return "resolved"
    return "not_resolved" if value in _FALSE else "unknown"


def benchmark_report_outcome(test_result: Any) -> Outcome:
    """Return the outcome of a `test_result`: its `report.resolved`, else its `resolved`."""
    if not isinstance(test_result, Mapping):
        return "unknown"
    report = test_result.get("report")
    inner = report.get("resolved") if isinstance(report, Mapping) else None
    return parse_benchmark_outcome(inner if inner is not None else test_result.get("resolved"))
