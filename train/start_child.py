"""Run a training in a child process: checks without torch, the start of the process, and its errors."""

import fcntl
import importlib.util
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from tracemill.records.errors import TrainingError
from tracemill.records.storage.atomic_files import last_log_file_line
from tracemill.train.child_environment import child_environment
from tracemill.train.composer_settings import ComposerSettings
from tracemill.train.registry import TRAINING_METHODS
from tracemill.train.training_job import (
    LESS_MEMORY,
    LOG,
    REPORT,
    ProgressCallback,
    TrainingJob,
    TrainingResult,
    read_report,
)
from tracemill.train.training_settings import TrainingSettings

INSTALL = "pip install torch==2.13.0 'tracemill[train]'"
STOP_S = 120.0
"""Seconds that an interrupted training may take to finish its step and save."""
_WORKER = "tracemill.train.trl.worker"
OUTPUT = "output"
"""Folder that a command of the user's writes its checkpoint into."""
_LOCK_TIMEOUT_S = 15.0


class MissingPackageError(TrainingError):
    """A package that a training needs is not installed on this machine."""


def check_settings(settings: TrainingSettings) -> None:
    """Raise TrainingError for a missing folder or package, without loading torch."""
    check_places(settings)
    check_packages(settings)


def check_packages(settings: TrainingSettings) -> None:
    """Raise MissingPackageError if a package that the method needs is not installed, without loading any."""
    packages = TRAINING_METHODS.get(settings.method).packages
    optional = (("peft", settings.lora is not None), ("tensorboard", settings.tensorboard))
    for name in (*packages, *(name for name, wanted in optional if wanted)):
        if importlib.util.find_spec(name) is None:
            raise MissingPackageError(f"{name} is not installed", "the extra `train`", INSTALL)
    quantized = settings.lora is not None and settings.lora.quantize != "none"
    if quantized and importlib.util.find_spec("bitsandbytes") is None:
        raise MissingPackageError(
            "bitsandbytes is not installed",
            'it for training.lora.quantize = "4bit"',
            "pip install bitsandbytes",
        )


def check_model_folder(model: str, files: Sequence[str] = ("config.json",)) -> None:
    """Raise TrainingError for a path with none of the files of a model; else it is an id of the Hub."""
    folder = Path(model)
    if folder.is_absolute() and not any((folder / name).is_file() for name in files):
        raise TrainingError(
            f"{folder} holds no model", f"a folder with {' or '.join(files)}, or an id of the Hub"
        )


def check_places(settings: TrainingSettings) -> None:
    """Raise TrainingError if the path of a model, a chat template, tasks or rows does not exist."""
    check_model_folder(settings.model)
    template, configuration = settings.chat_template, settings.accelerate
    if template is not None and not template.is_file():
        raise TrainingError(f"{template} does not exist", "a Jinja file as training.chat_template")
    if configuration is not None and not configuration.is_file():
        raise TrainingError(
            f"{configuration} does not exist", "a configuration of accelerate as training.accelerate"
        )
    if settings.composer is not None:
        _check_composer_places(settings.composer)


def _check_composer_places(composer: ComposerSettings) -> None:
    for key in ("prompts", "states", "hints"):
        file = getattr(composer, key)
        if file is not None and not file.is_file():
            raise TrainingError(f"{file} does not exist", f"a JSON Lines file as training.composer.{key}")
    if composer.prm is not None and not (composer.prm / REPORT).is_file():
        raise TrainingError(f"{composer.prm} holds no step scorer", "a checkpoint as training.composer.prm")
    tasks = composer.tasks
    if tasks is not None and not any(tasks.glob("**/task.toml")):
        raise TrainingError(
            f"{tasks} holds no task", "folders that `tracemill env make` wrote, as training.composer.tasks"
        )


def finished_training(job: TrainingJob) -> TrainingResult | None:
    """Return the checkpoint of a job, None if there is none.

    Raises TrainingError if `job.target` holds something else.
    """
    if not job.target.exists():
        return None
    report = read_report(job.target)
    if report is None or report.get("fingerprint") != job.fingerprint():
        raise TrainingError(
            f"{job.target} holds another training",
            "a folder that does not exist",
            "set another training.output, or remove it",
        )
    return TrainingResult(job.target, report, False)


def has_unfinished_training(job: TrainingJob) -> bool:
    """Return whether a training of this job was started and has not finished."""
    return (job.partial / "job.json").exists()


def run_training(job: TrainingJob, on_progress: ProgressCallback) -> TrainingResult:
    """Train in a child process, or resume an unfinished training of the same job.

    The checkpoint appears in `job.target`, whole or not at all. Raises TrainingError if the training cannot
    start or fails, and KeyboardInterrupt after the child has saved.
    """
    check_settings(job.settings)
    if (finished := finished_training(job)) is not None:
        return finished
    partial = job.partial
    with locked_folder(partial) as lock:
        if read_report(partial / "final") is None:
            (partial / "outcome.json").unlink(missing_ok=True)
            (partial / "job.json").write_text(job.model_dump_json(), encoding="utf-8")
            code, interrupted = _run_child(
                partial, lock, on_progress, training_environment(job), job.settings
            )
            _check_outcome(partial, code, interrupted)
        report = read_report(partial / "final")
        assert report is not None
        (partial / "final").rename(job.target)
        shutil.rmtree(partial)
    return TrainingResult(job.target, report, True)


