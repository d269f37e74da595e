"""The pipeline: one list of stages, from session files to a checkpoint.

`tracemill run` does all of them, every other command a part (`flows.workspace_commands`). They run one shard
at a time, in this process or as tasks of Prefect (`flows.run_flow`); workers on Ray may do shards ahead of
them (`flows.runtime.ray_pool`). Three parts cannot be cut into shards of traces, and are what they are for a
whole run:

- **Asking** goes batch by batch, but the cap, the room under the caps of the release, early stopping and the
  gate belong to the run: one `AskSession` has them, and its ledger counts across processes. Workers have one
  each where no batch depends on the results of another.
- **Consent** needs every project, so all sources are read before the first question is sent.
- **The release** is one shard: duplicates, caps and splits look across all pairs of the workspace.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from tracemill.agreement.voting.policy import VotePolicy
from tracemill.agreement.voting.vote import VOTE_VERSION
from tracemill.flows.admission.reredaction import Reredactor
from tracemill.flows.config.run_settings import RunSettings
from tracemill.flows.consent.consent import require_consent
from tracemill.flows.ingest.ingest_stage import INGEST, IngestContext
from tracemill.flows.ingest.known_traces import refuse_unreadable
from tracemill.flows.ingest.reuse_traces import batch_reused_traces
from tracemill.flows.labeling.cap_room import capped_by
from tracemill.flows.labeling.dispute_sources import dispute_fingerprint, dispute_sources
from tracemill.flows.labeling.finished_batches import FinishedBatches
from tracemill.flows.labeling.gate_run import gate_version
from tracemill.flows.labeling.judge_setup import judge_text
from tracemill.flows.labeling.label_shard import (
    TraceBatch,
    count_new_findings,
    load_decisions,
    load_replies,
    make_pairs,
    write_labels,
    write_votes,
)
from tracemill.flows.labeling.vote_policy import vote_version
from tracemill.flows.pipeline import ShardResult, Stage, StagePass
from tracemill.flows.run_state.run_records import StartedRun
from tracemill.flows.run_state.run_summary import Summary, add_up
from tracemill.flows.runtime.prefect_events import emit_release_created
from tracemill.flows.runtime.progress import ProgressMeter, progress_meter
from tracemill.flows.runtime.ray_pool import RayPool
from tracemill.flows.runtime.terminal import say_lines
from tracemill.harnesses.presentation import PRESENTATION_VERSION
from tracemill.normalize.datajuicer.recipe import OPERATORS_VERSION
from tracemill.normalize.normalizer import DJNormalizer
from tracemill.pairs.sources import HINDSIGHT
from tracemill.pairs.teacher_pairs import PAIRS_VERSION
from tracemill.records.errors import PrivacyError
from tracemill.records.label_source import sources_of_traces
from tracemill.records.storage.workspace import Workspace

if TYPE_CHECKING:
    from tracemill.flows.labeling.ask_session import AskSession


@dataclass(frozen=True, slots=True, kw_only=True)
class RunContext(IngestContext):
    """Context that the stages of a run share."""

    settings: RunSettings
    work: Workspace
    run: StartedRun
    reredactor: Reredactor
    policy: VotePolicy
    """The vote."""
    normalizer: DJNormalizer | None = None
    """What cleans a release; None if none is made."""
    batches: Sequence[Sequence[str]] | None = None
    """The traces that are asked about and labelled; None for those that were taken in, but for batches that
    are finished with."""
    asks: bool = False
    """Whether teachers are asked, if there are any."""
    votes_only: bool = False
    """Whether no pairs are made, but the votes that a gate learns from."""
    only_when_due: bool = False
    """Whether a version is made only if `min_new_pairs` or `max_age_days` says so."""
    yes: bool = False
    """Whether what would leave this machine is accepted."""
    accept_by: str = "--yes"
    """What accepts it, for whoever reads that it was not."""
    asking: "AskSession | None" = None
    """What asks; None outside the stages that do, and where there are no teachers."""


@contextmanager
def whole_pass(context: RunContext) -> Iterator[StagePass[RunContext]]:
    """Open a pass over the whole workspace as one shard."""
    yield StagePass(context, (context.work.root,))


@contextmanager
def release_pass(context: RunContext) -> Iterator[StagePass[RunContext]]:
    """Open a pass over the whole workspace as one shard, with a progress meter."""
    with progress_meter(context.settings.cap_usd() if context.asks else None) as meter:
        meter.begin("normalise and release", 0, context.so_far.summary.spent_usd)
        yield StagePass(context, (context.work.root,))


@dataclass(frozen=True, slots=True)
class BatchShard:
    """Batches of traces that go through the stages together, by the ids of their traces.

    `batches` are their traces; `made` has instead the result of each stage, by its name, if a worker has
    run them.
    """

    ids: Sequence[Sequence[str]]
    batches: Sequence[TraceBatch] = field(default=(), repr=False)
    made: Mapping[str, ShardResult] | None = None


@contextmanager
def trace_pass(context: RunContext) -> Iterator[StagePass[RunContext]]:
    """Open a pass over batches of traces, with teachers if there are any."""
    work, settings = context.work, context.settings
    batches = context.batches
    if batches is None:
        batches = batch_reused_traces(work, context.so_far.traces)
    remembers = settings.ledger_url is not None or work.ledger_path.exists()
    pool = context.pool if _batches_are_independent(settings) else None
    with ExitStack() as stack:
        meter = stack.enter_context(progress_meter(settings.cap_usd() if context.asks else None))
        asking = (
            stack.enter_context(_session(context, meter))
            if context.asks and settings.asked_teachers()
            else None
        )
        finished = None
        if context.batches is None:
            finished = FinishedBatches(work, LABEL.fingerprint(settings), context.reredactor.version)
        counted = asking if pool is None else None
        if counted is None:
            meter.begin("shards", len(batches))
        else:
            counted.begin(context.so_far.summary.states)
        known: list[Summary] = []
        left: list[Sequence[str]] = []
        for ids in batches:  # a ledger that was lost is filled again, batch by batch
            done = finished.summary_of(ids) if finished and (asking is None or remembers) else None
            if done is None:
                left.append(ids)
                continue
            known.append(done)
            if counted is None:
                meter.advance()
            else:
                counted.pass_over(sum(context.so_far.traces[trace_id].states for trace_id in ids))
        if pool is None:
            shards = _load(context, left, 0 if asking is None else settings.replay.concurrency)
        else:
            shards = stack.enter_context(_label_ahead(context, pool, left))
        yield StagePass(
            replace(context, asking=asking),
            shards,
            ShardResult(add_up(known)),
            partial(_batches_done, finished, meter if counted is None else None),
            lambda _: _reports(context, asking, with_prices=pool is None),
        )


def _batches_are_independent(settings: RunSettings) -> bool:
    """Return whether the questions of a batch never depend on another batch: neither a gate nor caps."""
    return not settings.asked_teachers() or (settings.gate.share >= 1 and not capped_by(settings))


def _session(context: RunContext, meter: ProgressMeter) -> Any:
    from tracemill.flows.labeling.ask_session import AskSession

    redactor, accepted = context.reredactor.redactor, context.so_far.accepted
    return AskSession.open(context.settings, context.work, context.run, redactor, accepted, meter)


def _load(context: RunContext, batches: Iterable[Sequence[str]], concurrency: int) -> Iterator[BatchShard]:
    from tracemill.flows.labeling.ask_batches import group_batches

    for group in group_batches(batches, concurrency):
        yield BatchShard(group, [TraceBatch.load(context.work, ids, context.reredactor) for ids in group])


@contextmanager
def _label_ahead(
    context: RunContext, pool: RayPool, batches: Sequence[Sequence[str]]
) -> Iterator[Iterator[BatchShard]]:
    """Run asking and labelling of batches in workers, ahead of the stages that merge their results."""
    sent = replace(
        context, inputs=None, pool=None, normalizer=None, batches=None, asking=None,
        settings=_share_of_worker(context.settings, min(pool.workers, len(batches))),
        so_far=ShardResult(accepted=context.so_far.accepted),
    )  # fmt: skip
    with pool.map(partial(open_label_worker, sent), batches) as results:
        yield (BatchShard([ids], made=made) for ids, made in zip(batches, results, strict=True))


def _share_of_worker(settings: RunSettings, workers: int) -> RunSettings:
    """Return the settings of one of several workers, which share the run's limit of calls in flight."""
    each = max(settings.replay.concurrency // max(workers, 1), 1)
    replay = settings.replay.model_copy(update={"concurrency": each})
    return settings.model_copy(update={"replay": replay})


@contextmanager
def open_label_worker(
    context: RunContext,
) -> Iterator[Callable[[Sequence[str]], dict[str, ShardResult]]]:
    """Open a worker's function that asks and labels a batch; it returns the stages' results by name.

    Raises WorkspaceError if the workspace does not exist, and errors of `AskSession.open`.
    """
    context.work.require_here()
    with ExitStack() as stack:
        asking: AskSession | None = None
        if context.asks and context.settings.asked_teachers():
            asking = stack.enter_context(_session(context, ProgressMeter()))
        here = replace(context, asking=asking)

        def label(ids: Sequence[str]) -> dict[str, ShardResult]:
            shard = BatchShard([ids], [TraceBatch.load(context.work, ids, context.reredactor)])
            made = {stage.name: stage.run(shard, here) for stage in (ASK, LABEL)}
            if asking is not None:
                told = ShardResult(Summary(outages=asking.breaker.outages()), prices=_prices(here, asking))
                made[ASK.name] += told
            return made

        yield label


def _batches_done(
    finished: FinishedBatches | None, meter: ProgressMeter | None, shard: BatchShard, result: ShardResult
) -> None:
    for ids in shard.ids:
        if finished is not None:
            finished.add(ids, result.batches[ids[0]])
    if meter is not None:
        meter.advance(len(shard.ids))


def _reports(context: RunContext, asking: "AskSession | None", with_prices: bool) -> ShardResult:
    """Return the reports on the whole run: its cost, the gate, the teachers' prices."""
    from tracemill.flows.labeling.gate_report import gate_report

    work, settings = context.work, context.settings
    if asking is None:
        return ShardResult()
    judge = "" if asking.judge is None else judge_text(asking.judge)
    reports = Summary(gate=gate_report(work, settings), judge=judge)
    return ShardResult(asking.spending() + reports, prices=_prices(context, asking) if with_prices else {})


def _prices(context: RunContext, asking: "AskSession") -> dict[str, dict[str, Any]]:
    from tracemill.flows.labeling.price_history import price_history_for_manifest

    return price_history_for_manifest(context.settings, context.work, os.environ, asking.prices.read_now)


def require_accepted(_: Any, context: RunContext) -> ShardResult:
    """Ask for consent to send the traces to teachers; return the ids of the accepted traces.

    Raises SourceError if a file that the user named cannot be read and no other source has a trace, and
    PrivacyError if consent is not given.
    """
    settings, so_far = context.settings, context.so_far
    refuse_unreadable(settings.sources.order(), so_far.files)
    unmatched = settings.select.unmatched(so_far.summary.matched)
    accepted = require_consent(
        context.work,
        settings,
        context.run.run_id,
        so_far.traces.values(),
        context.yes,
        unmatched,
        context.accept_by,
    )
    return ShardResult(Summary(unmatched=tuple(unmatched)), accepted=accepted)


def ask_teachers(shard: BatchShard, context: RunContext) -> ShardResult:
    """Decide which teachers are asked at each step of these traces, and ask."""
    if shard.made is not None:
        return shard.made[ASK.name]
    if context.asking is None:
        return ShardResult()
    from tracemill.flows.labeling.ask_batches import ask_batches

    return _counts_of(shard.batches, ask_batches(context.work, shard.batches, context.asking))


def label_traces(shard: BatchShard, context: RunContext) -> ShardResult:
    """Count the votes of these traces and make their pairs; the gate learns from the votes."""
    if shard.made is not None:
        return shard.made[LABEL.name]
    work, asking, counts = context.work, context.asking, list[Summary]()
    if context.votes_only and (asking is None or asking.gate is None):
        return ShardResult()
    version, disputes = vote_version(context.settings), dispute_sources(context.settings)
    for batch in shard.batches:
        ids = batch.trace_ids
        replies, of_traces = load_replies(work, ids), not context.votes_only
        made = make_pairs(batch.shown, replies, context.policy, of_traces, disputes)
        if context.votes_only:
            write_votes(work, batch.source, ids, made.votes, version)
        else:
            write_labels(work, batch.source, ids, made, version)
            counts.append(made.summary + Summary(redactions=count_new_findings(batch.shown)))
        if asking is not None:
            asking.learn(load_decisions(work, ids), made.votes)
    return _counts_of(shard.batches, counts) if counts else ShardResult()


def _counts_of(batches: Sequence[TraceBatch], counts: Sequence[Summary]) -> ShardResult:
    each = {batch.trace_ids[0]: one for batch, one in zip(batches, counts, strict=True)}
    return ShardResult(add_up(counts), batches=each)


def write_release(_: Any, context: RunContext) -> ShardResult:
    """Apply the recipe to all pairs of the workspace, and write a release.

    Raises PrivacyError if the publish gate finds anything private.
    """
    from tracemill.flows.release.release_run import release_pairs

    assert context.normalizer is not None
    total = context.so_far.summary
    run = context.settings, context.normalizer, context.reredactor, context.run.run_id
    only_when_due = context.only_when_due
    try:
        made = release_pairs(context.work, *run, total, only_when_due)
    except PrivacyError:
        if context.asks:
            spent = f"{total.calls:,} calls were sent and ${total.spent_usd:.4f} spent"
            say_lines(
                [f"{spent}; answers and labels are kept, and the same command resumes with the release"]
            )
        raise
    if made.created:
        emit_release_created(context.settings.release.name, str(made.version), made.rows)
    return ShardResult(release=made)


def publish_release(_: Any, context: RunContext) -> ShardResult:
    """Push the release to the Hub if the configuration names a dataset."""
    release = context.so_far.release
    if release is None or release.path is None or context.settings.release.hub is None:
        return ShardResult()
    from tracemill.flows.publish.publish_run import publish_finished

    return ShardResult(release=publish_finished(context.work, context.settings, release))


def train_on_release(_: Any, context: RunContext) -> ShardResult:
    """Train on the release if it is configured; raises only KeyboardInterrupt."""
    from tracemill.flows.training.training_run import train_after_release

    assert context.so_far.release is not None
    return ShardResult(training=train_after_release(context.settings, context.so_far.release))


def _label_versions() -> Mapping[str, int | str]:
    ours = {"presentation": PRESENTATION_VERSION, "vote": VOTE_VERSION, "pairs": PAIRS_VERSION}
    added = (source for source in sources_of_traces() if source is not HINDSIGHT)
    return {**ours, **{f"label source {source.name}": source.version for source in added}}


def _asked(settings: RunSettings) -> dict[str, Any]:
    """Return the settings that affect replies and labels: teachers, replay, gate, vote and caps."""
    dumped = settings.model_dump(mode="json", include={"preset", "teachers", "replay", "gate", "agreement"})
    dumped["replay"] = settings.replay.request_fields()
    dumped["gate"] = gate_version(settings)
    if caps := capped_by(settings):
        dumped["caps"] = caps
    dumped |= dispute_fingerprint(settings)
    dumped["asked"] = [teacher.model_dump(mode="json") for teacher in settings.asked_teachers()]
    for teacher in (*dumped["teachers"], *dumped["asked"]):
        if teacher["type"] == "openrouter":
            teacher.pop("local")  # newer than stored batches, and decides only whether consent is asked for
    return dumped


def _part(*names: str) -> Any:
    return lambda settings: settings.model_dump(mode="json", include=set(names))


CONSENT = Stage("consent", dict, _part("preset", "teachers", "privacy"), whole_pass, require_accepted)
ASK = Stage("ask", lambda: {"presentation": PRESENTATION_VERSION}, _asked, trace_pass, ask_teachers)
LABEL = Stage("label", _label_versions, _asked, trace_pass, label_traces)
RELEASE = Stage(
    "release",
    lambda: {"operators": OPERATORS_VERSION},
    _part("pairs", "normalize", "release"),
    release_pass,
    write_release,
)
PUBLISH = Stage("publish", dict, _part("release"), release_pass, publish_release)
TRAIN = Stage("train", dict, _part("training"), whole_pass, train_on_release, writes=False)

STAGES: tuple[Stage[Any], ...] = (INGEST, CONSENT, ASK, LABEL, RELEASE, PUBLISH, TRAIN)
"""The pipeline, in its order."""
HARVEST_STAGES: tuple[Stage[Any], ...] = (INGEST, CONSENT, ASK, LABEL)
"""What a harvest does: everything up to the pairs."""
