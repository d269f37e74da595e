"""Which dialects have a row a run, and how a row of theirs is read."""

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from tracemill.ingesters.common.report_counts import counted, traces_of_each
from tracemill.ingesters.reading.row_files import Part, part_rows
from tracemill.records.ingest_report import IngestReport
from tracemill.records.trace import Trace

RowReader = Callable[[Any, str, IngestReport, Path | None], Iterable[Trace | None]]
"""A row, the name of its file, the report on it and the file if it is on this machine → its traces; None,
and counted, for what gives none."""


def row_reader(dialect: str | None) -> RowReader | None:
    """The reader of a dialect's rows; None for a dialect whose files hold no rows."""
    if dialect == "swe_gym":
        from tracemill.ingesters.swe_gym.rows import trace_of_row

        return lambda row, origin, report, _: (trace_of_row(row, origin, report),)
    if dialect == "swe_agent":
        from tracemill.ingesters.swe_agent.ingest_trajectory import traces_of_run

        return lambda row, origin, report, _: traces_of_run(row, None, origin, report)
    if dialect == "mini_swe_agent":
        from tracemill.ingesters.mini_swe_agent.ingest_trajectory import trace_of_run

        return lambda row, origin, report, _: (trace_of_run(row, None, origin, report),)
    if dialect in ("openhands_eval_v0", "openhands_resolver_v0"):
        from tracemill.ingesters.openhands.files import traces_of_any_row

        return lambda row, origin, report, path: traces_of_any_row(row, dialect, origin, report, path)
    return None


def part_traces(
    path: Path, part: Part, dialect: str | None, origin: str, report: IngestReport, here: bool
) -> Iterator[Trace]:
    """The traces of one part of a file of rows; `here` says that the file is on this machine. Raises
    SourceError where it cannot be read."""
    read = row_reader(dialect)
    assert read is not None, dialect
    beside = path if here else None
    rows = part_rows(path, part, report)
    traces = traces_of_each(rows, lambda row: read(row, origin, report, beside), report)
    yield from counted(traces, report)
