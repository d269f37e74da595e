"""Training on a release, asked for by itself or after a run that wrote one."""

from pathlib import Path
from typing import Any

from tracemill.flows.config.run_settings import RunSettings
from tracemill.flows.run_state.run_summary import ReleaseOutcome
from tracemill.flows.runtime.interrupts import terminable
from tracemill.flows.runtime.progress import Meter, progress_meter
from tracemill.flows.training.resolve_release import resolve_training_release
from tracemill.records.errors import ConfigError, TracemillError
from tracemill.records.version import __version__
from tracemill.train.launchers import LAUNCHERS
from tracemill.train.start_child import (
    check_places,
    finished_training_process,
    is_training_process_unfinished,
)
from tracemill.train.training_job import Job, Trained, TrainingRelease, check_config
from tracemill.train.training_settings import TrainingSettings


def training_settings_of_run(settings: RunSettings) -> TrainingSettings:
    """The `[training]` table. Raises ConfigError where there is none, TrainingError where the model or the
    chat template is a path that is not there."""
    if settings.training is None:
        raise ConfigError("no model is given", "training.model", "set it, or use --model")
    check_places(settings.training)
    return settings.training


@terminable()
def train_on(settings: RunSettings, asked: str | None) -> Trained:
    """Train on the release `asked` names, by default the newest of the configuration's name."""
    training = training_settings_of_run(settings)
    release = resolve_training_release(asked or settings.release.name, settings.workspace / "releases")
    return _train(settings, training, release)


def _train(settings: RunSettings, training: TrainingSettings, release: TrainingRelease) -> Trained:
    if release.configs is not None:
        check_config(release, training.method, release.configs)
    job, launcher = _job(settings, training, release), LAUNCHERS.get(training.launcher)
    launcher.check(job.settings)
    if (there := finished_training_process(job)) is not None:
        return there
    with progress_meter(None) as gauge:
        gauge.begin("train: starting", 0)
        return launcher.run(job, lambda said: _show(gauge, said))


def _job(settings: RunSettings, training: TrainingSettings, release: TrainingRelease) -> Job:
    output = training.output or settings.workspace / "checkpoints"
    placed = training.model_copy(update={"output": Path(output).resolve()})
    return Job(release=release, settings=placed, tracemill_version=__version__)


def _show(gauge: Meter, said: dict[str, Any]) -> None:
    if "phase" in said:
        gauge.begin(f"train: {said['phase']}", 0)
    elif "step" in said:
        if gauge.total != said["total"]:
            gauge.begin("train: steps", said["total"])
        gauge.advance(said["step"] - gauge.done)
        if "loss" in said:
            gauge.note = f"loss {said['loss']:.4f}"


@terminable()
def train_after_release(settings: RunSettings, outcome: ReleaseOutcome) -> dict[str, Any] | None:
    """What a run's release is followed by: the figures of the training, why there was none (`note`) or what
    went wrong (`failed`); None where none is asked for. A training that was cut off goes on, also where the
    release is an old one. Never raises but for a Ctrl-C: the release is there whatever becomes of this."""
    training = settings.training
    if training is None or not training.after_release or outcome.path is None:
        return None
    try:
        release = resolve_training_release(outcome.path, settings.workspace / "releases")
        if not outcome.created and not is_training_process_unfinished(_job(settings, training, release)):
            return {"note": "none: no new version"}
        if release.simulated != "none" and not training.simulated:
            return {"note": "none: the release holds simulated rows, and training.simulated is not set"}
        return figures(_train(settings, training, release))
    except TracemillError as error:
        return {"failed": str(error)}
    except Exception as error:
        return {"failed": type(error).__name__}


def figures(trained: Trained) -> dict[str, Any]:
    """What the closing table and `--json` say of a training."""
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
        "first_loss": losses[0] if losses else None,
        "last_loss": losses[-1] if losses else None,
        "validation": report["validation"],
        "warnings": report.get("warnings", []),
        "seconds": report["seconds"],
        "device": report["device"],
    }


def why_not_trained(found: dict[str, Any]) -> str:
    """Why there is no checkpoint; empty where there is one."""
    return f"failed: {found['failed']}" if "failed" in found else found.get("note", "")


def training_table_rows(found: dict[str, Any]) -> list[tuple[str, str]]:
    """`figures` as lines of a closing table."""
    if said := why_not_trained(found):
        return [("training", said)]
    used = found["rows"]["train"]
    rows = f"{used['used']:,} used, {used['cut']:,} of them without their oldest turns"
    if used.get("weight") is not None:
        rows += f"\nby their weights as much as {used['weight']:,.1f} whole ones"
    rows += "".join(f"\n{count:,} dropped: {why}" for why, count in used["dropped"].items())
    if used["parted"]:
        rows += f"\n{used['parted']:,} whose prompt the chat template writes otherwise before an answer"
    loss = (
        f"{found['first_loss']:.4f} to {found['last_loss']:.4f}" if found["first_loss"] is not None else "-"
    )
    method = f" with {found['method']}" if found.get("method") else ""
    made = f"{found['steps']:,} steps{method} in {found['seconds']:,.0f} s on {found['device']}"
    if found["simulated"] in ("some", "all"):
        made += f"\n{found['simulated']} rows of it are simulated"
    there = "" if found["created"] else "\nit was there already"
    return [
        ("training", f"{found['path']}{there}\n{made}"),
        ("training rows", rows),
        ("loss", loss),
        ("validation", _validation(found)),
        *(("training warning", line) for line in found.get("warnings", ())),
    ]


def _validation(found: dict[str, Any]) -> str:
    """What the rows that were held out say, or why there is nothing."""
    if not (held := found["rows"].get("validation")):
        return "none: the release has no row in split `validation`"
    dropped = "".join(f"\n{count:,} dropped: {why}" for why, count in held["dropped"].items())
    if not found["validation"]:
        return f"none: no row of split `validation` fits{dropped}"
    first, last = found["validation"][0], found["validation"][-1]
    said = f"loss {first['loss']:.4f} to {last['loss']:.4f} on {held['used']:,} rows"
    if (right := last.get("rewards/accuracies")) is not None:
        said += f", {right:.0%} of them the right way round"
    elif (right := last.get("mean_token_accuracy")) is not None:
        said += f", {right:.0%} of their tokens the likeliest"
    return said + dropped
