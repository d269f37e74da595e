"""Run a process to its end, and kill it where it passes its limits."""

import contextlib
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import psutil

from tracemill.environments.sandbox.file_trees import walk_files
from tracemill.environments.sandbox.sandbox import CompletedCommand, Ending, Limits

_LOOK_EVERY_S = 0.1
_MB = 1 << 20
_BLOCK = 4096
_KILLED_BY_CPU_LIMIT = 128 + signal.SIGXCPU
"""Exit code of a sandbox whose command passed its limit of processor time."""


def execute(
    command: Sequence[str],
    limits: Limits,
    *,
    stdin: bytes = b"",
    cwd: Path | None = None,
    environment: Mapping[str, str] | None = None,
    writable: Sequence[Path] = (),
    prepare: Callable[[], None] | None = None,
    keep: Sequence[int] = (),
    pid_file: Path | None = None,
) -> CompletedCommand:
    """Run a command and return how it ended; all of its processes are gone when this returns.

    The memory and number of its processes and the growth of writable folders are checked every tenth of a
    second, beside the limits that the kernel enforces for each process. The command inherits the
    descriptors `keep`. It may write the id of another process, which is killed with it, to `pid_file`.
    """
    began, size_before = time.monotonic(), _size(writable)
    process = subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        cwd=cwd,
        env=dict(environment or {}),
        start_new_session=True,
        preexec_fn=prepare,
        pass_fds=keep,
    )
    reader = _Reader(process, limits.output_bytes)
    writer = threading.Thread(target=_feed, args=(process, stdin), daemon=True)
    reader.start()
    writer.start()
    ending: Ending = "exited"
    try:
        while True:
            left = limits.seconds - (time.monotonic() - began)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(max(0.0, min(_LOOK_EVERY_S, left)))
                break
            passed = "timed_out" if left <= 0 else _passed(process.pid, limits, writable, size_before)
            if passed:
                ending = passed
                break
    finally:
        _kill(process, pid_file)
    reader.join(timeout=5)
    writer.join(timeout=5)
    if process.stdout is not None and not reader.is_alive():
        process.stdout.close()
    if ending == "exited" and process.returncode in (-signal.SIGXCPU, _KILLED_BY_CPU_LIMIT):
        ending = "timed_out"
    if ending == "exited" and _size(writable) - size_before > limits.disk_mb * _MB:
        ending = "disk"
    return CompletedCommand(ending, process.returncode, reader.output, time.monotonic() - began, reader.cut)


class _Reader(threading.Thread):
    """A reader of all output that keeps its first bytes."""

    def __init__(self, process: subprocess.Popen[bytes], most: int) -> None:
        super().__init__(daemon=True)
        self._process, self._most = process, most
        self._kept = bytearray()
        self.cut = False

    @property
    def output(self) -> bytes:
        """Return the kept bytes."""
        return bytes(self._kept)

    def run(self) -> None:
        """Read to the end of the stream."""
        assert self._process.stdout is not None
        while chunk := os.read(self._process.stdout.fileno(), 65_536):
            room = self._most - len(self._kept)
            self._kept += chunk[:room]
            self.cut = self.cut or len(chunk) > room


def _feed(process: subprocess.Popen[bytes], stdin: bytes) -> None:
    assert process.stdin is not None
    with contextlib.suppress(OSError):  # the process ended before it read all
        process.stdin.write(stdin)
    with contextlib.suppress(OSError):
        process.stdin.close()


def _passed(pid: int, limits: Limits, writable: Sequence[Path], before: int) -> Ending | None:
    """Return the limit that the child processes exceed, if any."""
    memory = count = 0
    with contextlib.suppress(psutil.Error):
        for child in psutil.Process(pid).children(recursive=True):
            with contextlib.suppress(psutil.Error):
                memory += child.memory_info().rss
                count += 1
    if memory > limits.memory_mb * _MB:
        return "memory"
    if count > 2 * limits.processes:
        return "processes"
    if writable and _size(writable) - before > limits.disk_mb * _MB:
        return "disk"
    return None


def _size(folders: Sequence[Path]) -> int:
    """Return the disk space of the files below folders in bytes, at least 4 KB for each file."""
    total = 0
    for folder in folders:
        for _, entry in walk_files(folder):
            with contextlib.suppress(OSError):  # removed meanwhile
                total += max(_BLOCK, entry.stat(follow_symlinks=False).st_blocks * 512)
    return total


def _kill(process: subprocess.Popen[bytes], pid_file: Path | None) -> None:
    """Kill the whole session of a process, whether or not its first process has ended."""
    if pid_file is not None and process.poll() is None:
        # No file or number yet, or a process of another user: the engine removes it a moment later.
        with contextlib.suppress(OSError, ValueError):
            os.kill(int(pid_file.read_text()), signal.SIGKILL)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
