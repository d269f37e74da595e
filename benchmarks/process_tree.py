"""Memory and processor time of this process and all it starts (Linux)."""

import os
import resource
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

EVERY_S = 1.0


class PeakMemory:
    """The memory of a tree of processes, measured every second.

    `peak_gb` is the highest sum. Shared memory counts in parts (PSS), so that forks count once.
    """

    def __init__(self) -> None:
        self.peak_gb = 0.0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)

    def __enter__(self) -> "PeakMemory":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._stop.wait(EVERY_S):
            self.peak_gb = max(self.peak_gb, sum(map(_pss_gb, tree(os.getpid()))))


def cpu_s() -> float:
    """Processor time in seconds of this process and of the children that ended."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


def tree(pid: int) -> Iterator[int]:
    """Yield the ids of a process and its descendants."""
    yield pid
    with suppress(OSError):
        for children in Path(f"/proc/{pid}/task").glob("*/children"):
            for child in children.read_text().split():
                yield from tree(int(child))


def _pss_gb(pid: int) -> float:
    with suppress(OSError):
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024 / 1e9
    return 0.0
