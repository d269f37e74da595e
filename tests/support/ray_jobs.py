"""Jobs for workers of a pool, in a module that a worker can import."""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tracemill.records.errors import LedgerError


@contextmanager
def opened(fails_at: int = -1) -> Iterator[Any]:
    """Gives the number of a job and the process that did it, after a while."""

    def work(number: int) -> tuple[int, int]:
        if number == fails_at:
            raise LedgerError("the ledger could not be written", "a database")
        time.sleep(0.2)
        return number, os.getpid()

    yield work
