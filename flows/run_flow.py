"""The whole run as a Prefect flow: one task a shard to ingest it, consent, one task a plan of shards to ask
and label them, then one reduce.

Consent needs to know every project, so all shards are ingested before the first question is sent; a
refusal leaves the traces in the workspace. Tasks return paths and counts only, and Prefect's result cache
stays off: it would store sessions. A Prefect server keeps parameters and errors, and may be another
machine's: it is given neither the configuration, which holds private lists, nor what an error says
(`flows.runtime.error_masking`). The command line calls the flow in its own process; a deployment, with the
path of a configuration.
"""

import os
import shlex
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from prefect import flow, task
from prefect.cache_policies import NO_CACHE

from tracemill.flows.admission.redaction_setup import count_known_values
from tracemill.flows.admission.trace_inventory import TraceEntry
from tracemill.flows.config.run_settings import RunSettings, load_settings
from tracemill.flows.consent.consent import require_consent
from tracemill.flows.ingest.ingest_shard import Ingested, count_entries
from tracemill.flows.ingest.known_traces import find_known_traces, known_traces_report, refuse_unreadable
from tracemill.flows.ingest.reuse_traces import batch_reused_traces, trace_reuse_marks
from tracemill.flows.labeling.ask_session import Asking
from tracemill.flows.labeling.ask_shards import Shard, ask_shards, plan_ask_shards
from tracemill.flows.labeling.finished_batches import Settled
from tracemill.flows.labeling.gate_report import gate_report
from tracemill.flows.labeling.label_shard import (
    Shown,
    count_new_findings,
    load_decisions,
    load_traces,
    make_pairs,
    write_labels,
)
from tracemill.flows.labeling.ledger_check import require_ledger
from tracemill.flows.labeling.price_history import price_history_for_manifest
from tracemill.flows.labeling.teacher_standing import measured_reliability_report
from tracemill.flows.labeling.vote_policy import vote_version
from tracemill.flows.preflight import Prepared, run_preflight
from tracemill.flows.release.release_run import release_pairs
from tracemill.flows.run_state.run_records import (
    StartedRun,
    end_run,
    sole_writer,
    start_run,
    write_manifest,
)
from tracemill.flows.run_state.run_summary import ReleaseOutcome, Summary, money_figures
from tracemill.flows.runtime.error_masking import mask_errors, unmask_errors
from tracemill.flows.runtime.interrupts import raise_if_interrupted, terminable
from tracemill.flows.runtime.progress import Meter, progress_meter
from tracemill.flows.training.training_run import train_after_release
from tracemill.ingesters.reading.source_file import SourceFile
from tracemill.records.reply import TeacherReply


@task(name="ingest", cache_policy=NO_CACHE, persist_result=False)
@mask_errors
def ingest_task(ready: Prepared, files: tuple[SourceFile, ...], read: dict[str, int]) -> Ingested:
    """One shard of source files through ingest → select → redact."""
    done = ready.intake.files(files, read)
    ready.work.add("traces", done.shards)
    return done


@task(name="shards", cache_policy=NO_CACHE, persist_result=False)
@mask_errors
def harvest_shards_task(ready: Prepared, plan: list[list[str]], asking: Asking | None) -> list[Summary]:
    """The traces of the shards of one plan through decide → replay → pairs."""
    shards: list[Shard] = []
    for trace_ids in plan:
        shown = [Shown.of(trace, ready.renewer) for trace in load_traces(ready.work, trace_ids)]
        shards.append(Shard(shown[0].trace.source, shown))
    done = ask_shards(ready.work, shards, asking)
    return [_label(ready, shard, asking, *one) for shard, one in zip(shards, done, strict=True)]


def _label(
    ready: Prepared, shard: Shard, asking: Asking | None, replies: list[TeacherReply], summary: Summary
) -> Summary:
    made = make_pairs(shard.shown, replies, ready.policy)
    write_labels(ready.work, shard.source, shard.trace_ids, made, vote_version(ready.settings))
    if asking is not None:
        asking.learn(load_decisions(ready.work, shard.trace_ids), made.votes)
    summary.add(made.summary)
    summary.redactions += count_new_findings(shard.shown)
    return summary


@task(name="release", cache_policy=NO_CACHE, persist_result=False)
@mask_errors
def release_task(ready: Prepared, run_id: str, summary: Summary) -> ReleaseOutcome:
    """All pairs of the workspace through the recipe, into a release."""
    return release_pairs(ready.work, ready.settings, ready.normalizer, ready.renewer, run_id, summary)


_NAME = "tracemill-run"


@flow(name=_NAME, persist_result=False, validate_parameters=False)
@mask_errors
def harvest(config: str, yes: bool = False) -> dict[str, Any]:
    """A whole run of the configuration in the file `config`; gives the figures of the closing table.

    A schedule honours the consents the workspace holds; `yes` accepts what they do not cover. Raises
    Unsaid, which holds a PrivacyError where text would leave this machine that nobody accepted.
    """
    ready = run_preflight(load_settings(Path(config), {}))
    return _harvest(ready, yes, scheduled=True, accept_by=f"`tracemill run {shlex.quote(config)} --yes`")


def harvest_prepared(ready: Prepared, yes: bool, new_run: bool = False) -> dict[str, Any]:
    """`harvest` of a run that is prepared already: nothing is looked for or checked a second time. `new_run`
    takes up no unfinished run."""

    @flow(name=_NAME, persist_result=False, validate_parameters=False)
    @mask_errors
    def prepared(yes: bool) -> dict[str, Any]:
        return _harvest(ready, yes, new_run)

    return unmask_errors(prepared, yes)


