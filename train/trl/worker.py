"""The training process: `python -m tracemill.train.trl.worker FOLDER`.

It reads `job.json` in the folder. Progress goes to stdout as JSON lines, output of libraries to stderr, which
is the training log. The outcome is the file `outcome.json`: `{}` if the checkpoint is in `final/`, `refused`
or `failed` with a message, or `stopped` with the step. The process ends when its stdin closes, as its parent
is gone then. On SIGTERM it finishes its step and saves. Of several processes that accelerate started, the
first writes.
"""

import errno
import json
import os
import sys
import threading
import traceback
from pathlib import Path
from typing import Any, TextIO

from tracemill.records.errors import TrainingError, error_chain
from tracemill.records.storage.atomic_files import write_json
from tracemill.train.training_job import LESS_MEMORY, ProgressCallback, TrainingJob
from tracemill.train.trl.stopping import StopSignal, is_main_process


def main(folder: Path) -> int:
    """Run one job, write its outcome (which may be a failure) and return 0."""
    on_progress = _redirect_stdout()
    stop = StopSignal()
    threading.Thread(target=_exit_when_stdin_closes, daemon=True).start()
    job = TrainingJob.model_validate_json((folder / "job.json").read_bytes())
    try:
        from tracemill.train.trl.run_trainer import run_trainer

        outcome = run_trainer(job, folder, on_progress, stop)
    except TrainingError as error:
        outcome = {"refused": str(error)}
    except Exception as error:
        traceback.print_exc()
        outcome = {"failed": worker_error_text(error)}
    if not is_main_process():
        return 0 if outcome == {} or "stopped" in outcome else 1
    write_json(folder / "outcome.json", outcome)
    return 0


def worker_error_text(error: Exception) -> str:
    """Return type and first line of an error; for a full disk or memory, with advice."""
    if any(map(_is_disk_full, error_chain(error))):
        return "the disk is full; make room where training.output is"
    first = (str(error).splitlines() or [""])[0][:200]
    if type(error).__name__ == "OutOfMemoryError":
        return f"out of memory on the GPU; {LESS_MEMORY}"
    if isinstance(error, MemoryError) or "DefaultCPUAllocator" in str(error):
        return f"out of memory; {LESS_MEMORY}"
    return f"{type(error).__name__}: {first}"


def _is_disk_full(error: BaseException) -> bool:
    full = {errno.ENOSPC, errno.EDQUOT}  # errors of safetensors have a text and no number
    return getattr(error, "errno", None) in full or os.strerror(errno.ENOSPC) in str(error)


def _redirect_stdout() -> ProgressCallback:
    """Return a callback that writes to the real stdout, and redirect all other stdout to stderr."""
    lines: TextIO = os.fdopen(os.dup(1), "w", buffering=1, encoding="utf-8")
    os.dup2(2, 1)

    def on_progress(progress: dict[str, Any]) -> None:
        if not is_main_process():
            return
        lines.write(json.dumps(progress) + "\n")

    return on_progress


def _exit_when_stdin_closes() -> None:
    sys.stdin.buffer.read()
    os._exit(1)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
