"""What a command that ended says: one JSON object, or one line on why it was refused."""

import json
import re
import time
from collections.abc import Callable
from subprocess import CompletedProcess, Popen
from typing import Any

Call = Callable[..., CompletedProcess[str]]
"""Calls the command line, as the fixtures `console` and `tracemill` do."""
INTERRUPTED = b"tracemill: interrupted; the same command resumes and pays nothing twice\n"
"""All that a command says on stderr that a signal ended, but for its progress."""
_PROGRESS = re.compile(rb"(?m)^[a-z]+ \d+/\d+ .*\n")
NO_BROWSER = "no chromium is here to open the report in"


def without_progress(said: bytes) -> bytes:
    """What was said, without the lines of progress: a command that takes half a minute writes one."""
    return _PROGRESS.sub(b"", said)


def record_of(done: CompletedProcess[str]) -> dict[str, Any]:
    """The object that a command gave with `--json`, which ended well."""
    assert done.returncode == 0, done.stderr[-2000:]
    assert "Traceback" not in done.stderr
    return json.loads(done.stdout)


def refusal_of(done: CompletedProcess[str]) -> str:
    """The one line of a command that was refused with exit code 2 and gave nothing."""
    assert done.returncode == 2, done.stderr[-2000:] + done.stdout[-500:]
    assert done.stdout == ""
    lines = done.stderr.strip().splitlines()
    assert len(lines) == 1, done.stderr
    assert lines[0].startswith("tracemill: ")
    return lines[0]


def wait_while_running(process: "Popen[bytes] | Popen[str]", ready: Callable[[], bool]) -> None:
    """Wait until something is so, while the process runs."""
    deadline = time.monotonic() + 120
    while not ready():
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.01)
