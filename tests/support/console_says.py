"""What a command that ended says: one JSON object, or one line on why it was refused."""

import json
from collections.abc import Callable
from subprocess import CompletedProcess
from typing import Any

Call = Callable[..., CompletedProcess[str]]
"""Calls the command line, as the fixtures `console` and `tracemill` do."""
NO_BROWSER = "no chromium is here to open the report in"


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
