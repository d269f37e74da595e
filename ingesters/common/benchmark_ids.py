"""What instance ids and result fields of benchmarks say: repository and outcome."""

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
    """The instance without the number of the sample: `owner__repo-12_3` gives `owner__repo-12`."""
    found = _SAMPLE.match(instance_id or "")
    return found.group("instance") if found else instance_id


def benchmark_repository(instance_id: str | None) -> str | None:
    """`owner/repo` of an instance id as SWE-bench (`owner__repo-12`) or SWE-smith
    (`owner__repo.<commit>.<fault>`) makes it; None where the id is of another style."""
    found = _INSTANCE.match(base_benchmark_id(instance_id) or "")
    return f"{found.group('owner')}/{found.group('repo')}" if found else None


def parse_benchmark_outcome(value: Any) -> Outcome:
    """A verdict in any of the types in use (bool, 0 and 1, their texts)."""
    if value is None or isinstance(value, Mapping | list):
        return "unknown"
    if value in _TRUE:
        return "resolved"
    return "not_resolved" if value in _FALSE else "unknown"


def benchmark_report_outcome(test_result: Any) -> Outcome:
    """The verdict of a `test_result`: `report.resolved`, or `resolved` on the top."""
    if not isinstance(test_result, Mapping):
        return "unknown"
    report = test_result.get("report")
    inner = report.get("resolved") if isinstance(report, Mapping) else None
    return parse_benchmark_outcome(inner if inner is not None else test_result.get("resolved"))
