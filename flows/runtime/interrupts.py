"""Handle Ctrl-C, SIGTERM and SIGHUP: the first interrupt is recorded, a second Ctrl-C ends at once.

A KeyboardInterrupt in a finalizer (asyncio's transports have one) or in the clean-up of a library is
swallowed there, and the work goes on. So an interrupt is recorded as well as raised: long work calls
`raise_if_interrupted` between its parts, and one that a finalizer swallowed is raised again a moment later.
While teachers are asked nothing is raised: the callback of `on_interrupt` is called, and requests in flight
are finished.
"""

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING

from tracemill.records.errors import TracemillError

if TYPE_CHECKING:
    from sys import UnraisableHookArgs

EXIT_CODE = 130
_AGAIN_S = 0.05
_ENDING = (signal.SIGTERM, signal.SIGHUP)


class ReportedInterrupt(SystemExit):
    """The end of an interrupted command, with its own message `what`, printed after "interrupted"."""

    def __init__(self, what: str) -> None:
        super().__init__(EXIT_CODE)
        self.what = what


class _InterruptLog:
    """The recorded interrupts of this process."""

    def __init__(self) -> None:
        self.count = 0
        self.taken = False
        self.held = False
        self.terminals: list[int] = []
        self.listener: Callable[[], None] | None = None
        self.unraisable: Callable[[UnraisableHookArgs], object] = sys.__unraisablehook__

    def press(self, _signal: int, frame: FrameType | None) -> None:
        """Handle SIGINT."""
        self.count += 1
        if self.held:
            return
        if self.count > 1:
            raise KeyboardInterrupt
        if self.listener is not None:
            self.taken = True
            self.listener()
        elif _is_in_import_system(frame):
            self._press_again_later()
        else:
            raise KeyboardInterrupt

    def terminate(self, number: int, frame: FrameType | None) -> None:
        """Handle SIGTERM and SIGHUP.

        A supervisor may send SIGTERM in addition to a terminal's SIGINT; after SIGHUP the terminal may be
        gone.
        """
        if number == signal.SIGHUP:
            self.leave_terminal()
        if not self.count:
            self.press(number, frame)

    def leave_terminal(self) -> None:
        """Redirect the streams of the terminal to `os.devnull`: it may be gone, and writing to it fails."""
        nowhere = os.open(os.devnull, os.O_RDWR)
        for number in self.terminals:
            os.dup2(nowhere, number)
        os.close(nowhere)

    def swallowed(self, lost: "UnraisableHookArgs") -> None:
        """Handle an exception that Python cannot raise (`sys.unraisablehook`)."""
        if not issubclass(lost.exc_type, KeyboardInterrupt):
            self.unraisable(lost)
            return
        self._press_again_later()

    def _press_again_later(self) -> None:
        timer = threading.Timer(_AGAIN_S, self._again)
        timer.daemon = True
        timer.start()

    def _again(self) -> None:
        if self.count and not self.taken:
            self.count -= 1
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    def raise_kept(self) -> None:
        if self.count:
            self.taken = True
            raise KeyboardInterrupt


def _is_in_import_system(frame: FrameType | None) -> bool:
    """Return whether the import system itself is running.

    An exception there can leave its lock taken, and every later import in another thread waits for ever.
    """
    return frame is not None and frame.f_code.co_filename.startswith("<frozen importlib")


_presses = _InterruptLog()


@contextmanager
def remember_interrupts() -> Iterator[None]:
    """Handle SIGINT (Ctrl-C), SIGTERM and SIGHUP during the block.

    An exception other than TracemillError that follows an interrupt becomes SystemExit with `EXIT_CODE`. Does
    nothing outside the main thread, which gets no signals.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    _presses.count, _presses.taken, _presses.unraisable = 0, False, sys.unraisablehook
    before = signal.signal(signal.SIGINT, _presses.press)
    sys.unraisablehook = _presses.swallowed
    try:
        with handle_termination():
            yield
    except Exception as error:
        if _presses.count and not isinstance(error, TracemillError):  # what a library made of a press
            raise SystemExit(EXIT_CODE) from error
        raise
    finally:
        _presses.count = 0
        sys.unraisablehook = _presses.unraisable
        signal.signal(signal.SIGINT, before)


@contextmanager
def handle_termination() -> Iterator[None]:
    """Handle SIGTERM and SIGHUP like a first Ctrl-C during the block.

    Every flow needs it, since Prefect sets its own handlers around a flow. A signal that is ignored stays
    ignored, as under `nohup`. Does nothing outside `remember_interrupts`.
    """
    main = threading.current_thread() is threading.main_thread()
    if not main or signal.getsignal(signal.SIGINT) != _presses.press:
        yield
        return
    taken = [each for each in _ENDING if signal.getsignal(each) is not signal.SIG_IGN]
    _presses.terminals = [number for number in (0, 1, 2) if os.isatty(number)]
    before = [signal.signal(each, _presses.terminate) for each in taken]
    try:
        yield
    finally:
        for each, handler in zip(taken, before, strict=True):
            signal.signal(each, handler)


def raise_if_interrupted() -> None:
    """Raise KeyboardInterrupt after an interrupt, even if a library swallowed the first one."""
    _presses.raise_kept()


def pass_on_interrupt() -> None:
    """Record an interrupt that the parent process received. Any thread may call it."""
    _presses.count += 1
    if _presses.listener is not None:
        _presses.taken = True
        _presses.listener()


@contextmanager
def hold_interrupts() -> Iterator[None]:
    """Defer SIGINT, SIGTERM and SIGHUP to the end of the block, which must be short.

    For blocks that start processes and threads. These start with SIGINT blocked.
    """
    earlier = _presses.count
    before = signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGINT,))
    _presses.held = True
    try:
        yield
    finally:
        _presses.held = False
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    if _presses.count > earlier:
        raise_if_interrupted()


@contextmanager
def on_interrupt(told: Callable[[], None]) -> Iterator[None]:
    """Call `told` at the first interrupt in the block instead of raising KeyboardInterrupt.

    It is called in the signal handler. An earlier interrupt raises KeyboardInterrupt at the start.
    """
    raise_if_interrupted()
    _presses.listener = told
    try:
        yield
    finally:
        _presses.listener = None
