"""Work in processes that each have a pipe of their own to this one.

Processes that share a pipe, as those of `concurrent.futures` do, stop for ever where one is killed while it
writes or reads: the rest of its message never comes, and the others wait for their turn. A pipe of its own
ends with its process.
"""

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from multiprocessing.connection import Connection
from queue import SimpleQueue
from traceback import format_exc
from typing import TYPE_CHECKING, Any

from tracemill.flows.runtime.interrupts import hold_interrupts

if TYPE_CHECKING:
    from multiprocessing.context import BaseContext
    from multiprocessing.process import BaseProcess


class ProcessEnded(Exception):
    """A process ended before it gave what it was asked for."""


class Piped:
    """`count` processes, each with the work that `begin` of `given` makes there; begun when this is made."""

    def __init__(
        self, context: "BaseContext", count: int, begin: Callable[..., Callable[..., Any]], *given: Any
    ) -> None:
        self._processes: list[BaseProcess] = []
        self._idle: SimpleQueue[Connection] = SimpleQueue()
        with hold_interrupts():
            for _ in range(count):
                here, there = context.Pipe()
                process = context.Process(target=_serve, args=(there, begin, given), daemon=True)  # pyright: ignore[reportAttributeAccessIssue]
                process.start()
                there.close()
                self._processes.append(process)
                self._idle.put(here)
        self._threads = ThreadPoolExecutor(count)

    def map(self, calls: Sequence[tuple[Any, ...]]) -> Iterator[Any]:
        """What the work gives for the arguments of each call, in order; raises what it raised, or
        ProcessEnded. What comes later is at work meanwhile."""
        with hold_interrupts():
            begun = [self._threads.submit(self._ask, call) for call in calls]
        return _given(begun)

    def finish(self) -> None:
        """Wait for what is at work and leave out what is not begun."""
        self._threads.shutdown(cancel_futures=True)

    def kill(self) -> None:
        """End the processes, whatever they do."""
        for process in self._processes:
            process.kill()
        for process in self._processes:
            process.join()

    def _ask(self, call: tuple[Any, ...]) -> Any:
        pipe = self._idle.get()
        try:
            pipe.send(call)
            found, error = pipe.recv()
        except (EOFError, OSError):
            raise ProcessEnded from None
        finally:
            self._idle.put(pipe)
        if error is not None:
            raise error
        return found


def _given(begun: list[Future[Any]]) -> Iterator[Any]:
    begun.reverse()
    while begun:
        yield begun.pop().result()  # kept by nobody


def _serve(pipe: Connection, begin: Callable[..., Callable[..., Any]], given: tuple[Any, ...]) -> None:
    """What a process does: the interrupt key is its parent's affair, and it does not outlive it."""
    import signal

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    work: Callable[..., Any] | None = None
    while True:
        call = pipe.recv()
        try:
            work = work or begin(*given)
            outcome = work(*call), None
        except Exception as error:
            error.add_note(format_exc())
            outcome = None, error
        pipe.send(outcome)


def _end_with_parent() -> None:
    import os
    from multiprocessing import parent_process

    if (parent := parent_process()) is not None:
        parent.join()
        os._exit(1)