@contextmanager
def locked_folder(partial: Path) -> Iterator[int]:
    """Create and lock the folder of an unfinished training; remove it if nothing was saved.

    Yields the descriptor of the lock, which the child inherits.
    """
    created = [folder for folder in (partial.parent, partial.parent.parent) if not folder.exists()]
    try:
        partial.mkdir(parents=True, exist_ok=True)
        lock = os.open(partial / ".lock", os.O_RDWR | os.O_CREAT)
    except OSError as error:
        raise TrainingError(
            f"{partial.parent} cannot be written ({error.strerror})", "a folder with write permission"
        ) from error
    try:
        _lock(lock, partial)
        try:
            yield lock
        finally:
            if partial.exists() and not _saved_anything(partial):
                shutil.rmtree(partial)
                with suppress(OSError):
                    for folder in created:
                        folder.rmdir()
    finally:
        os.close(lock)


def _lock(lock: int, partial: Path) -> None:
    """Lock a descriptor; wait a little, as the child of a killed parent may still be ending."""
    until = time.monotonic() + _LOCK_TIMEOUT_S
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if time.monotonic() > until:
                raise TrainingError(
                    f"another process is training in {partial}", "one at a time", "wait for it"
                ) from None
            time.sleep(0.2)


def _saved_anything(partial: Path) -> bool:
    saved = any((partial / "checkpoints").glob("checkpoint-*/saved.json")) or (partial / "final").exists()
    return saved or any((partial / OUTPUT).glob("*"))


def _run_child(
    folder: Path,
    lock: int,
    on_progress: ProgressCallback,
    environment: dict[str, str],
    settings: TrainingSettings,
) -> tuple[int, bool]:
    """Return the exit code of the child and whether it was interrupted.

    The child has its own session, so that Ctrl-C does not reach it: it gets SIGTERM, and SIGKILL at a second
    Ctrl-C.
    """
    command = [sys.executable, "-P", "-m", *_accelerate(settings), _WORKER, str(folder.resolve())]
    with (
        (folder / LOG).open("ab") as log,
        subprocess.Popen(
            command,
            cwd=folder,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            pass_fds=(lock,),
            start_new_session=True,
        ) as child,
    ):
        try:
            assert child.stdout is not None
            for line in child.stdout:
                with suppress(ValueError):
                    on_progress(json.loads(line))
            return child.wait(), False
        except KeyboardInterrupt:
            on_progress({"phase": "saving"})
            child.terminate()
            with suppress(subprocess.TimeoutExpired):
                return child.wait(STOP_S), True
            raise
        finally:
            if child.poll() is None:
                child.kill()


def _accelerate(settings: TrainingSettings) -> list[str]:
    """Return the command before the worker's module: accelerate, if there are several processes."""
    if settings.processes == 1:
        return []
    if settings.accelerate is not None:
        flags = [f"--config_file={settings.accelerate.resolve()}"]
    else:
        flags = ["--multi_gpu", "--num_machines=1", "--mixed_precision=no", "--dynamo_backend=no"]
    flags += [f"--num_processes={settings.processes}", "--main_process_port=0"]
    return ["accelerate.commands.launch", *flags, "--module"]


def _check_outcome(partial: Path, code: int, interrupted: bool) -> None:
    """Raise the error of the child's end; return if there is a checkpoint."""
    try:
        outcome = json.loads((partial / "outcome.json").read_bytes())
    except OSError:
        outcome = None
    if outcome == {}:
        return
    if interrupted:
        raise KeyboardInterrupt
    if outcome is not None and "refused" in outcome:
        raise TrainingError(outcome["refused"])
    resume = "the same command resumes from what was saved" if _saved_anything(partial) else ""
    raise TrainingError(_failure_text(outcome, code, partial / LOG), do=resume)


def _failure_text(outcome: dict[str, Any] | None, code: int, log: Path) -> str:
    if outcome is not None and "stopped" in outcome:
        return f"the training process was told to stop (SIGTERM) at step {outcome['stopped']}"
    if outcome is not None:
        return f"training failed: {outcome['failed']}"
    if code >= 0:
        return f"the training process ended with code {code}{last_log_file_line(log)}"
    name = signal.Signals(-code).name
    memory = f", as where memory runs out ({LESS_MEMORY})" if -code == signal.SIGKILL else ""
    return f"the training process was ended by {name}{memory}"


def training_environment(job: TrainingJob) -> dict[str, str]:
    """Return the environment of the child; it is offline if model and release are local."""
    offline = job.release.path is not None and Path(job.settings.model).is_absolute()
    return model_environment(job.settings, offline)


def model_environment(settings: TrainingSettings, offline: bool) -> dict[str, str]:
    """Return the environment of a child that loads models."""
    passed = child_environment(os.environ, settings.environment)
    passed |= {"HF_HUB_DISABLE_TELEMETRY": "1", "DO_NOT_TRACK": "1", "PYTHONUTF8": "1"}
    passed |= {"TOKENIZERS_PARALLELISM": "false", "HF_HUB_DISABLE_PROGRESS_BARS": "1"}
    if offline:
        passed |= {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1"}
    return passed