@terminable()  # Prefect's engine has a handler of its own around the flow
def _harvest(
    ready: Prepared, yes: bool, new_run: bool = False, scheduled: bool = False, accept_by: str = "--yes"
) -> dict[str, Any]:
    """The workspace is free again while the release is trained on."""
    with sole_writer(ready.work):
        run = start_run(ready.work, ready.settings.fingerprint(), new_run=new_run, scheduled=scheduled)
        record = _run(ready, yes, run, accept_by)
    trained = train_after_release(ready.settings, ReleaseOutcome(**record["release"]))
    if trained is not None:
        record["training"] = trained
        end_run(ready.work, run.run_id, record)
    return record


def _run(ready: Prepared, yes: bool, run: StartedRun, accept_by: str) -> dict[str, Any]:
    run_id, cap = run.run_id, ready.settings.cap_usd()
    require_ledger(ready.settings, ready.work, run_id)
    total = Summary(unread=ready.plan.unread_reasons())
    if run.resumed:
        total.flags["unfinished run taken up again"] += 1
    total.flags += count_known_values(ready.renewer.redactor)
    shards, entries = _ingest_shards(ready, run_id, total)
    total.unmatched = ready.settings.select.unmatched(total.matched)
    accepted = require_consent(ready.work, ready.settings, run_id, entries, yes, total.unmatched, accept_by)
    with progress_meter(cap) as gauge:
        states = {entry.trace_id: entry.states for entry in entries}
        read_now = _run_shards(ready, run, shards, states, accepted, total, gauge)
        raise_if_interrupted()
        gauge.begin("normalise and release", 1)
        release = unmask_errors(release_task, ready, run_id, total)
    record = {"run_id": run_id, **money_figures(run, cap, total), **_figures(ready, total, release)}
    prices = price_history_for_manifest(ready.settings, ready.work, os.environ, read_now)
    write_manifest(ready.work, run_id, "harvest", record | {"prices": prices})
    end_run(ready.work, run_id, record)
    return record


def _ingest_shards(ready: Prepared, run_id: str, total: Summary) -> tuple[list[list[str]], list[TraceEntry]]:
    """Every source that is new or changed into the workspace, before anything is sent: the traces of
    the run in batches, and a line a trace. A trace that was read twice is of the later shard, which
    holds more of it. Raises SourceError where a file named outright cannot be read and nothing else gave a
    trace."""
    read: dict[str, int] = {}
    sample = ready.settings.sample.order()
    stock = find_known_traces(ready.plan, ready.marks, ready.intake, sample, read, total)
    if stock.drawn is not None:
        write_manifest(ready.work, run_id, "sample", stock.drawn.to_json())
    entries = stock.entries
    reports = [known_traces_report(kept) for kept in stock.plan.kept]
    with progress_meter(None) as gauge:
        gauge.begin("ingest", len(stock.plan.shards))
        for files in stock.plan.shards:
            done = unmask_errors(ingest_task, ready, files, read)
            ready.marks.add(trace_reuse_marks(done.accounts, ready.marks))
            total.add(done.summary)
            entries |= done.entries
            reports += [account.report for account in done.accounts]
            gauge.advance(1)
    refuse_unreadable(ready.settings.sources.order(), reports)
    total.files = stock.plan.files
    count_entries(total, entries.values())
    return batch_reused_traces(ready.work, entries), list(entries.values())


def _run_shards(
    ready: Prepared,
    run: StartedRun,
    shards: list[list[str]],
    states: Mapping[str, int],
    accepted: frozenset[str],
    total: Summary,
    gauge: Meter,
) -> frozenset[tuple[str, str]]:
    """The shards through asking; gives the models whose prices were read for that, by server and id."""
    remembers = _has_ledger(ready.settings)
    redactor = ready.renewer.redactor
    with Asking.open(ready.settings, ready.work, run, redactor, accepted, gauge) as asking:
        settled = Settled(ready.work, ready.settings, ready.renewer.version)
        if asking is None:
            gauge.begin("shards", len(shards))
        else:
            asking.begin(total.states)
        left: list[list[str]] = []
        for trace_ids in shards:
            done = settled.summary_of(trace_ids) if asking is None or remembers else None
            if done is None:
                left.append(trace_ids)
                continue
            total.add(done)
            if asking is None:
                gauge.advance()
            else:
                asking.pass_over(sum(states[trace_id] for trace_id in trace_ids))
        for plan in plan_ask_shards(left, asking):
            raise_if_interrupted()
            for trace_ids, done in zip(
                plan, unmask_errors(harvest_shards_task, ready, plan, asking), strict=True
            ):
                settled.add(trace_ids, done)
                total.add(done)
            if asking is None:
                gauge.advance()
        if asking is not None:
            asking.book(total)
            total.gate = gate_report(ready.work, ready.settings)
            total.standing = measured_reliability_report(ready.work)
        return frozenset() if asking is None else frozenset(asking.prices.read_now)


def _has_ledger(settings: RunSettings) -> bool:
    """Whether the ledger knows what was bought; one that was lost is filled again, batch by batch."""
    return settings.ledger_url is not None or (settings.workspace / "ledger.sqlite").exists()


def _figures(ready: Prepared, total: Summary, release: ReleaseOutcome) -> dict[str, Any]:
    return {
        "teachers": [teacher.name for teacher in ready.settings.asked()],
        "summary": total.to_json(),
        "release": asdict(release),
        "sources": [*ready.settings.sources.order().names(), *ready.plan.datasets],
        "unread_files": [item._asdict() for item in ready.plan.unread],
        "recipe": str(ready.settings.normalize.recipe or "default"),
    }
