"""The interface of a pool of worker processes, on this machine or on others."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Protocol, TypeVar

J = TypeVar("J")
R = TypeVar("R")

OpenWorker = Callable[[], AbstractContextManager[Callable[[J], R]]]
"""Opens, in a worker, what does one job after another; both sides of it are pickled."""


class WorkerPool(Protocol):
    """A pool of processes that do jobs."""

    @property
    def workers(self) -> int:
        """Return the number of processes."""
        ...

    def map(self, open_worker: OpenWorker[J, R], jobs: Sequence[J]) -> AbstractContextManager[Iterator[R]]:
        """Give the result of each job, in the order of the jobs, while the block lasts.

        An error of a job is raised in its place. Jobs that are not begun when the block ends are not done.
        """
        ...
