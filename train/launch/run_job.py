"""The process of a launched training: `python -m tracemill.train.launch.run_job [FOLDER]`.

With a folder, `launch.json` in it is the job. It writes `progress.jsonl`, and `outcome.json` at the end; the
checkpoint is in `job.target`. Without one, the job is in the environment variable `TRACEMILL_JOB`, and the
checkpoint goes to the model repository `training.hub`, tagged with `TRACEMILL_KEY`. The exit code is 0 if
there is a checkpoint, else 1. On SIGTERM the training saves; a second SIGTERM ends it at once.
"""

import json
import os
import signal
import sys
import tempfile
from pathlib import Path
from typing import Any

from tracemill.records.errors import TracemillError
from tracemill.records.storage.atomic_files import write_json
from tracemill.train.launch.launcher import LAUNCH, OUTCOME, PROGRESS, JobState
from tracemill.train.launch.run_command import run_command
from tracemill.train.start_child import run_training
from tracemill.train.training_job import TrainingJob


def run_folder(folder: Path) -> JobState:
    """Run the job of a folder and write its outcome; return how it ended."""
    launch: dict[str, Any] = json.loads((folder / LAUNCH).read_bytes())
    job = TrainingJob.model_validate(launch["job"])
    (folder / OUTCOME).unlink(missing_ok=True)
    state, reason = JobState.SUCCEEDED, ""
    with (folder / PROGRESS).open("a", encoding="utf-8", buffering=1) as lines:

        def on_progress(progress: dict[str, Any]) -> None:
            lines.write(json.dumps(progress) + "\n")

        try:
            if command := launch.get("command"):
                run_command(job, command, Path(launch["directory"]))
            else:
                run_training(job, on_progress)
        except TracemillError as error:
            state, reason = JobState.FAILED, str(error)
        except KeyboardInterrupt:
            state, reason = JobState.CANCELLED, "interrupted"
        except Exception as error:
            state, reason = JobState.FAILED, type(error).__name__
            sys.excepthook(type(error), error, error.__traceback__)
    write_json(folder / OUTCOME, {"state": state, "reason": reason})
    return state


def run_remotely(environ: dict[str, str]) -> None:
    """Train on a machine that shares no files with the caller, and upload the checkpoint to the Hub."""
    from tracemill.train.model_repository import ModelRepository

    given = TrainingJob.model_validate_json(environ["TRACEMILL_JOB"])
    with tempfile.TemporaryDirectory() as folder:
        settings = given.settings.model_copy(update={"output": Path(folder)})
        assert settings.hub is not None
        made = run_training(given.model_copy(update={"settings": settings}), _print_progress)
        models = ModelRepository(settings.hub)
        models.tag(environ["TRACEMILL_KEY"], models.push(made.path, given.name))


def _print_progress(progress: dict[str, Any]) -> None:
    print(json.dumps(progress), flush=True)  # noqa: T201


def main(arguments: list[str]) -> int:
    """Run one job and return its exit code."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    if arguments:
        return 0 if run_folder(Path(arguments[0])) == JobState.SUCCEEDED else 1
    try:
        run_remotely(dict(os.environ))
    except TracemillError as error:
        sys.stderr.write(f"tracemill: {error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
