"""`tracemill ingest`: every source file into the workspace, with an account of each."""

import time
from dataclasses import fields, replace
from typing import Any

from tracemill.flows.admission.trace_filter import FORGOTTEN_FILE
from tracemill.flows.ingest.ingest_shard import Intake, count_entries
from tracemill.flows.ingest.known_traces import find_known_traces, known_traces_report, refuse_unreadable
from tracemill.flows.ingest.parallel_ingest import IngestOrder, parallel_ingest_intake, parallel_ingest_shards
from tracemill.flows.ingest.reuse_traces import trace_reuse_marks
from tracemill.flows.run_state.run_records import (
    DEFAULT_WORKSPACE,
    end_run,
    sole_writer,
    start_run,
    write_manifest,
)
from tracemill.flows.run_state.run_summary import Summary
from tracemill.flows.runtime.interrupts import raise_if_interrupted
from tracemill.flows.runtime.progress import progress_meter
from tracemill.flows.sources.open_watermarks import open_known_watermarks, open_watermarks
from tracemill.flows.sources.shard_plan import Plan, plan_sources
from tracemill.flows.sources.watermarks import Watermarks
from tracemill.records.errors import ConfigError, WorkspaceError
from tracemill.records.ingest_report import IngestReport
from tracemill.records.printable import printable_count
from tracemill.records.storage.atomic_files import encodable_json
from tracemill.records.storage.trace_rows import traces_from_table
from tracemill.records.storage.workspace import Workspace

IN_FILES = (
    "steps_main",
    "steps_side",
    "steps_synthetic",
    "tool_calls",
    "tool_errors",
    "compactions",
    "branches_real",
)
"""What totals say of the files, copies of a session included."""


def ingest_everything(order: IngestOrder) -> dict[str, Any]:
    """Read and write every source, redacted unless the order says otherwise; gives `files` (one account
    each) and `totals`.

    Raises SourceError before anything is written where a path is no session, and at the end where one cannot
    be read and nothing else was; WorkspaceError where the folder cannot be written or holds the other kind of
    text.
    """
    order = _checked(order)
    text = "recorded" if order.unredacted else "redacted"
    known = open_known_watermarks(
        order.out, order.privacy, order.select, order.sources.format, text, order.ask_again, order.rules
    )
    plan = plan_sources(order.sources, order.shard_mb, known, order.sample is not None)
    work = Workspace.open(order.out, text=text)
    with sole_writer(work):
        return _ingest(order, work, plan, known)


def _checked(order: IngestOrder) -> IngestOrder:
    """The order, with the default workspace as one that says what was forgotten. Raises ConfigError for
    options that exclude each other or lists that cannot be used."""
    if order.unredacted and order.privacy is not None:
        raise ConfigError("--unredacted redacts nothing and --privacy says what to redact", "one of them")
    if order.forgotten and not order.unredacted:
        raise ConfigError(
            "--forgotten is given without --unredacted",
            "one workspace",
            "what was forgotten in the workspace of --out stays out of it anyway",
        )
    if order.privacy is not None:
        from tracemill.flows.admission.redaction_setup import make_redactor

        make_redactor(None, order.privacy)
    if order.unredacted and not order.forgotten and (DEFAULT_WORKSPACE / FORGOTTEN_FILE).is_file():
        return replace(order, forgotten=(DEFAULT_WORKSPACE,))
    return order


def _refuse_forgotten(intake: Intake) -> None:
    """A folder of recorded text is no place to take single sessions out of. Raises WorkspaceError where it
    holds what was forgotten since."""
    if intake.sieve is None:
        return
    found = sum(
        intake.sieve.forgotten(trace) is not None
        for table in intake.work.current("traces")
        for trace in traces_from_table(table)
    )
    if found:
        raise WorkspaceError(
            f"{intake.work.root} holds {printable_count(found, 'session')} forgotten since",
            "recorded text of what was not forgotten",
            "remove the folder and ingest again",
        )


def _ingest(order: IngestOrder, work: Workspace, plan: Plan, known: Watermarks | None) -> dict[str, Any]:
    started = time.perf_counter()
    intake = parallel_ingest_intake(order, work)
    if order.forgotten:
        _refuse_forgotten(intake)
    marks = known or open_watermarks(
        work.root, intake.redactor, order.select, order.sources.format, work.text, order.ask_again
    )
    total, read = Summary(unread=plan.unread_reasons()), dict[str, int]()
    stock = find_known_traces(plan, marks, intake, order.sample, read, total)
    reports = [known_traces_report(kept) for kept in stock.plan.kept]
    entries = stock.entries
    with (
        parallel_ingest_shards(order, intake, stock.plan.shards, read) as shards,
        progress_meter(None) as gauge,
    ):
        gauge.begin("ingest", stock.plan.files)
        for done in shards:
            marks.add(trace_reuse_marks(done.accounts, marks))
            total.add(done.summary)
            entries |= done.entries
            reports += [account.report for account in done.accounts]
            gauge.advance(done.summary.files)
            raise_if_interrupted()
    count_entries(total, entries.values())
    if intake.redactor is not None:
        from tracemill.flows.admission.redaction_setup import count_known_values

        total.flags += count_known_values(intake.redactor)
    if order.select:
        total.unmatched = order.select.unmatched(total.matched)
    record = encodable_json(
        {
            "files": [_file(report) for report in _by_file(reports)],
            "unread_files": [item._asdict() for item in plan.unread],
            **({"datasets": list(plan.datasets)} if plan.datasets else {}),
            "totals": _totals(reports, total, time.perf_counter() - started),
        }
    )
    run_id = start_run(work, order.fingerprint(), "ingest").run_id
    if stock.drawn is not None:
        write_manifest(work, run_id, "sample", stock.drawn.to_json())
    write_manifest(work, run_id, "ingest", record)
    end_run(work, run_id, {"totals": record["totals"]})
    refuse_unreadable(order.sources, reports)
    return record


def _by_file(reports: list[IngestReport]) -> list[IngestReport]:
    """One report a file, those of its parts added up."""
    found: dict[str, IngestReport] = {}
    for report in reports:
        before = found.get(report.path)
        found[report.path] = report if before is None else _sum(before, report)
    return list(found.values())


def _sum(one: IngestReport, other: IngestReport) -> IngestReport:
    added = {
        item.name: getattr(one, item.name) + getattr(other, item.name)
        for item in fields(IngestReport)
        if item.name not in ("path", "dialect", "error")
    }
    return replace(one, error=one.error or other.error, **added)


def _file(report: IngestReport) -> dict[str, Any]:
    value = {item.name: getattr(report, item.name) for item in fields(report)}
    value["format"] = value.pop("dialect")
    for key in ("records", "skipped", "flags", "unknown"):
        value[key] = dict(value[key].most_common())
    return value


def _totals(reports: list[IngestReport], total: Summary, seconds: float) -> dict[str, Any]:
    sums: dict[str, Any] = {key: getattr(total, key) for key in ("traces", "contexts", "states")}
    sums |= {key: sum(getattr(report, key) for report in reports) for key in (*IN_FILES, "bytes")}
    for key in ("changes", "left_out", "skipped", "flags", "redactions", "unread"):
        sums[key] = dict(getattr(total, key).most_common())
    if total.unknown:
        sums["unknown_kinds"] = dict(total.unknown.most_common())
    if total.unmatched:
        sums["selection"] = total.unmatched
    return {"files": len({report.path for report in reports}), **sums, "seconds": round(seconds, 3)}
