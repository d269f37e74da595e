"""Train on a release, by itself or after a run that wrote one."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tracemill.data_cards.model.manifest import read_manifest
from tracemill.flows.config.run_settings import RunSettings
from tracemill.flows.run_state.run_summary import ReleaseOutcome
from tracemill.flows.runtime.progress import ProgressMeter, progress_meter
from tracemill.flows.training.hint_rows_file import add_hint_rows
from tracemill.flows.training.hint_writer import HintConsent
from tracemill.flows.training.promotion_run import decision_table_rows, promote_or_keep
from tracemill.flows.training.resolve_release import resolve_training_release
from tracemill.flows.training.state_rows_file import add_state_rows
from tracemill.flows.training.workspace_rows import remove_rows
from tracemill.records.errors import ConfigError, TracemillError, TrainingError
from tracemill.records.version import __version__
from tracemill.train.hints.writers import origin_lines
from tracemill.train.launch.job_record import JobRecord
from tracemill.train.launch.launch_training import (
    SubmittedJob,
    cancel_job,
    describe_job,
    find_job,
    is_unfinished,
    job_log,
    run_launched,
    submit_training,
)
from tracemill.train.launch.registry import LAUNCHERS
from tracemill.train.registry import TRAINING_METHODS
from tracemill.train.start_child import check_places
from tracemill.train.training_job import (
    TrainingJob,
    TrainingRelease,
    TrainingResult,
    check_config,
    reads_rows,
)
from tracemill.train.training_settings import TrainingSettings

_ASKS_NOBODY = HintConsent(asks=False)
_SIMULATED = "none: the release holds simulated rows, and training.simulated is not set"


def training_settings_of_run(settings: RunSettings) -> TrainingSettings:
    """Return the `[training]` table.

    Raises ConfigError if there is none, TrainingError if the model or the chat template is a missing path.
    """
    if settings.training is None:
        raise ConfigError("no model is given", "training.model", "set it, or use --model")
    check_places(settings.training)
    return settings.training


def train_on(settings: RunSettings, asked: str | None) -> TrainingResult:
    """Train on the release `asked` names, by default the newest of the configuration's name."""
    return _train(settings, training_job(settings, asked))


def train_and_decide(settings: RunSettings, asked: str | None, yes: bool = False) -> dict[str, Any]:
    """Train as `train_on`, decide whether the new model replaces the last one, and return the figures.

    `yes` accepts that failed actions are sent to a teacher that writes hints.
    """
    return _train_and_decide(settings, training_job(settings, asked, HintConsent(yes=yes)))


def _train_and_decide(settings: RunSettings, job: TrainingJob) -> dict[str, Any]:
    made = _train(settings, job)
    return figures(made) | {"decision": promote_or_keep(settings, job, made)}


def training_job(settings: RunSettings, asked: str | None, consent: HintConsent | None = None) -> TrainingJob:
    """Return the job that trains on the release `asked` names, by default the newest one.

    `consent` says whether a teacher may be asked for hints.
    """
    training = training_settings_of_run(settings)
    release = resolve_training_release(asked or settings.release.name, settings.workspace / "releases")
    return _job(settings, training, release, consent)


def train_unattended(
    settings: RunSettings, asked: str | None, accept_by: str = "`tracemill train --yes`"
) -> dict[str, Any]:
    """Train unattended on the release `asked` names; return figures, or the reason for none (`note`).

    Consent to send data must have been given before, by a run or by `accept_by`. Raises TrainingError,
    ReleaseError or SourceError if it cannot start or fails, and errors of `add_hint_rows`.
    """
    training = training_settings_of_run(settings)
    release = resolve_training_release(asked or settings.release.name, settings.workspace / "releases")
    if release.simulated in ("some", "all") and not training.simulated:
        return {"note": _SIMULATED}
    return _train_and_decide(settings, _job(settings, training, release, HintConsent(accept_by=accept_by)))


def describe_training(settings: RunSettings, asked: str | None) -> dict[str, Any]:
    """Return the exact job that a training would submit, with its rows and settings.

    Nothing is submitted, no hint is asked for, and no package of the extra `train` is needed. `rows` counts
    the rows of each split, `whole_at` the pairs that fit into each token limit; both are left out for a
    release on the Hub.
    """
    job = training_job(settings, asked, _ASKS_NOBODY)
    described = describe_job(job, trainings_folder(settings))
    if job.release.path is not None and reads_rows(job.settings):
        manifest = read_manifest(job.release.path)
        table = manifest.tables[TRAINING_METHODS.get(job.settings.method).config]
        described["rows"] = {split: entry.rows for split, entry in table.splits.items()}
        described["whole_at"] = {str(each.max_tokens): each.whole for each in manifest.lengths}
    described["settings"] = job.settings.model_dump(mode="json", exclude_none=True)
    return described


