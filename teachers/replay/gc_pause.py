"""Looking for garbage less often while a replay runs."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

_THRESHOLDS = (5_000, 50, 100)


class _Rarely:
    """How many replays of this process want it, and what was set before the first of them."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._running = 0
        self._before = gc.get_threshold()
        self._froze = False

    def begin(self) -> None:
        """One more: the first sets it."""
        with self._lock:
            self._running += 1
            if self._running == 1:
                self._before, self._froze = gc.get_threshold(), not gc.get_freeze_count()
                gc.set_threshold(*_THRESHOLDS)
                if self._froze:
                    gc.freeze()

    def end(self) -> None:
        """One less: the last puts everything back."""
        with self._lock:
            self._running -= 1
            if not self._running:
                gc.set_threshold(*self._before)
                if self._froze:
                    gc.unfreeze()


_RARELY = _Rarely()


@contextmanager
def pause_gc() -> Iterator[None]:
    """While the block lasts, garbage is collected rarely, and not among what exists already.

    A replay keeps dozens of objects an answer and makes few rings of them. At Python's own thresholds
    looking through them takes a quarter of its CPU, up to a quarter second at a time in which no answer is
    read. It holds for the whole process; blocks may overlap.
    """
    _RARELY.begin()
    try:
        yield
    finally:
        _RARELY.end()
