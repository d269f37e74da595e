"""Run the stages of each command on a workspace."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from typing import Any

from tracemill.flows.admission.redaction_setup import (
    count_known_values,
    list_scope,
    make_redactor,
    make_trace_filter,
)
from tracemill.flows.admission.reredaction import Reredactor
from tracemill.flows.admission.trace_inventory import TraceEntry
from tracemill.flows.config.from_settings import make_reredactor
from tracemill.flows.config.run_settings import RunSettings
from tracemill.flows.ingest.ingest_shard import count_entries
from tracemill.flows.ingest.ingest_stage import IngestInputs
from tracemill.flows.labeling.run_ledger import require_ledger
from tracemill.flows.labeling.trace_batches import list_trace_batches, select_traces
from tracemill.flows.labeling.vote_policy import build_vote_policy, require_labels
from tracemill.flows.pipeline import ShardResult, Stage, execute_here, run_stages
from tracemill.flows.preflight import (
    PreparedRun,
    check_cluster,
    check_ledger,
    check_publishing_rights,
    check_second_opinion,
    check_teachers,
    make_normalizer,
)
from tracemill.flows.release.fit_context import make_fitting
from tracemill.flows.release.load_pairs import load_pair_states
from tracemill.flows.release.released_pairs import ReleasedPairs
from tracemill.flows.release.split_release import split_release
from tracemill.flows.run_state.run_records import (
    RUNNING,
    StartedRun,
    add_to_record,
    end_run,
    last_run,
    sole_writer,
    started_run,
    write_manifest,
)
from tracemill.flows.run_state.run_summary import ReleaseOutcome, Summary, money_figures
from tracemill.flows.run_state.stale_labels import count_stale_labels
from tracemill.flows.runtime.interrupts import raise_if_interrupted
from tracemill.flows.runtime.prefect_events import emit_budget_reached
from tracemill.flows.runtime.ray_pool import RayPool, open_ray_pool
from tracemill.flows.stages import ASK, CONSENT, LABEL, PUBLISH, RELEASE, STAGES, RunContext
from tracemill.privacy.redaction.redactor import TODAYS_RULES, RuleSet
from tracemill.records.errors import ConfigError
from tracemill.records.storage.trace_rows import traces_from_table
from tracemill.records.storage.workspace import Workspace

Execute = Callable[[Stage[Any], Any, Any], ShardResult]
"""What takes a shard through a stage."""


def run_prepared(
    ready: PreparedRun,
    yes: bool,
    new_run: bool = False,
    scheduled: bool = False,
    accept_by: str = "--yes",
    execute: Execute = execute_here,
    stages: Sequence[Stage[Any]] = STAGES,
) -> dict[str, Any]:
    """Run the stages of a prepared run; return its record. `new_run` starts fresh instead of resuming.

    Stages that write nothing to the workspace leave it unlocked.
    """
    settings, work, reredactor = ready.settings, ready.work, ready.ingester.reredactor
    assert reredactor is not None
    started = started_run(work, settings.fingerprint(), new_run=new_run, scheduled=scheduled)
    with sole_writer(work), _pool_of(settings) as pool, started as run:
        require_ledger(settings, work, run.run_id)
        context = RunContext(
            settings=settings,
            work=work,
            run=run,
            reredactor=reredactor,
            policy=ready.policy,
            inputs=IngestInputs(ready.order, ready.plan, ready.marks, ready.ingester, run.run_id),
            pool=pool,
            normalizer=ready.normalizer,
            asks=True,
            yes=yes,
            accept_by=accept_by,
            so_far=ShardResult(_flags_of(reredactor, run)),
        )
        total = run_stages([stage for stage in stages if stage.writes], context, execute)
        record = _record(context, total) | {
            "release": asdict(total.release) if total.release else None,
            "sources": [*settings.sources.order().names(), *ready.plan.datasets],
            "unread_files": [item._asdict() for item in ready.plan.unread],
            "recipe": str(settings.normalize.recipe or "default"),
        }
        _end(context, "harvest", stages, record, total)
        if record["at_cap"]:
            spent_usd = total.summary.spent_usd
            emit_budget_reached(settings.release.name, run.run_id, record["cap_usd"], spent_usd)
    following = [stage for stage in stages if not stage.writes]
    total = run_stages(following, replace(context, so_far=total), execute)
    if total.training is not None:
        record["training"] = total.training
        end_run(work, run.run_id, record)
    return record


@contextmanager
def _pool_of(settings: RunSettings) -> Iterator[RayPool | None]:
    """Open the workers of a configuration; None if this process does all the work."""
    cluster = settings.cluster
    if not cluster.is_used:
        yield None
        return
    with open_ray_pool(
        cluster.workers, cluster.address, cluster.wait_s, settings.replay.interrupt_wait_s
    ) as pool:
        yield pool


def _flags_of(reredactor: Reredactor, run: StartedRun) -> Summary:
    flags = count_known_values(reredactor.redactor)
    flags["unfinished run resumed"] += run.resumed
    return Summary(flags=+flags)


def _record(context: RunContext, total: ShardResult) -> dict[str, Any]:
    """Return the figures of a run that asked: its cost, its teachers, its counts."""
    teachers = context.settings.asked_teachers()
    made_up = sum(teacher.simulated for teacher in teachers)
    return {
        "run_id": context.run.run_id,
        **money_figures(context.run, context.settings.cap_usd(), total.summary),
        "teachers": [teacher.name for teacher in teachers],
        "simulated": "none" if not made_up else "all" if made_up == len(teachers) else "some",
        "summary": total.summary.to_json(),
    }


def _end(
    context: RunContext,
    name: str,
    stages: Sequence[Stage[Any]],
    record: dict[str, Any],
    total: ShardResult | None = None,
) -> None:
    """Write the manifest of a command, with the fingerprint of each of its stages, and end its run."""
    more: dict[str, Any] = {"stages": {each.name: each.fingerprint(context.settings) for each in stages}}
    if total is not None:
        more["prices"] = total.prices
    write_manifest(context.work, context.run.run_id, name, record | more)
    end_run(context.work, context.run.run_id, record)


@contextmanager
def _command(
    settings: RunSettings,
    command: str,
    rules: RuleSet,
    new_run: bool = False,
    check: Callable[[Workspace, RunSettings], None] | None = None,
) -> Iterator[RunContext]:
    """Lock the workspace, and start or resume a run of a command, after `check` passes."""
    work = Workspace.open(settings.workspace, create=False)
    with sole_writer(work):
        if check is not None:
            check(work, settings)
        with started_run(work, settings.fingerprint(), command, new_run) as run:
            yield RunContext(
                settings=settings,
                work=work,
                run=run,
                reredactor=make_reredactor(work, settings, rules),
                policy=build_vote_policy(settings),
            )


def replay_workspace(
    settings: RunSettings, yes: bool = False, rules: RuleSet = TODAYS_RULES, new_run: bool = False
) -> dict[str, Any]:
    """Ask the teachers at the steps of every selected trace, redacted by `rules`.

    `yes` gives consent; `new_run` starts fresh instead of resuming an unfinished run. Raises ConfigError
    without teachers, PrivacyError without consent, LedgerError if the ledger of an unfinished run is lost.
    """
    if not settings.asked_teachers():
        raise ConfigError("no teachers are given", "a preset or [[teachers]]", "see docs/configuration.md")
    check_teachers(settings)
    make_redactor(None, settings.privacy)
    check_second_opinion(settings)
    check_ledger(settings)
    check_cluster(settings)
    stages = (CONSENT, ASK, LABEL)
    with _command(settings, "replay", rules, new_run) as context, _pool_of(settings) as pool:
        work, reredactor = context.work, context.reredactor
        require_ledger(settings, work, context.run.run_id)
        chosen = select_traces(
            work, make_trace_filter(settings.select, work), list_scope(work, settings.privacy)
        )
        counts = Summary(flags=count_known_values(reredactor.redactor)) + chosen.summary
        total = run_stages(
            stages,
            replace(
                context,
                batches=chosen.batches,
                pool=pool,
                asks=True,
                votes_only=True,
                yes=yes,
                so_far=ShardResult(counts, chosen.entries),
            ),
        )
        record = _record(context, total)
        _end(context, "replay", stages, record, total)
    return record


def label_workspace(settings: RunSettings, rules: RuleSet = TODAYS_RULES) -> Summary:
    """Make the pairs of every trace again, redacted by `rules`, from the replies in the workspace."""
    check_cluster(settings)
    with _command(settings, "pairs", rules) as context, _pool_of(settings) as pool:
        batches = list_trace_batches(context.work)
        total = run_stages([LABEL], replace(context, batches=batches, pool=pool)).summary
        _end(context, "pairs", [LABEL], total.to_json())
    return total


def preview_release(settings: RunSettings) -> dict[str, Any]:
    """Return the pairs that a release would keep and drop; no release is written.

    Raises WorkspaceError if pairs were made under another vote.
    """
    normalizer = make_normalizer(settings)
    with _command(settings, "normalize", TODAYS_RULES, check=require_labels) as context:
        work, reredactor, fitting = context.work, context.reredactor, make_fitting(settings)
        reduced, _, split = split_release(work, settings, normalizer, reredactor)
        for _ in fitting.pairs(load_pair_states(work, reduced.normalized.kept, reredactor)):
            raise_if_interrupted()
        record = ReleasedPairs.of(reduced.normalized, fitting, split).account()
        record["newer_answers"] = count_stale_labels(work)
        _end(context, "normalize", [RELEASE], record)
    return record


def release_workspace(settings: RunSettings, rules: RuleSet = TODAYS_RULES) -> ReleaseOutcome:
    """Make a release of the workspace's pairs, redacted by `rules`.

    Raises WorkspaceError if pairs were made under another vote.
    """
    normalizer = make_normalizer(settings)
    with _command(settings, "release", rules, check=require_labels) as context:
        so_far = ShardResult(_summary_of(context.work))
        return _release(replace(context, normalizer=normalizer, so_far=so_far), execute_here)


def release_when_due(settings: RunSettings, execute: Execute = execute_here) -> ReleaseOutcome:
    """Make a release after a harvest if `[release]` says that one is due, and publish it.

    Card and report have the figures of the harvest, and its record gets the release. Raises
    WorkspaceBusyError while another process works on the workspace.
    """
    check_publishing_rights(settings)
    normalizer = make_normalizer(settings)
    with _command(settings, "release", TODAYS_RULES, check=require_labels) as context:
        harvested = last_run(context.work)
        if harvested is not None and harvested.get("status") == RUNNING:
            harvested = None
        counts = _summary_of(context.work)
        if harvested is not None:
            counts = Summary.from_json(harvested["summary"]["summary"])
        ready = replace(context, normalizer=normalizer, so_far=ShardResult(counts), only_when_due=True)
        outcome = _release(ready, execute)
        if harvested is not None:
            add_to_record(context.work, harvested["run_id"], release=asdict(outcome))
    return outcome


def _release(context: RunContext, execute: Execute) -> ReleaseOutcome:
    total = run_stages([RELEASE, PUBLISH], context, execute)
    assert total.release is not None
    record = {"release": total.release.path, "version": total.release.version}
    _end(context, "release", [RELEASE, PUBLISH], record)
    return total.release


def _summary_of(work: Workspace) -> Summary:
    """Count traces, states, redactions and cost of the current workspace."""
    entries = [TraceEntry.of(trace) for table in work.current("traces") for trace in traces_from_table(table)]
    counts = count_entries(entries)
    asked, spent_usd = 0, 0.0
    for table in work.current("replies"):
        asked += table.num_rows
        spent_usd += sum(table["cost_usd"].to_pylist())
    return Summary(
        traces=counts.traces,
        states=counts.states,
        redactions=counts.redactions,
        asked=asked,
        spent_usd=spent_usd,
    )
