"""The parent's side of a training: what can be told without torch, the child process, and its end."""

import fcntl
import importlib.util
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from tracemill.records.errors import TrainingError
from tracemill.records.storage.atomic_files import last_log_file_line
from tracemill.train.child_environment import child_environment
from tracemill.train.registry import TRAINING_METHODS
from tracemill.train.training_job import LESS_MEMORY, LOG, Job, Told, Trained, read_report
from tracemill.train.training_settings import TrainingSettings

INSTALL = "pip install torch==2.13.0 'tracemill[train]'"
STOP_S = 120.0
"""How long a training that is stopped may take to finish its step and save."""
_LOCKED_S = 15.0


def check_settings(settings: TrainingSettings) -> None:
    """Raises TrainingError for what can be known to be wrong without loading torch: a folder or a package
    that is not there."""
    check_places(settings)
    wanted = TRAINING_METHODS.get(settings.method).packages
    for name in (*wanted, *(("peft",) if settings.lora else ())):
        if importlib.util.find_spec(name) is None:
            raise TrainingError(f"{name} is not installed", "the extra `train`", INSTALL)


def check_places(settings: TrainingSettings) -> None:
    """Raises TrainingError for a model or chat template that is named as a path and is not there."""
    model = Path(settings.model)
    if model.is_absolute() and not (model / "config.json").is_file():
        raise TrainingError(f"{model} holds no model", "a folder with config.json, or an id of the Hub")
    template = settings.chat_template
    if template is not None and not template.is_file():
        raise TrainingError(f"{template} is not there", "a Jinja file as training.chat_template")


def finished_training_process(job: Job) -> Trained | None:
    """The checkpoint of this job where it is there. Raises TrainingError where another one is in its
    place."""
    if not job.target.exists():
        return None
    report = read_report(job.target)
    if report is None or report.get("fingerprint") != job.fingerprint():
        raise TrainingError(
            f"{job.target} holds something else than this training would give",
            "a place that is free",
            "set another training.output, or remove it",
        )
    return Trained(job.target, report, False)


def is_training_process_unfinished(job: Job) -> bool:
    """Whether a training of this job was begun and has not ended."""
    return (job.partial / "job.json").exists()


def run_training(job: Job, told: Told) -> Trained:
    """Trains in a child process, `told` of its progress; a training that was cut off goes on.

    The checkpoint appears in `job.target`, whole or not at all. Raises TrainingError where it cannot start
    or fails, KeyboardInterrupt after the child has saved what it had.
    """
    check_settings(job.settings)
    if (there := finished_training_process(job)) is not None:
        return there
    partial = job.partial
    with _held(partial) as lock:
        if read_report(partial / "final") is None:
            _write_job(job)
            _outcome(partial, *_run(partial, lock, told, _environment(job)))
        report = read_report(partial / "final")
        assert report is not None
        (partial / "final").rename(job.target)
        shutil.rmtree(partial)
    return Trained(job.target, report, True)


class LocalProcess:
    """The launcher `local`: a process of its own on this machine."""

    def check(self, settings: TrainingSettings) -> None:
        """Raise TrainingError as `check_settings` does."""
        check_settings(settings)

    def run(self, job: Job, told: Told) -> Trained:
        """Train in a child process, as `run_training` does."""
        return run_training(job, told)


LOCAL = LocalProcess()


def _write_job(job: Job) -> None:
    (job.partial / "outcome.json").unlink(missing_ok=True)
    (job.partial / "job.json").write_text(job.model_dump_json(), encoding="utf-8")


@contextmanager
def _held(partial: Path) -> Iterator[int]:
    """The folder of an unfinished training, for this process and its child alone; gone again where the
    training has saved nothing. Gives the lock's descriptor, which the child holds too."""
    made = [folder for folder in (partial.parent, partial.parent.parent) if not folder.exists()]
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
                    for folder in made:
                        folder.rmdir()
    finally:
        os.close(lock)


def _lock(lock: int, partial: Path) -> None:
    """A child whose parent was killed may be ending still, so it is waited for a little."""
    until = time.monotonic() + _LOCKED_S
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
    return any((partial / "checkpoints").glob("checkpoint-*/saved.json")) or (partial / "final").exists()


def _run(folder: Path, lock: int, told: Told, environment: dict[str, str]) -> tuple[int, bool]:
    """Exit code of the child, and whether it was interrupted. Its own session keeps a Ctrl-C from it: it is
    told to stop, and killed at the second press."""
    command = [sys.executable, "-P", "-m", "tracemill.train.trl.worker", str(folder.resolve())]
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
                    told(json.loads(line))
            return child.wait(), False
        except KeyboardInterrupt:
            told({"phase": "saving"})
            child.terminate()
            with suppress(subprocess.TimeoutExpired):
                return child.wait(STOP_S), True
            raise
        finally:
            if child.poll() is None:
                child.kill()


def _outcome(partial: Path, code: int, interrupted: bool) -> None:
    """Raises what the child's end comes to; nothing where the checkpoint is there."""
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
    again = "the same command goes on from what was saved" if _saved_anything(partial) else ""
    raise TrainingError(_ended(outcome, code, partial / LOG), do=again)


def _ended(outcome: dict[str, Any] | None, code: int, log: Path) -> str:
    if outcome is None:
        how = (
            f"was ended by {_signal(-code)}"
            if code < 0
            else f"ended with code {code}{last_log_file_line(log)}"
        )
        return f"the training process {how}"
    if "stopped" in outcome:
        return f"the training process was told to stop (SIGTERM) at step {outcome['stopped']}"
    return f"training failed: {outcome['failed']}"


def _signal(number: int) -> str:
    name = signal.Signals(number).name
    if number == signal.SIGKILL:
        name += f", as where memory runs out ({LESS_MEMORY})"
    return name


def _environment(job: Job) -> dict[str, str]:
    """What the child sees: what training needs, and no network where all it needs is here."""
    passed = child_environment(os.environ, job.settings.environment)
    passed |= {"HF_HUB_DISABLE_TELEMETRY": "1", "DO_NOT_TRACK": "1", "PYTHONUTF8": "1"}
    passed |= {"TOKENIZERS_PARALLELISM": "false", "HF_HUB_DISABLE_PROGRESS_BARS": "1"}
    if job.release.path is not None and Path(job.settings.model).is_absolute():
        passed |= {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1"}
    return passed
