"""ATIF trajectories, as Harbor and Terminal-Bench write them, as a format of the registry."""

import re
from collections.abc import Iterator
from pathlib import Path

from tracemill.ingesters.format import FormatInfo, Record, RowReader, SessionFormat, lazy_function

_HEAD = re.compile(rb'\{\s*"schema_version":\s*"ATIF-v')


def _detect(record: Record) -> str | None:
    """Detect steps under a version of the schema."""
    named = str(record.get("schema_version")).startswith("ATIF-v")
    return "atif" if named and isinstance(record.get("steps"), list) else None


def _detect_head(head: bytes) -> str | None:
    return "atif" if _HEAD.match(head) else None


def _row_reader(dialect: str) -> RowReader:
    from tracemill.ingesters.atif.ingest_trajectory import traces_of_trajectory

    return lambda row, origin, report, _: traces_of_trajectory(row, None, origin, report)


def _beside(path: Path) -> Iterator[str]:
    """Yield the companion files: the verifier's reward of the trial, and continuations."""
    from tracemill.ingesters.atif.continuations import continuation_paths

    yield str(path.parent.parent / "verifier" / "reward.txt")
    yield from map(str, continuation_paths(path))


FORMAT = SessionFormat(
    name="atif",
    version=6,
    dialects=("atif",),
    detect=_detect,
    detect_head=_detect_head,
    read=lazy_function("tracemill.ingesters.atif.ingest_trajectory:iter_traces"),
    row_reader=_row_reader,
    beside=_beside,
    without_claimed=lazy_function("tracemill.ingesters.atif.continuations:without_continuations"),
    kinds=lazy_function("tracemill.ingesters.atif.vocabulary:kinds_of_trajectory"),
    facts=FormatInfo(
        of="ATIF trajectories 1.0 to 1.8 of Harbor, Terminal-Bench and converters",
        recognised="an object with steps under a schema_version that begins with ATIF-v",
        prompt="what happened, not what was sent; system prompt and tools where they stand in it",
        page="docs/formats/atif.md",
        keys=frozenset(("schema_version", "session_id", "agent", "steps", "final_metrics")),
    ),
)
