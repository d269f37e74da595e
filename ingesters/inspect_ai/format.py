"""Logs of inspect as a format of the registry."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from tracemill.ingesters.format import FormatInfo, Record, SessionFormat, lazy_function
from tracemill.records.ingest_report import IngestReport


def _detect(record: Record) -> str | None:
    """Detect a log as one object, by `version`, `status` and what was evaluated."""
    spec = record.get("eval")
    whole = isinstance(record.get("version"), int) and isinstance(record.get("status"), str)
    return "inspect_ai" if whole and isinstance(spec, dict) and {"task", "model"} <= spec.keys() else None


def _detect_archive(names: Sequence[str]) -> str | None:
    """Detect an archive by the entry that a log begins with."""
    return "inspect_ai" if "_journal/start.json" in names else None


def _records(path: Path, report: IngestReport) -> Iterator[Record]:
    from tracemill.ingesters.inspect_ai.log_files import read_log

    yield from read_log(path, report).samples


FORMAT = SessionFormat(
    name="inspect_ai",
    version=5,
    dialects=("inspect_ai",),
    detect=_detect,
    detect_archive=_detect_archive,
    read=lazy_function("tracemill.ingesters.inspect_ai.ingest_log:iter_traces"),
    records=_records,
    kinds=lazy_function("tracemill.ingesters.inspect_ai.vocabulary:kinds_of_sample"),
    facts=FormatInfo(
        of="inspect: logs as .eval archives or one JSON object, a session a sample",
        recognised="an archive with _journal/start.json, or an object with eval, status and version",
        prompt="messages, system prompt and tools of every model call",
        page="docs/formats/inspect_ai.md",
        keys=frozenset(("version", "status", "eval", "plan", "results", "stats", "samples", "reductions")),
    ),
)
