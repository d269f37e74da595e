"""The stage `ingest`: read new and changed sources, and count the others by what is known."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial

from tracemill.flows.admission.trace_inventory import SELECTION_VERSION
from tracemill.flows.ingest.ingest_order import IngestOptions
from tracemill.flows.ingest.ingest_shard import IngestedShard, ShardIngester, count_entries
from tracemill.flows.ingest.known_traces import find_known_traces, known_traces_report
from tracemill.flows.ingest.parallel_ingest import discard_shards, ingest_in_processes
from tracemill.flows.ingest.reuse_traces import trace_reuse_marks
from tracemill.flows.pipeline import ShardResult, Stage, StageContext, StagePass
from tracemill.flows.run_state.run_records import write_manifest
from tracemill.flows.runtime.progress import progress_meter
from tracemill.flows.runtime.ray_pool import RayPool
from tracemill.flows.sources.shard_plan import SourcePlan
from tracemill.flows.sources.watermarks import Watermarks
from tracemill.ingesters.reading.source_file import SourceFile
from tracemill.ingesters.registry import reader_versions
from tracemill.privacy.redaction.known_secrets import KNOWN_SECRETS
from tracemill.records.storage.workspace import Workspace

Files = tuple[SourceFile, ...]


@dataclass(frozen=True, slots=True)
class IngestInputs:
    """Input of the stage: `plan` and `marks` list the sources that are new or changed."""

    order: IngestOptions
    plan: SourcePlan
    marks: Watermarks
    ingester: ShardIngester
    run_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class IngestContext(StageContext):
    """Context of stages that read sources; `inputs` is None if no sources are read."""

    inputs: IngestInputs | None = None
    pool: RayPool | None = None
    """The workers that do shards ahead of the stages; None if this process does them."""


@dataclass(frozen=True, slots=True)
class SourceShard:
    """Files that are read together; `read` is the result if another process has read them already."""

    files: Files
    read: IngestedShard | None = field(default=None, repr=False)


@contextmanager
def source_pass(context: IngestContext) -> Iterator[StagePass[IngestContext]]:
    """Open the pass over new and changed sources; the others are counted, and the sample drawn, first.

    Raises SourceError if a table to sample from cannot be read.
    """
    inputs = context.inputs
    assert inputs is not None
    known = find_known_traces(inputs.plan, inputs.marks, inputs.ingester, inputs.order.sample)
    if known.drawn is not None:
        write_manifest(inputs.ingester.work, inputs.run_id, "sample", known.drawn.to_json())
    reports = tuple(known_traces_report(kept) for kept in known.plan.kept)
    shards, fullness = known.plan.shards, {name: entry.fullness for name, entry in known.entries.items()}
    if context.pool is None:
        ahead = ingest_in_processes(inputs.order, shards, fullness)
    else:
        ahead = context.pool.map(partial(open_ingest_worker, inputs.ingester, fullness), shards)
    with ahead as read, progress_meter(None) as meter:
        meter.begin("ingest", known.plan.files)
        yield StagePass(
            replace(context, inputs=replace(inputs, plan=known.plan)),
            map(SourceShard, shards, read),
            ShardResult(known.summary, known.entries, reports),
            lambda _, result: meter.advance(result.summary.files),
            partial(_end_pass, inputs.ingester.work),
        )


@contextmanager
def open_ingest_worker(
    ingester: ShardIngester, fullness: Mapping[str, int]
) -> Iterator[Callable[[Files], IngestedShard]]:
    """Open a worker's function that reads and writes shards; `fullness` is that of known traces.

    Raises WorkspaceError if the workspace does not exist.
    """
    ingester.work.require_here()

    def ingest(files: Files) -> IngestedShard:
        done = ingester.ingest(files, fullness.get)
        if ingester.work.copy is not None and ingester.work.copy.is_away:
            share_known_secrets(ingester.work)
        return done

    yield ingest


def share_known_secrets(work: Workspace) -> None:
    """Exchange known secrets with other machines: those found in sessions here, and theirs."""
    if work.copy is not None:
        with work.lock():
            work.copy.merge_lines(KNOWN_SECRETS)


def _end_pass(work: Workspace, total: ShardResult) -> ShardResult:
    share_known_secrets(work)
    counted, sources = count_entries(total.traces.values()), Counter[str]()
    for shard, ids in work.current_traces("traces"):
        sources[shard.source] += len(ids & total.traces.keys())
    return ShardResult(replace(counted, sources=+sources))


def ingest_shard(shard: SourceShard, context: IngestContext) -> ShardResult:
    """Read, select, redact and write the traces of a shard, and record its sources as read.

    Shards are processed in order to decide which copy of a session is kept: a shard that another process
    read without knowing of an earlier copy is read again. Raises WorkspaceError if the workspace cannot be
    written.
    """
    assert context.inputs is not None
    ingester, marks, traces = context.inputs.ingester, context.inputs.marks, context.so_far.traces

    def fullness_of(trace_id: str) -> int | None:
        return traces[trace_id].fullness if trace_id in traces else None

    done = shard.read
    if done is not None and not done.was_read_with(fullness_of):
        discard_shards(ingester.work, done.shards)
        done = None
    done = done or ingester.ingest(shard.files, fullness_of)
    ingester.work.add("traces", done.shards)
    marks.add(trace_reuse_marks(done.accounts, marks))
    return ShardResult(done.summary, done.entries, tuple(account.report for account in done.accounts))


def _versions() -> dict[str, int | str]:
    from tracemill.privacy.redaction.redactor import REDACTION_VERSION

    readers = {f"reader {source}": version for source, version in reader_versions().items()}
    return {"selection": SELECTION_VERSION, "redaction": REDACTION_VERSION, **readers}


INGEST = Stage(
    "ingest",
    versions=_versions,
    settings=lambda run: run.model_dump(mode="json", include={"sources", "select", "sample", "privacy"}),
    over=source_pass,
    run=ingest_shard,
)
