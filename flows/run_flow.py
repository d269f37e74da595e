"""The flows of Prefect: `harvest`, `release` and `training`, and a whole run in one process.

A harvest goes from session files to pairs, a release from pairs to a published version, a training from a
version to a checkpoint. Each shard of each stage is a task. What a flow had finished when it died is on
disk, so the next run of the flow goes on from there; Prefect's result cache stays off, as it would store
sessions.

A run ends `Completed`, `CompletedWithLosses`, `Skipped`, or `Failed`, which is before anything was spent. A
Prefect server keeps parameters and errors, and may be another machine's: it is given the path of a
configuration and the type of an error (`flows.runtime.error_masking`).
"""

import shlex
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from prefect import flow, tags, task
from prefect.cache_policies import NO_CACHE
from prefect.client.orchestration import get_client
from prefect.client.schemas.filters import FlowRunFilter
from prefect.client.schemas.objects import State
from prefect.logging import get_run_logger
from prefect.runtime import deployment, flow_run
from prefect.states import Cancelled, Completed
from tenacity import Retrying, retry_if_exception_type, stop_after_delay, wait_fixed

from tracemill.flows.config.run_settings import RunSettings, load_settings
from tracemill.flows.pipeline import ShardResult, Stage
from tracemill.flows.preflight import PreparedRun, run_preflight
from tracemill.flows.record_table import record_rows
from tracemill.flows.run_artifacts import (
    materialize_asset,
    name_harvest,
    pairs_asset,
    progress_artifact,
    release_asset,
    show_closing_table,
    show_release,
)
from tracemill.flows.run_state.run_records import RUNNING, last_run, today
from tracemill.flows.run_state.run_summary import Summary
from tracemill.flows.runtime.error_masking import mask_errors, unmask_errors
from tracemill.flows.runtime.interrupts import handle_termination, remember_interrupts
from tracemill.flows.runtime.prefect_events import emit_harvested, emit_run_failed
from tracemill.flows.stages import HARVEST_STAGES
from tracemill.flows.training.training_run import train_unattended, training_table_rows
from tracemill.flows.workspace_commands import release_when_due, run_prepared
from tracemill.records.errors import TracemillError, WorkspaceBusyError
from tracemill.records.storage.workspace import Workspace

WITH_LOSSES, SKIPPED = "CompletedWithLosses", "Skipped"
"""Names of completed states."""
_HERE_ALONE = {"send_to_api": False}
"""Of a log record that stays on this machine."""
AUTO_SCHEDULED = "auto-scheduled"
"""Tag that Prefect gives to the runs of a schedule."""
_WAIT_WHILE_BUSY = Retrying(
    retry=retry_if_exception_type(WorkspaceBusyError),
    wait=wait_fixed(5.0),
    stop=stop_after_delay(6 * 3600.0),
    reraise=True,
)
Outcome = dict[str, Any] | State[Any]


@task(name="stage", cache_policy=NO_CACHE, persist_result=False)
@mask_errors
def stage_task(work: Callable[[], ShardResult]) -> ShardResult:
    """Run one stage on one shard; returns paths and counts only."""
    return work()


def execute_as_task(stage: Stage[Any], shard: Any, context: Any) -> ShardResult:
    """Run a stage as a Prefect task named after it; its original errors are raised."""
    return unmask_errors(stage_task.with_options(name=stage.name), partial(stage.run, shard, context))


def _given() -> RunSettings:
    parameters: dict[str, Any] = flow_run.parameters or {}
    return _settings(parameters["config"], parameters.get("workspace"))


def name_harvest_run() -> str:
    """Return the name of the new harvest: `traces 2026-11-22 #3`."""
    return name_harvest(_given())


def name_release_run() -> str:
    """Return the name of the new release: `traces 2026-11-22 release`."""
    return f"{_given().release.name} {today()} release"


def name_training_run() -> str:
    """Return the name of the new training, with its release: `traces@2026.11.22 training`."""
    return f"{(flow_run.parameters or {}).get('release') or _given().release.name} training"


@flow(name="harvest", flow_run_name=name_harvest_run, persist_result=False, validate_parameters=False)
@mask_errors
def harvest(config: str, workspace: str | None = None) -> Outcome:
    """Ingest new sources, ask teachers and make pairs, by the configuration file `config`.

    Returns the figures of the closing table. `workspace` replaces the configured one. Consent must have
    been given before: raises MaskedError, which holds a PrivacyError, if text would be sent without it. A
    scheduled time that was missed is made up for once.
    """
    settings = _settings(config, workspace)
    accept_by = f"`tracemill run {shlex.quote(config)} --yes`"
    with _reported(settings, "harvest"):
        _cancel_late_runs()
        if run_id := _made_up_by(settings):
            return Completed(name=SKIPPED, message=f"made up for by run {run_id}")
        try:
            record = run_prepared(
                run_preflight(settings),
                False,
                scheduled=True,
                accept_by=accept_by,
                execute=execute_as_task,
                stages=HARVEST_STAGES,
            )
        except WorkspaceBusyError:
            return Completed(name=SKIPPED, message="another process is working on the workspace")
        except Exception as error:
            if not _has_asked(settings):
                raise
            emit_run_failed(settings.release.name, "harvest", error)
            get_run_logger().error("harvest stopped: %s", error, extra=_HERE_ALONE)
            lost = f"stopped by {type(error).__name__}; the next run goes on"
            return Completed(name=WITH_LOSSES, message=lost)
    summary = record["summary"]
    show_closing_table(settings, record_rows(record), f"run {record['run_id']}")
    figures = {"traces": summary["traces"], "steps": summary["states"], "spent_usd": summary["spent_usd"]}
    materialize_asset(pairs_asset(settings), figures | {"pairs": sum(summary["pairs"].values())})
    counts = summary["traces"], summary["calls"]
    get_run_logger().info("run %s: %s traces, %s calls", record["run_id"], *counts)
    emit_harvested(settings.release.name, record["run_id"])
    return _ended(record, _losses_of(record))


