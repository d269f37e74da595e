"""The whole run as a Prefect flow: one task a shard, then one reduce.

Tasks return paths and counts only, and Prefect's result cache stays off: it would store sessions. The
command line calls the flow in its own process; a deployment calls it with the same parameters.
"""

from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from prefect import flow, task
from prefect.cache_policies import NO_CACHE
from rich.console import Console

from flows.asking import Asking
from flows.prepare import Prepared, prepare
from flows.progress import Meter, meter
from flows.release_work import release_pairs
from flows.runs import end_run, sole_writer, start_run, write_manifest
from flows.settings import RunSettings
from flows.shard_work import Shown, ask_shard, ingest_files, load_traces, make_pairs, write_labels
from flows.summary import ReleaseOutcome, Summary
from ingesters.sources import SourceFile


@task(name="shard", cache_policy=NO_CACHE, persist_result=False)
def shard_task(
    ready: Prepared,
    files: tuple[SourceFile, ...],
    read: dict[str, int],
    asking: Asking | None,
    tick: Callable[[float], None],
) -> Summary:
    """One shard through ingest → redact → decide → replay → pairs."""
    ingested = ingest_files(ready.work, files, ready.redactor, read)
    summary = ingested.summary
    if not ingested.trace_ids:
        return summary
    shown = [Shown.of(trace) for trace in load_traces(ready.work, ingested.trace_ids)]
    source = shown[0].trace.source
    replies, asked = ask_shard(ready.work, source, shown, asking, tick)
    made = make_pairs(shown, replies, ready.policy)
    write_labels(ready.work, source, ingested.trace_ids, made)
    summary.add(asked)
    summary.add(made.summary)
    return summary


@task(name="release", cache_policy=NO_CACHE, persist_result=False)
def release_task(ready: Prepared, run_id: str, summary: Summary) -> ReleaseOutcome:
    """All pairs of the workspace through the recipe, into a release."""
    return release_pairs(ready.work, ready.settings, ready.normalizer, run_id, summary)


@flow(name="tracemill-run", persist_result=False, validate_parameters=False)
def harvest(settings: dict[str, Any]) -> dict[str, Any]:
    """A whole run. `settings` is a `RunSettings` as JSON; gives the figures of the closing table."""
    ready = prepare(RunSettings.model_validate(settings))
    with sole_writer(ready.work):
        return _harvest(ready)


def _harvest(ready: Prepared) -> dict[str, Any]:
    run_id, resumed = start_run(ready.work, ready.settings.fingerprint())
    cap = ready.settings.cap_usd()
    total = Summary(unread=ready.plan.unread_reasons())
    if resumed:
        total.flags["unfinished run taken up again"] += 1
    with meter(Console(stderr=True), cap) as gauge:
        _run_shards(ready, run_id, total, gauge)
        gauge.begin("normalise and release", 1)
        release = release_task(ready, run_id, total)
    record = {"run_id": run_id, "cap_usd": cap, **_figures(ready, total, release)}
    write_manifest(ready.work, run_id, "harvest", record)
    end_run(ready.work, run_id, "finished", record)
    return record


def _run_shards(ready: Prepared, run_id: str, total: Summary, gauge: Meter) -> None:
    with Asking.open(ready.settings, ready.work, run_id, ready.redactor) as asking:
        gauge.begin("shards", len(ready.plan.shards))
        read: dict[str, int] = {}
        for files in ready.plan.shards:
            total.add(shard_task(ready, files, read, asking, lambda usd: gauge.advance(0, usd)))
            gauge.advance(1)
        if asking is not None:
            asking.book(total)


def _figures(ready: Prepared, total: Summary, release: ReleaseOutcome) -> dict[str, Any]:
    return {
        "teachers": [teacher.name for teacher in ready.settings.asked()],
        "summary": total.to_json(),
        "release": asdict(release),
        "sources": [str(path) for path, _ in ready.settings.sources.every()],
        "unread_files": [item._asdict() for item in ready.plan.unread],
        "recipe": str(ready.settings.normalize.recipe or "default"),
    }
