"""Processes that ask a server about sessions, on one ledger."""

import os
import subprocess
import sys
from collections.abc import Sequence

import asked_sessions

from tracemill.teachers.openrouter_stub.server import RunningStubServer


def start(
    server: RunningStubServer, ledger_url: str, traces: int, steps: int, cap_nanousd: int, run_id: str = "run"
) -> "subprocess.Popen[bytes]":
    """A process that will ask; `go` has it begin."""
    numbers = (str(number) for number in (cap_nanousd, traces, steps))
    command = [sys.executable, asked_sessions.__file__, server.url, ledger_url, run_id, *numbers]
    environ = {**os.environ, **asked_sessions.KEY}
    return subprocess.Popen(command, env=environ, stdin=subprocess.PIPE, stdout=subprocess.PIPE)


def go(children: "Sequence[subprocess.Popen[bytes]]") -> None:
    """Has them begin together, once all are ready."""
    for child in children:
        assert child.stdout is not None
        assert child.stdout.readline() == b"ready\n"
    for child in children:
        assert child.stdin is not None
        child.stdin.write(b"go\n")
        child.stdin.flush()
