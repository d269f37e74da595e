"""`tracemill ingest`: every source file into the workspace, with an account of each."""

import time
from dataclasses import fields
from typing import Any

from rich.console import Console

from flows.inventory import TraceEntry
from flows.prepare import make_redactor, make_sieve
from flows.progress import meter
from flows.runs import end_run, sole_writer, start_run, write_manifest
from flows.settings import RunSettings
from flows.shard_work import count_entries, ingest_files
from flows.shards import Plan, plan_shards
from flows.summary import Summary
from records.skip import IngestReport
from records.workspace import Workspace

_SUMMED = (
    "traces",
    "contexts",
    "states",
    "steps_main",
    "steps_side",
    "steps_synthetic",
    "tool_calls",
    "tool_errors",
    "compactions",
    "branches_real",
    "bytes",
)


def ingest_everything(settings: RunSettings) -> dict[str, Any]:
    """Read, redact and write every source; gives `files` (one account each) and `totals`.

    Raises SourceError before anything is written where a path is no session.
    """
    plan = plan_shards(settings)
    work = Workspace.open(settings.workspace)
    with sole_writer(work):
        return _ingest(settings, work, plan)


def _ingest(settings: RunSettings, work: Workspace, plan: Plan) -> dict[str, Any]:
    redactor, sieve = make_redactor(work, settings.privacy), make_sieve(settings, work)
    started = time.perf_counter()
    total, reports = Summary(unread=plan.unread_reasons()), list[IngestReport]()
    read: dict[str, int] = {}
    entries: dict[str, TraceEntry] = {}
    with meter(Console(stderr=True), None) as gauge:
        gauge.begin("ingest", plan.files)
        for files in plan.shards:
            done = ingest_files(work, files, redactor, read, sieve)
            total.add(done.summary)
            entries |= done.entries
            reports += done.reports
            gauge.advance(len(files))
    count_entries(total, entries.values())
    record = {
        "files": [_file(report) for report in reports],
        "unread_files": [item._asdict() for item in plan.unread],
        "totals": _totals(reports, total, time.perf_counter() - started),
    }
    run_id, _ = start_run(work, settings.fingerprint(), "ingest")
    write_manifest(work, run_id, "ingest", record)
    end_run(work, run_id, "finished", {"totals": record["totals"]})
    return record


def _file(report: IngestReport) -> dict[str, Any]:
    value = {item.name: getattr(report, item.name) for item in fields(report)}
    value["format"] = value.pop("dialect")
    for key in ("records", "skipped", "flags"):
        value[key] = dict(value[key].most_common())
    return value


def _totals(reports: list[IngestReport], total: Summary, seconds: float) -> dict[str, Any]:
    sums: dict[str, Any] = {key: sum(getattr(report, key) for report in reports) for key in _SUMMED}
    for key in ("left_out", "skipped", "flags", "redactions", "unread"):
        sums[key] = dict(getattr(total, key).most_common())
    return {"files": len(reports), **sums, "seconds": round(seconds, 3)}
