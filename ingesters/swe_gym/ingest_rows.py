"""SWE-Gym and its relatives: tables of agent runs as Parquet, JSON Lines or a JSON list.

Covered: SWE-Gym/OpenHands-Sampled-Trajectories and its SFT set, nebius/SWE-rebench-openhands-trajectories,
nebius/SWE-agent-trajectories, SWE-smith trajectories.
"""

from collections.abc import Iterator
from pathlib import Path

from tracemill.ingesters.common.report_counts import (
    count_traces_in_report,
    read_all_with_counts,
    read_rows_counting_faults,
)
from tracemill.ingesters.reading.row_files import iter_rows
from tracemill.ingesters.swe_gym.rows import trace_of_gym_row
from tracemill.records.ingest_report import IngestReport
from tracemill.records.trace import Trace

DIALECT = "swe_gym"
SUFFIXES = (".parquet", ".pq", ".jsonl", ".ndjson", ".json")


def iter_traces(path: Path, report: IngestReport) -> Iterator[Trace]:
    """The traces of one file, row by row; `report` is filled meanwhile. Raises SourceError."""
    if not report.bytes:
        report.skipped["empty file"] += 1
        return
    rows = iter_rows(path, report)
    traces = read_rows_counting_faults(rows, lambda row: (trace_of_gym_row(row, path.name, report),), report)
    yield from count_traces_in_report(traces, report)


def ingest_file(path: Path) -> tuple[list[Trace], IngestReport]:
    """The traces of one file, and what was passed over. Raises SourceError where it cannot be read."""
    return read_all_with_counts(path, DIALECT, iter_traces)
