"""Start the data-juicer process: its environment, its job and its errors."""

import json
import os
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


def run_worker(
    recipe: Path, rows: RowsFile | None, folder: Path, home: Path, timeout_s: float
) -> dict[str, Any]:
    """Run the worker over rows and return its outcome; without rows it only checks the recipe.

    `folder` receives job, outcome and stderr; `home` is the home folder of the process and holds its caches.
    Raises NormalizeError if the process fails, dies or takes longer than `timeout_s` seconds.
    """
    job = {
        "recipe": str(recipe.resolve()),
        "rows": str(rows.path) if rows else None,
        "count": rows.count if rows else 0,
        "actions": rows is not None and rows.actions,
        "outcome": str(folder / "outcome.json"),
    }
    (folder / "job.json").write_text(json.dumps(job), encoding="utf-8")
    code = _run(folder, home, timeout_s)
    outcome_file = folder / "outcome.json"
    if not outcome_file.exists():
        last = last_log_file_line(folder / "stderr.txt")
        raise NormalizeError(f"the data-juicer process {_ending(code)}{last}", "an outcome", "run it again")
    outcome: dict[str, Any] = json.loads(outcome_file.read_text(encoding="utf-8"))
    if "failure" in outcome:
        raise NormalizeError(outcome["failure"])
    return outcome


def _run(folder: Path, home: Path, timeout_s: float) -> int:
    command = [sys.executable, "-P", "-m", "tracemill.normalize.datajuicer.worker", str(folder / "job.json")]
    environment = _environment(home)
    with (folder / "stderr.txt").open("wb") as stderr:
        try:
            return subprocess.run(
                command,
                cwd=folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=stderr,
                timeout=timeout_s,
                check=False,
            ).returncode
        except subprocess.TimeoutExpired:
            raise NormalizeError(f"the data-juicer process took longer than {timeout_s:g} s") from None


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
