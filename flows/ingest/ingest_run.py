"""Run `tracemill ingest`: read every source into the workspace, with a report of each file."""

import time
from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any

from tracemill.flows.admission.trace_filter import FORGOTTEN_FILE
from tracemill.flows.ingest.ingest_order import (
    IngestOptions,
    find_watermarks,
    make_ingester,
    open_watermarks,
    plan_order,
)
from tracemill.flows.ingest.ingest_shard import ShardIngester
from tracemill.flows.ingest.ingest_stage import INGEST, IngestContext, IngestInputs
from tracemill.flows.ingest.known_traces import refuse_unreadable
from tracemill.flows.pipeline import ShardResult, run_stages
from tracemill.flows.run_state.run_records import (
    DEFAULT_WORKSPACE,
    end_run,
    sole_writer,
    start_run,
    write_manifest,
)
from tracemill.flows.run_state.run_summary import Summary
from tracemill.flows.sources.shard_plan import SourcePlan
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


def ingest_everything(order: IngestOptions) -> dict[str, Any]:
    """Read and write every source, redacted unless `order` asks for recorded text.

    Returns `files`, a report of each, and `totals`. Raises SourceError before anything is written if a path
    is not a session, and at the end if one cannot be read and no other was. Raises WorkspaceError if the
    folder cannot be written or holds the other kind of text.
    """
    order = _checked(order)
    known = find_watermarks(order)
    plan = plan_order(order, known)
    work = Workspace.open(order.out, text=order.text)
    with sole_writer(work):
        return _ingest(order, work, plan, known)


def _checked(order: IngestOptions) -> IngestOptions:
    """Check the options, and leave out of recorded text the sessions that the default workspace forgot.

    Raises ConfigError for options that exclude each other or lists that cannot be used.
    """
    if order.unredacted and order.privacy is not None:
        raise ConfigError("--unredacted redacts nothing and --privacy says what to redact", "one of them")
    if order.forgotten and not order.unredacted:
        raise ConfigError(
            "--forgotten is given without --unredacted",
            "one workspace",
            "what was forgotten in the workspace that is written stays out of it anyway",
        )
    if order.privacy is not None:
        from tracemill.flows.admission.redaction_setup import make_redactor

        make_redactor(None, order.privacy)
    if order.unredacted and not order.forgotten and (DEFAULT_WORKSPACE / FORGOTTEN_FILE).is_file():
        return replace(order, forgotten=(DEFAULT_WORKSPACE,))
    return order


def _refuse_forgotten(ingester: ShardIngester) -> None:
    """Refuse a folder of recorded text that contains sessions forgotten after it was written.

    Raises WorkspaceError: single sessions cannot be removed from such a folder.
    """
    if ingester.trace_filter is None:
        return
    found = sum(
        ingester.trace_filter.forgotten(trace) is not None
        for table in ingester.work.current("traces")
        for trace in traces_from_table(table)
    )
    if found:
        raise WorkspaceError(
            f"{ingester.work.root} holds {printable_count(found, 'session')} forgotten since",
            "recorded text of sessions that are not forgotten",
            "remove the folder and ingest again",
        )


def _ingest(
    order: IngestOptions, work: Workspace, plan: SourcePlan, known: Watermarks | None
) -> dict[str, Any]:
    started = time.perf_counter()
    ingester = make_ingester(order, work)
    if order.forgotten:
        _refuse_forgotten(ingester)
    marks = known or open_watermarks(order, ingester.redactor)
    run_id = start_run(work, order.fingerprint(), "ingest").run_id
    inputs = IngestInputs(order, plan, marks, ingester, run_id)
    values = ShardResult(_known_values(ingester))
    total = run_stages([INGEST], IngestContext(inputs=inputs, so_far=values))
    reports = _by_file(total.files)
    record = encodable_json(
        {
            "files": [_file(report) for report in reports],
            "unread_files": [item._asdict() for item in plan.unread],
            **({"datasets": list(plan.datasets)} if plan.datasets else {}),
            "totals": _totals(order, reports, total.summary, time.perf_counter() - started),
        }
    )
    write_manifest(work, run_id, "ingest", record)
    end_run(work, run_id, {"totals": record["totals"]})
    refuse_unreadable(order.sources, reports)
    return record


def _known_values(ingester: ShardIngester) -> Summary:
    if ingester.redactor is None:
        return Summary()
    from tracemill.flows.admission.redaction_setup import count_known_values

    return Summary(flags=count_known_values(ingester.redactor))


def _by_file(reports: Sequence[IngestReport]) -> list[IngestReport]:
    """Return one report per file, with those of its parts added up."""
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


def _totals(
    order: IngestOptions, reports: Sequence[IngestReport], total: Summary, seconds: float
) -> dict[str, Any]:
    sums: dict[str, Any] = {key: getattr(total, key) for key in ("traces", "contexts", "states")}
    sums |= {key: sum(getattr(report, key) for report in reports) for key in (*IN_FILES, "bytes")}
    for key in ("changes", "left_out", "skipped", "flags", "redactions", "unread"):
        sums[key] = dict(getattr(total, key).most_common())
    if total.unknown:
        sums["unknown_kinds"] = dict(total.unknown.most_common())
    if order.select and (unmatched := order.select.unmatched(total.matched)):
        sums["selection"] = unmatched
    return {"files": len(reports), **sums, "seconds": round(seconds, 3)}