def start_training(settings: RunSettings, asked: str | None, yes: bool = False) -> SubmittedJob:
    """Submit a training, or find its job, without waiting for it. `yes` is that of `train_and_decide`."""
    job = training_job(settings, asked, HintConsent(yes=yes))
    return submit_training(job, trainings_folder(settings))


def stop_training(settings: RunSettings, asked: str | None) -> JobRecord:
    """Ask the job of a training to stop. Raises TrainingError if there is none."""
    job = training_job(settings, asked, _ASKS_NOBODY)
    record = cancel_job(job, trainings_folder(settings))
    if record is None:
        raise _no_job_error(job)
    return record


def training_log(settings: RunSettings, asked: str | None) -> Iterator[str]:
    """Yield the log of a training's job. Raises TrainingError if there is none."""
    job = training_job(settings, asked, _ASKS_NOBODY)
    found = find_job(job, trainings_folder(settings))
    if found is None:
        raise _no_job_error(job)
    return job_log(found)


def _no_job_error(job: TrainingJob) -> TrainingError:
    return TrainingError(
        f"no job was submitted that trains on {job.name} with these settings",
        "the configuration and flags that it was submitted with",
    )


def trainings_folder(settings: RunSettings) -> Path:
    """Return the folder of the workspace with the records of training jobs."""
    return settings.workspace / "trainings"


def _train(settings: RunSettings, job: TrainingJob) -> TrainingResult:
    with progress_meter(None) as meter:
        meter.begin("train: starting", 0)
        made = run_launched(job, trainings_folder(settings), lambda said: _show(meter, said))
    remove_rows(settings.workspace, job.settings)
    return made


def _job(
    settings: RunSettings,
    training: TrainingSettings,
    release: TrainingRelease,
    consent: HintConsent | None = None,
) -> TrainingJob:
    if release.configs is not None and reads_rows(training):
        check_config(release, training.method, release.configs)
    if settings.hint_writer() is not None and (consent is None or consent.asks):
        LAUNCHERS.get(training.launcher).check(training)  # before anything is spent
    training = add_state_rows(settings, training, release)  # which costs nothing
    training = add_hint_rows(settings, training, release, consent)
    output = training.output or settings.workspace / "checkpoints"
    placed = training.model_copy(update={"output": Path(output).resolve()})
    return TrainingJob(release=release, settings=placed, tracemill_version=__version__)


def _show(meter: ProgressMeter, said: dict[str, Any]) -> None:
    if "phase" in said:
        meter.begin(f"train: {said['phase']}", 0)
    elif "step" in said:
        if meter.total != said["total"]:
            meter.begin("train: steps", said["total"])
        meter.advance(said["step"] - meter.done)
        if "loss" in said:
            meter.note = f"loss {said['loss']:.4f}"


def train_after_release(settings: RunSettings, outcome: ReleaseOutcome) -> dict[str, Any] | None:
    """Train on a run's release; return the figures, or `note` or `failed` with the reason for none.

    Returns None if no training is configured. An interrupted training is resumed, even if the release is an
    old one. Raises only KeyboardInterrupt: the release is kept whatever happens here.
    """
    training = settings.training
    if training is None or not training.after_release or outcome.path is None:
        return None
    try:
        release = resolve_training_release(outcome.path, settings.workspace / "releases")
        asks = outcome.created and (release.simulated == "none" or training.simulated)
        job = _job(settings, training, release, HintConsent(asks, accept_by="`tracemill train --yes`"))
        if not outcome.created and not is_unfinished(job, trainings_folder(settings)):
            return {"note": "none: no new version"}
        if release.simulated != "none" and not training.simulated:
            return {"note": _SIMULATED}
        return _train_and_decide(settings, job)
    except TracemillError as error:
        return {"failed": str(error)}
    except Exception as error:
        return {"failed": type(error).__name__}


