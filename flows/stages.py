"""The stages one by one, on a workspace that holds the traces."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from tracemill.flows.admission.redaction_setup import (
    count_known_values,
    list_scope,
    make_redactor,
    make_sieve,
)
from tracemill.flows.admission.reredaction import Renewer
from tracemill.flows.admission.trace_inventory import TraceEntry
from tracemill.flows.config.from_settings import make_renewer
from tracemill.flows.config.run_settings import RunSettings
from tracemill.flows.consent.consent import require_consent
from tracemill.flows.estimate.trace_batches import filter_trace_batches, list_trace_batches
from tracemill.flows.labeling.ask_shards import Shard, ask_shards, plan_ask_shards
from tracemill.flows.labeling.gate_report import gate_report
from tracemill.flows.labeling.label_shard import (
    Shown,
    load_decisions,
    load_replies,
    load_traces,
    make_pairs,
    write_labels,
    write_votes,
)
from tracemill.flows.labeling.ledger_check import require_ledger
from tracemill.flows.labeling.price_history import price_history_for_manifest
from tracemill.flows.labeling.teacher_standing import measured_reliability_policy, measured_reliability_report
from tracemill.flows.labeling.vote_policy import build_vote_policy, require_labels, vote_version
from tracemill.flows.preflight import check_ledger, check_second_opinion, check_teachers, make_normalizer
from tracemill.flows.release.fit_context import make_fitting
from tracemill.flows.release.load_pairs import load_pair_states
from tracemill.flows.release.release_run import release_pairs
from tracemill.flows.release.released_pairs import Released
from tracemill.flows.release.split_release import split_release
from tracemill.flows.run_state.run_records import (
    StartedRun,
    end_run,
    sole_writer,
    start_run,
    write_manifest,
)
from tracemill.flows.run_state.run_summary import ReleaseOutcome, Summary, money_figures
from tracemill.flows.run_state.stale_labels import count_stale_labels
from tracemill.flows.runtime.interrupts import raise_if_interrupted, terminable
from tracemill.flows.runtime.progress import progress_meter
from tracemill.privacy.redaction.redactor import TODAYS_RULES, Rules
from tracemill.records.errors import ConfigError
from tracemill.records.storage.trace_rows import traces_from_table
from tracemill.records.storage.workspace import Workspace

if TYPE_CHECKING:
    from tracemill.flows.labeling.ask_session import Asking


@contextmanager
def _stage(
    settings: RunSettings, command: str, new_run: bool = False, labelled: bool = False
) -> Iterator[tuple[Workspace, StartedRun]]:
    """The workspace and a run for one stage: an unfinished one is taken up, but with `new_run`. Raises
    WorkspaceError where it has to be `labelled` and is so by another vote than that of the settings."""
    work = Workspace.open(settings.workspace, create=False)
    with sole_writer(work):
        if labelled:
            require_labels(work, settings)
        yield work, start_run(work, settings.fingerprint(), command, new_run)


@terminable()
def replay_workspace(
    settings: RunSettings, yes: bool = False, rules: Rules = TODAYS_RULES, new_run: bool = False
) -> dict[str, Any]:
    """Ask the teachers at the steps of every selected trace, shard by shard, as `rules` redact it. `yes`
    accepts what would leave this machine; `new_run` takes up no unfinished run. Raises ConfigError without
    teachers, PrivacyError without consent, LedgerError where an unfinished run has lost its ledger."""
    if not settings.asked():
        raise ConfigError("no teachers are given", "a preset or [[teachers]]", "see docs/configuration.md")
    check_teachers(settings)
    make_redactor(None, settings.privacy)
    check_second_opinion(settings)
    check_ledger(settings)
    from tracemill.flows.labeling.ask_session import Asking

    total, cap = Summary(), settings.cap_usd()
    with _stage(settings, "replay", new_run) as (work, run):
        run_id = run.run_id
        require_ledger(settings, work, run_id)
        renewer = make_renewer(work, settings, rules)
        total.flags += count_known_values(renewer.redactor)
        batches, accepted = _cleared(settings, work, run_id, total, yes)
        with (
            progress_meter(cap) as gauge,
            Asking.open(settings, work, run, renewer.redactor, accepted, gauge) as asking,
        ):
            if asking is not None:
                _ask_batches(work, batches, asking, renewer, total)
        read_now = set() if asking is None else asking.prices.read_now
        names = [teacher.name for teacher in settings.asked()]
        record = {"run_id": run_id, **money_figures(run, cap, total), "teachers": names}
        record["summary"] = total.to_json()
        prices = price_history_for_manifest(settings, work, os.environ, read_now)
        write_manifest(work, run_id, "replay", record | {"prices": prices})
        end_run(work, run_id, record)
    return record


def _ask_batches(
    work: Workspace,
    batches: list[tuple[str, list[str]]],
    asking: "Asking",
    renewer: Renewer,
    total: Summary,
) -> None:
    asking.begin(total.states)
    source_of = {tuple(ids): source for source, ids in batches}
    for plan in plan_ask_shards(source_of, asking):
        shards = [
            Shard(source_of[ids], [Shown.of(trace, renewer) for trace in load_traces(work, ids)])
            for ids in plan
        ]
        for shard, (replies, summary) in zip(shards, ask_shards(work, shards, asking), strict=True):
            total.add(summary)
            if asking.gate is not None:
                votes = make_pairs(
                    shard.shown, replies, build_vote_policy(asking.settings), of_traces=False
                ).votes
                write_votes(work, shard.source, shard.trace_ids, votes, vote_version(asking.settings))
                asking.learn(load_decisions(work, shard.trace_ids), votes)
    asking.book(total)
    total.gate = gate_report(work, asking.settings)


def _cleared(
    settings: RunSettings, work: Workspace, run_id: str, total: Summary, yes: bool
) -> tuple[list[tuple[str, list[str]]], frozenset[str]]:
    """The selected traces in batches, all of them accepted to be sent; `total` counts their states and the
    traces left out. The lists see the redacted text here: recorded text is not in the workspace."""
    sieve, lists = make_sieve(settings.select, work), list_scope(work, settings.privacy)
    entries: dict[str, TraceEntry] = {}
    batches: list[tuple[str, list[str]]] = []
    for source, taken in filter_trace_batches(work, sieve, total):
        entries |= {trace.trace_id: TraceEntry.of(trace).then(lists) for trace in taken}
        batches.append((source, [trace.trace_id for trace in taken]))
    total.unmatched = settings.select.unmatched(total.matched)
    accepted = require_consent(work, settings, run_id, entries.values(), yes, total.unmatched)
    return batches, accepted


def run_pair_stage(settings: RunSettings, rules: Rules = TODAYS_RULES) -> Summary:
    """Make the pairs of every trace anew, as `rules` redact it, from the replies the workspace holds."""
    total = Summary()
    with _stage(settings, "pairs") as (work, (run_id, *_)):
        policy = measured_reliability_policy(settings, work)
        renewer = make_renewer(work, settings, rules)
        for source, ids in list_trace_batches(work):
            shown = [Shown.of(trace, renewer) for trace in load_traces(work, ids)]
            made = make_pairs(shown, load_replies(work, ids), policy)
            write_labels(work, source, ids, made, vote_version(settings))
            total.add(made.summary)
        total.standing = measured_reliability_report(work)
        write_manifest(work, run_id, "pairs", total.to_json())
        end_run(work, run_id, {"summary": total.to_json()})
    return total


def run_normalize_stage(settings: RunSettings) -> dict[str, Any]:
    """What a release would keep and drop of the workspace's pairs; writes the account alone.
    Raises WorkspaceError where pairs are those of another vote."""
    normalizer = make_normalizer(settings)
    with _stage(settings, "normalize", labelled=True) as (work, (run_id, *_)):
        renewer, fitting = make_renewer(work, settings), make_fitting(settings)
        reduced, _, split = split_release(work, settings, normalizer, renewer)
        for _ in fitting.pairs(load_pair_states(work, reduced.normalized.kept, renewer)):
            raise_if_interrupted()
        record = Released.of(reduced.normalized, fitting, split).account()
        record["newer_answers"] = count_stale_labels(work)
        write_manifest(work, run_id, "normalize", record)
        end_run(work, run_id, record)
    return record


def release_workspace(settings: RunSettings, rules: Rules = TODAYS_RULES) -> ReleaseOutcome:
    """The workspace's pairs as a release, as `rules` redact it. Raises WorkspaceError where pairs are
    those of another vote."""
    normalizer = make_normalizer(settings)
    with _stage(settings, "release", labelled=True) as (work, (run_id, *_)):
        summary = _summary_of(work)
        summary.standing = measured_reliability_report(work)
        renewer = make_renewer(work, settings, rules)
        outcome = release_pairs(work, settings, normalizer, renewer, run_id, summary)
        end_run(work, run_id, {"release": outcome.path, "version": outcome.version})
    return outcome


def _summary_of(work: Workspace) -> Summary:
    """Traces, states and money of the workspace as it is."""
    summary = Summary()
    for table in work.current("traces"):
        for trace in traces_from_table(table):
            summary.traces += 1
            summary.states += trace.step_count
    for table in work.current("replies"):
        summary.asked += table.num_rows
        summary.spent_usd += sum(table["cost_usd"].to_pylist())
    return summary
