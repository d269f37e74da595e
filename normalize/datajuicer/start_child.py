"""Start the data-juicer process: its environment, its jobs and its errors."""

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tracemill.records.errors import NormalizeError
from tracemill.records.storage.atomic_files import last_log_file_line

TIMEOUT_S = 3600.0
_PASSED_ON = ("PATH", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "SYSTEMROOT", "VIRTUAL_ENV")
_OFFLINE = {
    "HF_HUB_OFFLINE": "1",
    "HF_DATASETS_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "DO_NOT_TRACK": "1",
    "PIP_NO_INDEX": "1",
    "UV_OFFLINE": "1",
    "TOKENIZERS_PARALLELISM": "false",
    "PYTHONUTF8": "1",
}


@dataclass(frozen=True, slots=True)
class RowsFile:
    """A file of rows and their number; `actions` is True for single actions, False for pairs."""

    path: Path
    count: int
    actions: bool = False


class OperatorProcess:
    """A data-juicer process: its start, its jobs one after the other, and its errors.

    It is started by the first job. `folder` receives jobs, outcomes and stderr; `home` is the home folder of
    the process and holds its caches. `timeout_s` holds for each job.
    """

    def __init__(self, folder: Path, home: Path, timeout_s: float) -> None:
        self.folder = folder
        self._home, self._timeout_s = home, timeout_s
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int | None:
        """Return the id of the process that waits for a job, None if there is none."""
        return self._process.pid if self._process is not None else None

    def run(self, recipe: Path, rows: RowsFile | None) -> dict[str, Any]:
        """Run one job over rows and return its outcome; without rows it only checks the recipe.

        Raises NormalizeError if the process fails, dies or takes longer than its time.
        """
        outcome_file = self.folder / "outcome.json"
        outcome_file.unlink(missing_ok=True)
        job = {
            "recipe": str(recipe.resolve()),
            "rows": str(rows.path) if rows else None,
            "count": rows.count if rows else 0,
            "actions": rows is not None and rows.actions,
            "outcome": str(outcome_file),
        }
        self._await_job(json.dumps(job))
        outcome: dict[str, Any] = json.loads(outcome_file.read_text(encoding="utf-8"))
        if "failure" in outcome:
            raise NormalizeError(outcome["failure"])
        return outcome

    def close(self) -> None:
        """End the process, if there is one."""
        if self._process is None:
            return
        self._process.kill()
        for stream in (self._process.stdin, self._process.stdout):
            with contextlib.suppress(BrokenPipeError):  # a job that a dead process did not read
                if stream is not None:
                    stream.close()
        self._process.wait()
        self._process = None

    def _await_job(self, job: str) -> None:
        """Return once a job is done. Raises NormalizeError if its process does not get there."""
        process = self._process = self._process or self._start()
        assert process.stdin is not None
        assert process.stdout is not None
        with contextlib.suppress(BrokenPipeError):  # it is dead, and its stdout has ended too
            process.stdin.write(job.encode() + b"\n")
            process.stdin.flush()
        if not select.select([process.stdout], [], [], self._timeout_s)[0]:
            self.close()
            raise NormalizeError(f"the data-juicer process took longer than {self._timeout_s:g} s")
        if not process.stdout.readline():
            code = process.wait()
            self.close()
            last = last_log_file_line(self.folder / "stderr.txt")
            raise NormalizeError(
                f"the data-juicer process {_ending(code)}{last}", "an outcome", "run it again"
            )

    def _start(self) -> subprocess.Popen[bytes]:
        with (self.folder / "stderr.txt").open("wb") as stderr:
            return subprocess.Popen(
                [sys.executable, "-P", "-m", "tracemill.normalize.datajuicer.worker"],
                cwd=self.folder,
                env=_environment(self._home),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stderr,
            )


def _environment(home: Path) -> dict[str, str]:
    """Return the environment of the child: no keys, no proxies, not the user's home, offline."""
    caches = {
        "HOME": home,
        "XDG_CACHE_HOME": home / ".cache",
        "HF_HOME": home / ".cache" / "huggingface",
        "DATA_JUICER_CACHE_HOME": home / ".cache" / "data_juicer",
        "TMPDIR": home / "tmp",
    }
    for path in caches.values():
        path.mkdir(parents=True, exist_ok=True)
    passed = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
    return {**passed, **_OFFLINE, **{k: str(v) for k, v in caches.items()}}


def _ending(code: int) -> str:
    if code < 0:
        return f"was ended by {signal.Signals(-code).name}"
    return f"ended with code {code} and no outcome"
