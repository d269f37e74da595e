"""A folder for decoded texts that only its owner reads and that is removed after the scan."""

import fcntl
import shutil
import signal
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import NoReturn

from tracemill.records.errors import PrivacyError

_PREFIX = "tracemill-gate-"
_LOCK = "lock"
_ENDING = (signal.SIGTERM, signal.SIGHUP)


@contextmanager
def private_folder() -> Iterator[Path]:
    """Make a folder readable by its owner only, and remove it at the end.

    SIGTERM and SIGHUP raise SystemExit(128 + signal) in the main thread meanwhile, unless handled or ignored
    already. Folders that killed scans of the same user left behind are removed too. Raises PrivacyError where
    the folder cannot be made or used, or disappears before the end.
    """
    with _ended_by_signals():
        _remove_left_over()
        try:
            folder = Path(tempfile.mkdtemp(prefix=_PREFIX))
        except OSError as error:
            raise _unusable(tempfile.gettempdir(), error.strerror) from None
        try:
            with (folder / _LOCK).open("w") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)
                yield folder
                (folder / _LOCK).stat()
        except (OSError, PrivacyError) as error:
            if not (folder / _LOCK).exists():
                raise _unusable(folder, "it was removed before the end") from None
            if isinstance(error, OSError):
                raise _unusable(folder, error.strerror or type(error).__name__) from None
            raise
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def _unusable(folder: Path | str, why: str | None) -> PrivacyError:
    return PrivacyError(
        f"the private folder {folder} for decoded texts cannot be used ({why})",
        "a folder that stays and takes what is judged",
        "run it again, or set TMPDIR to another place",
    )


@contextmanager
def _ended_by_signals() -> Iterator[None]:
    """Raise SystemExit for signals that would end this process at once."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    taken = [each for each in _ENDING if signal.getsignal(each) is signal.SIG_DFL]
    for each in taken:
        signal.signal(each, _end)
    try:
        yield
    finally:
        for each in taken:
            signal.signal(each, signal.SIG_DFL)


def _end(number: int, _frame: FrameType | None) -> NoReturn:
    raise SystemExit(128 + number)


def _remove_left_over() -> None:
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        with suppress(OSError), (folder / _LOCK).open("r+") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(folder)
