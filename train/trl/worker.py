"""The child process that trains: `python -m tracemill.train.trl.worker FOLDER`, with torch in it.

`job.json` in the folder says what to do. Progress goes to stdout, a JSON object a line; what the libraries
print goes to stderr, the training's log. The outcome is one JSON file, `outcome.json`: `{}` where the
checkpoint lies in `final/`, `refused` or `failed` with a line for people, or `stopped`. It ends at once where
its stdin does: whoever started it is gone. SIGTERM lets it finish its step and save.
"""

import errno
import json
import os
import sys
import threading
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TextIO

from tracemill.records.errors import TrainingError
from tracemill.train.training_job import LESS_MEMORY, Job
from tracemill.train.trl.stopping import Stopping, Tell


def main(folder: Path) -> int:
    """Do one job; 0 where an outcome was written, be it a failure."""
    tell = _private_stdout()
    stopping = Stopping()
    threading.Thread(target=_end_with_stdin, daemon=True).start()
    job = Job.model_validate_json((folder / "job.json").read_bytes())
    try:
        from tracemill.train.trl.run_trainer import run_trainer

        outcome = run_trainer(job, folder, tell, stopping)
    except TrainingError as error:
        outcome = {"refused": str(error)}
    except Exception as error:
        traceback.print_exc()
        outcome = {"failed": worker_error_text(error)}
    temporary = folder / "outcome.tmp"
    temporary.write_text(json.dumps(outcome), encoding="utf-8")
    temporary.replace(folder / "outcome.json")
    return 0


def worker_error_text(error: Exception) -> str:
    """Type and first line of an error that is not ours; those of memory by what helps."""
    if any(map(_no_room, _behind(error))):
        return "the disk is full; make room where training.output is"
    first = (str(error).splitlines() or [""])[0][:200]
    if type(error).__name__ == "OutOfMemoryError":
        return f"out of memory on the GPU; {LESS_MEMORY}"
    if isinstance(error, MemoryError) or "DefaultCPUAllocator" in str(error):
        return f"out of memory; {LESS_MEMORY}"
    return f"{type(error).__name__}: {first}"


def _behind(error: BaseException | None) -> Iterator[BaseException]:
    """The error and those it came of."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__


def _no_room(error: BaseException) -> bool:
    """Also of safetensors, whose errors have a text alone."""
    full = {errno.ENOSPC, errno.EDQUOT}
    return getattr(error, "errno", None) in full or os.strerror(errno.ENOSPC) in str(error)


def _private_stdout() -> Tell:
    """Progress to the real stdout; from here on everybody else's stdout is stderr."""
    lines: TextIO = os.fdopen(os.dup(1), "w", buffering=1, encoding="utf-8")
    os.dup2(2, 1)

    def tell(said: dict[str, Any]) -> None:
        lines.write(json.dumps(said) + "\n")

    return tell


def _end_with_stdin() -> None:
    sys.stdin.buffer.read()
    os._exit(1)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