def figures(trained: TrainingResult) -> dict[str, Any]:
    """Return the figures of a training for the closing table and `--json`."""
    report = trained.report
    losses = [entry["loss"] for entry in report["losses"]]
    return {
        "path": str(trained.path),
        "created": trained.created,
        "method": report.get("settings", {}).get("method"),
        "release": f"{report['release']['name']}@{report['release']['version']}",
        "simulated": report["release"]["simulated"],
        "steps": report["steps"],
        "rows": report["rows"],
        "whole_at": report.get("whole_at", {}),
        "first_loss": losses[0] if losses else None,
        "last_loss": losses[-1] if losses else None,
        "validation": report["validation"],
        "warnings": report.get("warnings", []),
        **({"channels": report["channels"]} if "channels" in report else {}),
        "seconds": report["seconds"],
        "device": report["device"],
    }


def why_not_trained(found: dict[str, Any]) -> str:
    """Return why there is no checkpoint; empty if there is one."""
    return f"failed: {found['failed']}" if "failed" in found else found.get("note", "")


def training_table_rows(found: dict[str, Any]) -> list[tuple[str, str]]:
    """Format `figures` as rows of a closing table."""
    if said := why_not_trained(found):
        return [("training", said)]
    if not found["rows"]:
        return _command_rows(found)
    used = found["rows"]["train"]
    rows = f"{used['used']:,} used, {used['cut']:,} of them cut to fit"
    if used.get("weight") is not None:
        rows += f"\nsum of weights {used['weight']:,.1f}"
    rows += "".join(f"\n{count:,} dropped: {why}" for why, count in used["dropped"].items())
    if (used["cut"] or used["dropped"]) and found["whole_at"]:
        whole = (f"{count:,} at {int(window):,}" for window, count in found["whole_at"].items())
        rows += f"\nfit whole in max_length: {', '.join(whole)}"
    if used["parted"]:
        rows += f"\n{used['parted']:,} whose prompt the chat template renders differently before an answer"
    loss = (
        f"{found['first_loss']:.4f} to {found['last_loss']:.4f}" if found["first_loss"] is not None else "-"
    )
    method = f" with {found['method']}" if found.get("method") else ""
    made = f"{found['steps']:,} steps{method} in {found['seconds']:,.0f} s on {found['device']}"
    if found["simulated"] in ("some", "all"):
        made += f"\n{found['simulated']} rows are simulated"
    there = "" if found["created"] else "\nalready there"
    return [
        ("training", f"{found['path']}{there}\n{made}"),
        *(_channel_rows(found["channels"]) if "channels" in found else [("training rows", rows)]),
        ("loss", loss),
        *([] if "channels" in found else [("validation", _validation(found))]),
        *(("training warning", line) for line in found.get("warnings", ())),
        *_decision_rows(found),
    ]


def _channel_rows(channels: dict[str, dict[str, Any]]) -> list[tuple[str, str]]:
    """Format the training rows of each channel, or the reason that it is off."""
    kinds = {"grpo": "tasks, prompts or states", "sdpo": "hint rows", "replay": "pairs"}
    rows = []
    for name, channel in channels.items():
        if channel["off"]:
            rows.append((f"channel {name}", f"off: {channel['off']}"))
            continue
        said = f"weight {channel['weight']:g}, {channel['examples']:,} {kinds[name]}"
        said += "".join(f"\n{line}" for line in origin_lines(channel))
        dropped = "".join(f"\n{count:,} dropped: {why}" for why, count in channel["dropped"].items())
        rows.append((f"channel {name}", said + dropped))
    return rows


def _decision_rows(found: dict[str, Any]) -> list[tuple[str, str]]:
    return decision_table_rows(found["decision"]) if found.get("decision") else []


def _command_rows(found: dict[str, Any]) -> list[tuple[str, str]]:
    """Format the figures of a training by a command, of which only the checkpoint is known."""
    there = "" if found["created"] else "\nalready there"
    made = ("training", f"{found['path']}{there}\na command in {found['seconds']:,.0f} s")
    return [made, *_decision_rows(found)]


def _validation(found: dict[str, Any]) -> str:
    """Format the result on the held-out rows, or the reason for none."""
    if not (held := found["rows"].get("validation")):
        return "none: the release has no row in split `validation`"
    dropped = "".join(f"\n{count:,} dropped: {why}" for why, count in held["dropped"].items())
    if not found["validation"]:
        return f"none: no row of split `validation` fits{dropped}"
    first, last = found["validation"][0], found["validation"][-1]
    said = f"loss {first['loss']:.4f} to {last['loss']:.4f} on {held['used']:,} rows"
    if (right := last.get("rewards/accuracies")) is not None:
        said += f", {right:.0%} of pairs ranked right"
    elif (right := last.get("mean_token_accuracy")) is not None:
        said += f", {right:.0%} of tokens predicted"
    return said + dropped