@flow(name="release", flow_run_name=name_release_run, persist_result=False, validate_parameters=False)
@mask_errors
def release(config: str, workspace: str | None = None) -> Outcome:
    """Make a version of the release if one is due, and publish it if a dataset is configured.

    Waits while another process works on the workspace.
    """
    settings = _settings(config, workspace)
    with _reported(settings, "release"):
        outcome = _WAIT_WHILE_BUSY(release_when_due, settings, execute_as_task)
    show_release(settings, outcome)
    made = {"version": outcome.version, "rows": outcome.rows}
    get_run_logger().info("release %s: %s", "made" if outcome.created else "unchanged", outcome.version)
    if outcome.created:
        materialize_asset(release_asset(settings), made, made_of=[pairs_asset(settings)])
    return _ended(asdict(outcome), [])


@flow(name="training", flow_run_name=name_training_run, persist_result=False, validate_parameters=False)
@mask_errors
def training(config: str, release: str | None = None, workspace: str | None = None) -> Outcome:
    """Train on a release by `[training]` of the configuration; return the figures of the training.

    `release` is `NAME[@VERSION]` of the workspace or `OWNER/NAME[@TAG]` of the Hub, by default the newest
    of the configured name. An interrupted training is resumed, a finished one is returned.
    """
    settings = _settings(config, workspace)
    with _reported(settings, "training"):
        found = train_unattended(settings, release, f"`tracemill train {shlex.quote(config)} --yes`")
    if note := found.get("note"):
        return Completed(name=SKIPPED, message=note)
    title = f"training on {found['release']}"
    show_closing_table(settings, training_table_rows(found)[1:], title)
    return _ended(found, [])


def run_prepared_as_flow(ready: PreparedRun, yes: bool, new_run: bool = False) -> dict[str, Any]:
    """Run all stages of a prepared run as a flow in this process.

    `yes` gives consent; `new_run` starts fresh instead of resuming an unfinished run.
    """
    settings = ready.settings

    @flow(name="tracemill-run", flow_run_name=name_harvest(settings), persist_result=False)
    @mask_errors
    def prepared(yes: bool) -> dict[str, Any]:
        with handle_termination():
            return run_prepared(ready, yes, new_run, execute=execute_as_task)

    with tags("tracemill", settings.release.name):
        return unmask_errors(prepared, yes)


def _settings(config: str, workspace: str | None) -> RunSettings:
    return load_settings(Path(config), {} if workspace is None else {"workspace": workspace})


@contextmanager
def _reported(settings: RunSettings, name: str) -> Iterator[None]:
    """Show the progress of a flow, end it cleanly on SIGTERM, and report its failure."""
    try:
        with remember_interrupts(), progress_artifact(settings):
            yield
    except Exception as error:
        emit_run_failed(settings.release.name, name, error)
        unexpected = not isinstance(error, TracemillError)
        get_run_logger().error("%s failed: %s", name, error, exc_info=unexpected, extra=_HERE_ALONE)
        raise


def _ended(record: dict[str, Any], losses: list[str]) -> Outcome:
    return Completed(name=WITH_LOSSES, message="; ".join(losses), data=record) if losses else record


def _made_up_by(settings: RunSettings) -> str | None:
    """Return a newer run that makes up for this one, if this is a late scheduled run."""
    due = flow_run.scheduled_start_time
    if due is None or AUTO_SCHEDULED not in (flow_run.tags or ()):
        return None
    last = last_run(Workspace(settings.workspace))
    if last is None:
        return None
    began = max(last["started_at"], last.get("resumed_at", ""))
    return last["run_id"] if began > due.strftime("%Y-%m-%dT%H:%M:%SZ") else None


def _cancel_late_runs() -> None:
    """Cancel late runs of the same deployment: this run makes up for them."""
    if deployment.id is None or AUTO_SCHEDULED not in (flow_run.tags or ()):
        return
    late = FlowRunFilter.model_validate(
        {
            "state": {"type": {"any_": ["SCHEDULED"]}},
            "expected_start_time": {"before_": datetime.now(UTC)},
            "deployment_id": {"any_": [deployment.id]},
        }
    )
    with suppress(Exception), get_client(sync_client=True) as client:
        for other in client.read_flow_runs(flow_run_filter=late):
            client.set_flow_run_state(other.id, Cancelled(message=f"made up for by run {flow_run.id}"))


def _has_asked(settings: RunSettings) -> bool:
    """Return whether the interrupted run had begun to ask teachers."""
    last = last_run(Workspace(settings.workspace))
    return last is not None and last.get("status") == RUNNING and "ledger_id" in last


def _losses_of(record: dict[str, Any]) -> list[str]:
    """Return a line for each kind of loss in a run's record, counts only."""
    summary = Summary.from_json(record["summary"])
    unread = len(record.get("unread_files", ())) or summary.unread.total()
    counted = (
        (unread, "files not read"),
        (summary.failures.total(), "questions failed"),
        (len(summary.outages), "teachers given up"),
        (summary.left_over, "questions left for the next run"),
    )
    lines = [f"{count:,} {what}" for count, what in counted if count]
    if record["at_cap"]:
        lines.append("stopped at the cap")
    return lines
