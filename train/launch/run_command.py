"""Run a shell command of the user's as the trainer of a job."""

import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from tracemill.records.errors import TrainingError
from tracemill.train.child_environment import child_environment
from tracemill.train.start_child import OUTPUT, STOP_S, locked_folder
from tracemill.train.training_job import REPORT, SCHEMA, TrainingJob


def command_environment(job: TrainingJob) -> dict[str, str]:
    """Return the variables that give a command its training data and the place of its checkpoint."""
    release = job.release
    return {
        "TRACEMILL_RELEASE": release.place,
        "TRACEMILL_RELEASE_NAME": release.name,
        "TRACEMILL_RELEASE_VERSION": release.version,
        "TRACEMILL_RELEASE_DIGEST": release.digest,
        "TRACEMILL_MODEL": job.settings.model,
        "TRACEMILL_METHOD": job.settings.method,
        "TRACEMILL_OUTPUT": str(job.partial / OUTPUT),
    }


def run_command(job: TrainingJob, command: str, directory: Path) -> None:
    """Run the command in a directory, with a minimal environment; its output becomes the checkpoint.

    Raises TrainingError if it fails or leaves no file, KeyboardInterrupt once it has ended after an
    interrupt.
    """
    began = time.monotonic()
    output = job.partial / OUTPUT
    with locked_folder(job.partial) as lock:
        output.mkdir(exist_ok=True)
        environment = child_environment(os.environ, job.settings.environment) | command_environment(job)
        code = _run(command, directory, environment, lock)
        if code != 0:
            raise TrainingError(
                f"the training command ended with exit code {code}",
                "exit code 0",
                "read its output in the log",
            )
        if not any(output.iterdir()):
            raise TrainingError(
                "the command left no file in $TRACEMILL_OUTPUT", "a checkpoint in that folder"
            )
        report = _report(job, output, time.monotonic() - began)
        (output / REPORT).write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
        output.rename(job.target)
        shutil.rmtree(job.partial)


def _run(command: str, directory: Path, environment: dict[str, str], lock: int) -> int:
    """Return the exit code of the command; it runs in a process group of its own."""
    process = None
    try:
        with _interrupts_held_back():
            process = subprocess.Popen(
                ["/bin/sh", "-c", command],
                cwd=directory,
                env=environment,
                stdin=subprocess.DEVNULL,
                pass_fds=(lock,),
                start_new_session=True,
            )
        return process.wait()
    except KeyboardInterrupt:
        if process is not None:
            _signal_group(process.pid, signal.SIGTERM)
            with suppress(subprocess.TimeoutExpired):
                process.wait(STOP_S)
        raise
    finally:
        if process is not None:
            _signal_group(process.pid, signal.SIGKILL)
            process.wait()


@contextmanager
def _interrupts_held_back() -> Iterator[None]:
    """Handle SIGINT and SIGTERM at the end of the block: during a process start they could be lost."""
    held: list[int] = []
    handlers = {
        number: signal.signal(number, lambda number, _: held.append(number))
        for number in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        if held:
            signal.raise_signal(held[0])


def _signal_group(group: int, how: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        os.killpg(group, how)


def _report(job: TrainingJob, output: Path, seconds: float) -> dict[str, Any]:
    """Return a `training.json`; one that the command wrote is kept under `trainer`."""
    try:
        own = json.loads((output / REPORT).read_bytes())
    except (OSError, ValueError):
        own = None
    return {
        "schema": SCHEMA,
        "fingerprint": job.fingerprint(),
        "release": job.release.model_dump(mode="json"),
        "settings": job.settings.model_dump(mode="json"),
        "rows": {},
        "steps": None,
        "losses": [],
        "validation": [],
        "warnings": [],
        "seconds": round(seconds, 1),
        "device": "command",
        "trainer": own,
    }
