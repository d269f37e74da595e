"""End Prefect servers of killed runs: `kill -9` leaves them behind.

Which one is ours is told by the kernel, not by a file: every process that a run starts carries the run's
process id and start time in its environment. A server whose run is gone serves nobody. Processes are looked
at through `/proc` (https://man7.org/linux/man-pages/man5/proc.5.html), so on Linux alone.
"""

import os
import signal
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

OWNER = "TRACEMILL_RUN_PROCESS"
"""Variable of what a run starts: `PID:START`, the start in clock ticks since the machine's."""

_PROC = Path("/proc")
_SERVER = b"prefect.server.api.server:create_app"


def tag_possible_orphan_servers() -> None:
    """Tag every process that this one starts later with its owner."""
    if (started := _started(os.getpid())) is not None:
        os.environ[OWNER] = f"{os.getpid()}:{started}"


def end_leftover_servers() -> list[int]:
    """End the Prefect servers of this user whose run no longer exists; return their process ids."""
    return [pid for pid in _servers() if _end_if_left_over(pid)]


def _servers() -> Iterator[int]:
    for folder in _PROC.glob("[0-9]*"):
        with suppress(OSError):
            if _SERVER in (folder / "cmdline").read_bytes().split(b"\0"):
                yield int(folder.name)


def _end_if_left_over(pid: int) -> bool:
    """End an orphaned process, held by a descriptor so that its id cannot be reused meanwhile."""
    with suppress(OSError, ValueError):
        held = os.pidfd_open(pid)
        try:
            if not _is_left_over(_PROC / str(pid)):
                return False
            signal.pidfd_send_signal(held, signal.SIGTERM)
            return True
        finally:
            os.close(held)
    return False


def _is_left_over(folder: Path) -> bool:
    """Return whether a process belongs to this user and process namespace, and its run no longer exists."""
    if (
        folder.stat().st_uid != os.getuid()
        or (folder / "ns/pid").readlink() != (_PROC / "self/ns/pid").readlink()
    ):
        return False
    prefix = f"{OWNER}=".encode()
    found = [item for item in (folder / "environ").read_bytes().split(b"\0") if item.startswith(prefix)]
    if not found:
        return False
    pid, started = map(int, found[0].removeprefix(prefix).split(b":"))
    return _started(pid) != started


def _started(pid: int) -> int | None:
    """Return the start time of a process in clock ticks; None if it has ended."""
    try:
        stat = (_PROC / str(pid) / "stat").read_bytes()
    except OSError:
        return None
    fields = stat.rpartition(b")")[2].split()
    return None if fields[0] in (b"Z", b"X") else int(fields[19])
