"""Read tables of agent runs as Parquet, JSON Lines or a JSON list: SWE-Gym and similar datasets.

Covered: SWE-Gym/OpenHands-Sampled-Trajectories and its SFT set, nebius/SWE-rebench-openhands-trajectories,
nebius/SWE-agent-trajectories, SWE-smith trajectories.
"""

from collections.abc import Iterator
from pathlib import Path

from tracemill.ingesters.common.report_counts import traces_of_rows
from tracemill.ingesters.reading.row_files import iter_rows
from tracemill.ingesters.swe_gym.rows import trace_of_gym_row
from tracemill.records.ingest_report import IngestReport
from tracemill.records.trace import Trace

DIALECT = "swe_gym"
SUFFIXES = (".parquet", ".pq", ".jsonl", ".ndjson", ".json")


def iter_traces(path: Path, report: IngestReport) -> Iterator[Trace]:
    """Yield the traces of one file, row by row, and fill the report. Raises SourceError."""
    if not report.bytes:
        report.skipped["empty file"] += 1
        return
    rows = iter_rows(path, report)
    yield from traces_of_rows(rows, lambda row: (trace_of_gym_row(row, path.name, report),), report)
