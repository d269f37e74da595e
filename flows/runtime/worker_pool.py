"""The interface of a pool of worker processes, on this machine or on others."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Protocol, TypeVar

J = TypeVar("J")
R = TypeVar("R")

OpenWorker = Callable[[], AbstractContextManager[Callable[[J], R]]]
"""Opens, in a worker, what does one job after another; both sides of it are pickled."""


class WorkerPool(Protocol):
    """A pool of processes that run jobs."""

    @property
    def workers(self) -> int:
        """Return the number of processes."""
        ...

    def map(self, open_worker: OpenWorker[J, R], jobs: Sequence[J]) -> AbstractContextManager[Iterator[R]]:
        """Yield the result of each job, in the order of the jobs, during the block.

        An error of a job is raised in its place. Jobs that have not started at the end of the block are
        dropped.
        """
        ...
